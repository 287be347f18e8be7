/* Overflow modes, switches and status; attributes of streams; times of operators. */
#include "streams.h"

static aclrtStream stream;

static void set_up(const char *soc) {
    start("soc_name", soc, NULL);
    OK(aclrtSetDevice(0));
    stream = new_stream();
}

static void tear_down(void) {
    OK(aclrtResetDeviceForce(0));
    check_nothing_alive();
}

static aclrtFloatOverflowMode mode_now(void) {
    aclrtFloatOverflowMode mode = ACL_RT_OVERFLOW_MODE_UNDEF;
    OK(aclrtGetDeviceSatMode(&mode));
    return mode;
}

static void test_modes(void) {
    aclrtFloatOverflowMode mode;
    set_up("Ascend910B1");
    CHECK_EQ(mode_now(), ACL_RT_OVERFLOW_MODE_INFNAN);
    OK(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_SATURATION));
    CHECK_EQ(mode_now(), ACL_RT_OVERFLOW_MODE_SATURATION);
    OK(aclrtSetDevice(1));
    CHECK_EQ(mode_now(), ACL_RT_OVERFLOW_MODE_INFNAN);
    OK(aclrtResetDevice(1));
    OK(aclrtSetDevice(0));
    CHECK_EQ(mode_now(), ACL_RT_OVERFLOW_MODE_SATURATION);
    CHECK_EQ(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_UNDEF), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtSetDeviceSatMode((aclrtFloatOverflowMode)-1), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtGetDeviceSatMode(NULL), ACL_ERROR_INVALID_PARAM);
    tear_down();
    CHECK_EQ(aclrtGetDeviceSatMode(&mode), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN), ACL_ERROR_RT_CONTEXT_NULL);
    OK(aclrtSetDevice(0));
    CHECK_EQ(mode_now(), ACL_RT_OVERFLOW_MODE_INFNAN);
    OK(aclrtResetDevice(0));
    set_up("Ascend310P3");
    CHECK_EQ(mode_now(), ACL_RT_OVERFLOW_MODE_SATURATION);
    tear_down();
}

static void test_switches(void) {
    uint32_t flag = 77;
    set_up("Ascend910B1");
    OK(aclrtGetStreamOverflowSwitch(stream, &flag));
    CHECK_EQ(flag, 0);
    OK(aclrtSetStreamOverflowSwitch(stream, 1));
    OK(aclrtGetStreamOverflowSwitch(stream, &flag));
    CHECK_EQ(flag, 1);
    OK(aclrtGetStreamOverflowSwitch(NULL, &flag));
    CHECK_EQ(flag, 0);
    CHECK_EQ(aclrtSetStreamOverflowSwitch(stream, 2), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtSetStreamOverflowSwitch(&flag, 1), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(aclrtGetStreamOverflowSwitch(stream, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetStreamOverflowSwitch(&flag, &flag), ACL_ERROR_RT_INVALID_HANDLE);
    tear_down();
}

/* The status comes in stream order and is 64 bytes at most. */
static void test_status(void) {
    char host[64];
    set_up("Ascend910B1");
    void *status = new_block(80, 7);
    OK(hostacl_hold(0));
    OK(aclrtResetOverflowStatus(stream));
    OK(aclrtGetOverflowStatus(status, 80, stream));
    CHECK(block_is(status, 80, 7));
    OK(hostacl_release(0));
    OK(aclrtSynchronizeStream(stream));
    CHECK(block_is(status, 64, 0) && block_is(plus(status, 64), 16, 7));
    CHECK_EQ(aclrtGetOverflowStatus(NULL, 64, stream), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetOverflowStatus(status, 0, stream), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetOverflowStatus(host, 64, stream), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtResetOverflowStatus(host), ACL_ERROR_RT_INVALID_HANDLE);
    tear_down();
    CHECK_EQ(aclrtResetOverflowStatus(NULL), ACL_ERROR_RT_CONTEXT_NULL);
}

static void test_attributes(void) {
    aclrtStreamAttrValue value = {.failureMode = ACL_STOP_ON_FAILURE};
    uint32_t number = 77;
    set_up("Ascend910B1");
    OK(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_FAILURE_MODE, &value));
    CHECK_EQ(aclrtSetStreamFailureMode(stream, 0), ACL_ERROR_RT_PARAM_INVALID);
    value = (aclrtStreamAttrValue){.overflowSwitch = 1};
    OK(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, &value));
    OK(aclrtGetStreamOverflowSwitch(stream, &number));
    CHECK_EQ(number, 1);
    OK(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_CACHE_OP_INFO, &value));
    value = (aclrtStreamAttrValue){.streamPriority = 5};
    OK(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_PRIORITY, &value));
    OK(aclrtStreamGetPriority(stream, &number));
    CHECK_EQ(number, 5);
    value.streamPriority = 99;
    OK(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_PRIORITY, &value));
    OK(aclrtStreamGetPriority(stream, &number));
    CHECK_EQ(number, 7);
    OK(aclrtSetStreamAttribute(NULL, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &value));
    CHECK_EQ(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_CACHE_OP_INFO, &value), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, &value), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_FAILURE_MODE, &value), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtSetStreamAttribute(stream, (aclrtStreamAttr)0, &value), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtSetStreamAttribute(stream, (aclrtStreamAttr)6, &value), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_PRIORITY, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtSetStreamAttribute(&value, ACL_STREAM_ATTR_PRIORITY, &value), ACL_ERROR_RT_INVALID_HANDLE);
    tear_down();
}

static void test_config(void) {
    aclrtStreamConfigHandle config = {0};
    void *work = &config;
    size_t bytes = 4096, flag = ACL_STREAM_FAST_LAUNCH;
    uint32_t priority = 3;
    start(NULL);
    OK(aclrtSetStreamConfigOpt(&config, ACL_RT_STREAM_WORK_ADDR_PTR, &work, sizeof(work)));
    OK(aclrtSetStreamConfigOpt(&config, ACL_RT_STREAM_WORK_SIZE, &bytes, sizeof(bytes)));
    OK(aclrtSetStreamConfigOpt(&config, ACL_RT_STREAM_FLAG, &flag, sizeof(flag)));
    OK(aclrtSetStreamConfigOpt(&config, ACL_RT_STREAM_PRIORITY, &priority, sizeof(priority)));
    CHECK(config.workptr == work && config.workSize == bytes && config.flag == flag && config.priority == priority);
    CHECK_EQ(aclrtSetStreamConfigOpt(&config, ACL_RT_STREAM_PRIORITY, &flag, sizeof(flag)), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtSetStreamConfigOpt(&config, (aclrtStreamConfigAttr)4, &flag, 8), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtSetStreamConfigOpt(NULL, ACL_RT_STREAM_FLAG, &flag, 8), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtSetStreamConfigOpt(&config, ACL_RT_STREAM_FLAG, NULL, 8), ACL_ERROR_INVALID_PARAM);
}

static void test_times(void) {
    uint64_t actual = 77;
    start(NULL);
    OK(aclrtSetOpExecuteTimeOut(547));
    OK(aclrtSetOpExecuteTimeOutV2(123456, &actual));
    CHECK_EQ(actual, 123456);
    CHECK_EQ(aclrtSetOpExecuteTimeOutV2(1, NULL), ACL_ERROR_INVALID_PARAM);
}

int main(void) {
    test_modes();
    test_switches();
    test_status();
    test_attributes();
    test_config();
    test_times();
    start(NULL);
    check_nothing_alive();
    return check_done();
}
