/* What a device is and how it is: aclrtGetDeviceInfo and its neighbours. */
#include "check.h"

static void test_memory_size(void) {
    int64_t bytes = 0;
    start(NULL);
    OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, &bytes));
    CHECK_EQ(bytes, 64 * GIB);
    start("soc_name", "Ascend910B4", NULL);
    OK(aclrtGetDeviceInfo(1, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, &bytes));
    CHECK_EQ(bytes, 32 * GIB);
    start("pages_4k", "1M", "pages_2m", "4M", "pages_1g", "2", NULL);
    OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, &bytes));
    CHECK_EQ(bytes, 5 * MIB + 2 * GIB);
    check_nothing_alive();
}

/* Other figures of the chip are not invented; unknown attributes and devices are bad arguments. */
static void test_other_attributes(void) {
    static const aclrtDevAttr known[] = {
        ACL_DEV_ATTR_AICPU_CORE_NUM,     ACL_DEV_ATTR_WARP_SIZE,  ACL_DEV_ATTR_MAX_BLOCK_DIM_Z, ACL_DEV_ATTR_SMP_ID,
        ACL_DEV_ATTR_DEVICE_FORM_FACTOR, ACL_DEV_ATTR_IS_VIRTUAL, ACL_DEV_ATTR_NPU_ARCH,
    };
    static const int unknown[] = {0, -1, 2, 100, 103, 200, 213, 300, 303, 400, 410, 500, 600, 602, 9999};
    int64_t value = 77;
    start(NULL);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        CHECK_EQ(aclrtGetDeviceInfo(0, known[i], &value), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
        CHECK_EQ(aclrtGetDeviceInfo(0, (aclrtDevAttr)unknown[i], &value), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtGetDeviceInfo(2, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, &value), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtGetDeviceInfo(UINT32_MAX, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, &value), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtGetDeviceInfo(9, ACL_DEV_ATTR_AICORE_CORE_NUM, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(value, 77);
}

static void test_primary_context(void) {
    uint32_t flags = 9;
    int32_t active = 9;
    aclrtContext context = NULL;
    start(NULL);
    OK(aclrtGetPrimaryCtxState(1, &flags, &active));
    CHECK(flags == 0 && active == 0);
    OK(aclrtSetDevice(1));
    OK(aclrtGetPrimaryCtxState(1, NULL, &active));
    CHECK_EQ(active, 1);
    OK(aclrtGetPrimaryCtxState(0, &flags, &active));
    CHECK_EQ(active, 0);
    OK(aclrtCreateContext(&context, 0));
    OK(aclrtGetPrimaryCtxState(0, &flags, &active));
    CHECK_EQ(active, 0);
    OK(aclrtDestroyContext(context));
    OK(aclrtResetDevice(1));
    OK(aclrtGetPrimaryCtxState(1, &flags, &active));
    CHECK_EQ(active, 0);
    CHECK_EQ(aclrtGetPrimaryCtxState(2, &flags, &active), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtGetPrimaryCtxState(-1, &flags, &active), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtGetPrimaryCtxState(5, &flags, NULL), ACL_ERROR_INVALID_PARAM);
    check_nothing_alive();
}

static void test_status_and_features(void) {
    aclrtDeviceStatus status = ACL_RT_DEVICE_STATUS_END;
    int32_t value = 9;
    start(NULL);
    OK(aclrtQueryDeviceStatus(1, &status));
    CHECK_EQ(status, ACL_RT_DEVICE_STATUS_NORMAL);
    CHECK_EQ(aclrtQueryDeviceStatus(2, &status), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtQueryDeviceStatus(2, NULL), ACL_ERROR_INVALID_PARAM);
    OK(aclrtGetDeviceCapability(0, ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV, &value));
    CHECK_EQ(value, ACL_DEV_FEATURE_NOT_SUPPORT);
    value = 9;
    OK(aclrtGetDeviceCapability(1, ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV, &value));
    CHECK_EQ(value, ACL_DEV_FEATURE_NOT_SUPPORT);
    CHECK_EQ(aclrtGetDeviceCapability(0, (aclrtDevFeatureType)2, &value), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtGetDeviceCapability(-1, ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV, &value),
             ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtGetDeviceCapability(0, ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV, NULL), ACL_ERROR_INVALID_PARAM);
}

static void test_names(void) {
    aclrtUuid first, again, second;
    start("devices", "64", NULL);
    OK(aclrtDeviceGetUuid(0, &first));
    OK(aclrtDeviceGetUuid(0, &again));
    CHECK(!memcmp(&first, &again, sizeof(first)));
    for (int id = 1; id < 64; id++) {
        OK(aclrtDeviceGetUuid(id, &second));
        CHECK(memcmp(&first, &second, sizeof(first)));
        first = second;
    }
    CHECK_EQ(aclrtDeviceGetUuid(64, &first), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtDeviceGetUuid(0, NULL), ACL_ERROR_INVALID_PARAM);
}

static void test_numbers(void) {
    static aclError (*const calls[])(int32_t, int32_t *) = {
        aclrtGetLogicDevIdByUserDevId, aclrtGetUserDevIdByLogicDevId, aclrtGetPhyDevIdByLogicDevId};
    start("devices", "3", NULL);
    for (size_t i = 0; i < 3; i++) {
        int32_t out = -7;
        CHECK_EQ(calls[i](3, &out), ACL_ERROR_RT_INVALID_DEVICEID);
        CHECK_EQ(calls[i](-1, &out), ACL_ERROR_RT_INVALID_DEVICEID);
        CHECK_EQ(calls[i](1, NULL), ACL_ERROR_INVALID_PARAM);
        CHECK_EQ(out, -7);
        OK(calls[i](2, &out));
        CHECK_EQ(out, 2);
    }
}

/* None of the queries sets a device, opens one or needs one. */
static void test_no_trace_left(void) {
    check_nothing_alive();
    CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_INVALID_DEVICEID);
}

int main(void) {
    test_memory_size();
    test_other_attributes();
    test_primary_context();
    test_status_and_features();
    test_names();
    test_numbers();
    test_no_trace_left();
    start(NULL);
    return check_done();
}
