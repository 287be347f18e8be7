/* Failing tasks: what synchronise returns, what goes on, what stops, who is told. */
#include <sys/syscall.h>
#include <unistd.h>

#include "streams.h"

enum { SIZE = 64 };

static aclrtStream first, second;
static void *block;

static void set_up(const char *soc_name) {
    start("soc_name", soc_name, NULL);
    OK(aclrtSetDevice(0));
    first = new_stream();
    second = new_stream();
    block = new_block(SIZE, 1);
}

static void tear_down(void) {
    OK(aclrtResetDeviceForce(0));
    check_nothing_alive();
}

static void set(int value, aclrtStream stream) {
    OK(aclrtMemsetAsync(block, SIZE, value, SIZE, stream));
}

/* The first failure since the last synchronise is told, once, to whoever synchronises that stream first. */
static void test_first_failure_is_told_once(void) {
    set_up("Ascend910B1");
    OK(hostacl_fail_task(2, 507015));
    set(2, first);
    set(3, first);
    set(4, first);
    OK(aclrtSynchronizeStream(second));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(first, 20000), 507015);
    CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 507015);
    const char *text = aclGetRecentErrMsg();
    CHECK(strstr(text, "EL0003: aclrtSynchronizeStreamWithTimeout: task 2 of stream 2, aclrtMemsetAsync: failure "
                       "injected into the task (507015 ACL_ERROR_RT_AICORE_EXCEPTION)"));
    CHECK(block_is(block, SIZE, 4));
    OK(aclrtSynchronizeStream(first));
    OK(hostacl_hold(0));
    OK(hostacl_fail_task(1, 507011));
    set(5, first);
    set(6, second);
    OK(hostacl_release(0));
    EVENTUALLY(is_idle(first) && is_idle(second));
    CHECK_EQ(aclrtSynchronizeDevice(), 507011);
    OK(aclrtSynchronizeDevice());
    tear_down();
}

static void test_two_failures(void) {
    set_up("Ascend910B1");
    OK(hostacl_hold(0));
    set(2, first);
    set(3, first);
    OK(hostacl_fail_task(1, 507015));
    OK(hostacl_release(0));
    EVENTUALLY(is_idle(first));
    OK(hostacl_fail_task(1, 507011));
    set(4, first);
    EVENTUALLY(is_idle(first));
    CHECK_EQ(aclrtSynchronizeStream(first), 507015);
    OK(aclrtSynchronizeStream(first));
    tear_down();
}

/* The copies that wait for the stream tell its failure as a synchronise does. */
static void test_waiting_copy_tells(void) {
    uint8_t heap[SIZE] = {7};
    set_up("Ascend910B1");
    OK(hostacl_fail_task(1, 507015));
    set(2, first);
    CHECK_EQ(aclrtMemcpyAsync(block, SIZE, heap, 1, ACL_MEMCPY_HOST_TO_DEVICE, first), 507015);
    OK(aclrtSynchronizeStream(first));
    tear_down();
}

/* A failure on the way does not hide that the stream is not through. */
static void test_failure_and_timeout(void) {
    set_up("Ascend910B1");
    aclrtEvent event = new_event();
    OK(hostacl_fail_task(1, 507015));
    OK(hostacl_delay_task("aclrtRecordEvent", 300000));
    set(2, first);
    OK(aclrtRecordEvent(event, first));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(first, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    CHECK_EQ(aclrtSynchronizeStream(first), 507015);
    tear_down();
}

static void test_modes(void) {
    set_up("Ascend910B1");
    CHECK_EQ(aclrtSetStreamFailureMode(first, 2), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtSetStreamFailureMode(first, ACL_CONTINUE_ON_FAILURE));
    CHECK_EQ(aclrtSetStreamFailureMode(first, ACL_STOP_ON_FAILURE), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtSetStreamFailureMode(first, ACL_CONTINUE_ON_FAILURE), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtSetStreamFailureMode(NULL, ACL_STOP_ON_FAILURE));
    tear_down();
    CHECK_EQ(aclrtSetStreamFailureMode(NULL, ACL_STOP_ON_FAILURE), ACL_ERROR_RT_CONTEXT_NULL);
    set_up("Ascend310P3");
    CHECK_EQ(aclrtSetStreamFailureMode(NULL, ACL_STOP_ON_FAILURE), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtSetStreamFailureMode(first, ACL_STOP_ON_FAILURE));
    tear_down();
}

/* Stop on failure: the streams of the context drop what they have, take nothing more and tell the failure every time;
 * those of other contexts are not concerned. */
static void test_stop(void) {
    aclrtContext primary = NULL, other = NULL;
    uint8_t heap[SIZE] = {0};
    set_up("Ascend910B1");
    OK(aclrtGetCurrentContext(&primary));
    OK(aclrtCreateContext(&other, 0));
    aclrtStream far = new_stream();
    OK(aclrtSetCurrentContext(primary));
    OK(aclrtSetStreamFailureMode(second, ACL_STOP_ON_FAILURE));
    aclrtEvent event = new_event(), never = new_event();
    OK(hostacl_hold(0));
    set(2, first);
    set(3, first); /* fails */
    set(4, first);
    OK(aclrtRecordEvent(event, first));
    OK(aclrtStreamWaitEvent(second, event));
    set(5, second);
    OK(hostacl_fail_task(2, 507015));
    OK(hostacl_release(0));
    EVENTUALLY(is_idle(first) && is_idle(second));
    CHECK(block_is(block, SIZE, 2));
    for (int round = 0; round < 2; round++) {
        CHECK_EQ(aclrtSynchronizeStream(first), 507015);
        CHECK_EQ(aclrtSynchronizeStream(second), 507015);
        CHECK_EQ(aclrtSynchronizeStream(NULL), 507015);
        CHECK_EQ(aclrtSynchronizeDevice(), 507015);
        CHECK_EQ(aclrtMemsetAsync(block, SIZE, 6, SIZE, second), 507015);
        CHECK_EQ(aclrtMemcpyAsync(block, SIZE, heap, SIZE, ACL_MEMCPY_HOST_TO_DEVICE, NULL), 507015);
        CHECK_EQ(aclrtRecordEvent(never, second), 507015);
    }
    CHECK(strstr(aclGetRecentErrMsg(), "stopped on failure: task 2 of stream 2"));
    CHECK_EQ(aclrtSynchronizeEvent(event), ACL_ERROR_RT_STREAM_ABORT);
    OK(aclrtSynchronizeEvent(never));
    OK(aclrtSetCurrentContext(other));
    set(7, far);
    OK(aclrtSynchronizeStream(far));
    CHECK(block_is(block, SIZE, 7));
    OK(aclrtDestroyContext(other));
    OK(aclrtSetCurrentContext(primary));
    OK(aclrtDestroyStream(first));
    OK(aclrtResetDevice(0));
    set_up("Ascend910B1"); /* a new context knows nothing of it */
    set(2, first);
    OK(aclrtSynchronizeStream(first));
    tear_down();
}

/* A task that waits is let go when another stream stops the context. */
static void test_stop_frees_waiting_streams(void) {
    aclrtNotify notify = NULL;
    set_up("Ascend910B1");
    OK(aclrtSetStreamFailureMode(first, ACL_STOP_ON_FAILURE));
    OK(aclrtCreateNotify(&notify, 0));
    OK(aclrtWaitAndResetNotify(notify, second, 0));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(second, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    OK(hostacl_fail_task(1, 507899));
    set(2, first);
    CHECK_EQ(aclrtSynchronizeStream(second), 507899);
    tear_down();
}

/* ---- The function that is called for a failing task ---- */

static uint32_t told[5];
static atomic_int tellings;

static void on_failure(aclrtExceptionInfo *info) {
    told[0] = aclrtGetTaskIdFromExceptionInfo(info);
    told[1] = aclrtGetStreamIdFromExceptionInfo(info);
    told[2] = aclrtGetThreadIdFromExceptionInfo(info);
    told[3] = aclrtGetDeviceIdFromExceptionInfo(info);
    told[4] = aclrtGetErrorCodeFromExceptionInfo(info);
    atomic_fetch_add(&tellings, 1);
}

static void test_exception_info(void) {
    set_up("Ascend910B1");
    OK(aclrtSetExceptionInfoCallback(on_failure));
    set(1, first);
    OK(hostacl_fail_task(2, 507015));
    OK(aclrtSynchronizeStream(first));
    set(1, first);
    set(1, first); /* fails or is failed for by the count */
    CHECK_EQ(aclrtSynchronizeStream(first), 507015);
    CHECK_EQ(tellings, 1);
    CHECK(told[1] == 2 && told[3] == 0 && told[4] == 507015);
    CHECK(told[0] == 2 || told[0] == 3);
    CHECK_EQ(told[2], syscall(SYS_gettid));
    OK(aclrtSetExceptionInfoCallback(NULL));
    OK(hostacl_fail_task(1, 507015));
    set(1, first);
    CHECK_EQ(aclrtSynchronizeStream(first), 507015);
    CHECK_EQ(tellings, 1);
    OK(aclrtSetExceptionInfoCallback(on_failure));
    tear_down();
    set_up("Ascend910B1"); /* hostacl_reset forgets the function */
    OK(hostacl_fail_task(1, 507015));
    set(1, first);
    CHECK_EQ(aclrtSynchronizeStream(first), 507015);
    CHECK_EQ(tellings, 1);
    CHECK_EQ(aclrtGetTaskIdFromExceptionInfo(NULL), 0xffffffff);
    CHECK_EQ(aclrtGetStreamIdFromExceptionInfo(NULL), 0xffffffff);
    CHECK_EQ(aclrtGetThreadIdFromExceptionInfo(NULL), 0xffffffff);
    CHECK_EQ(aclrtGetDeviceIdFromExceptionInfo(NULL), 0xffffffff);
    CHECK_EQ(aclrtGetErrorCodeFromExceptionInfo(NULL), 0xffffffff);
    tear_down();
}

int main(void) {
    test_first_failure_is_told_once();
    test_two_failures();
    test_waiting_copy_tells();
    test_failure_and_timeout();
    test_modes();
    test_stop();
    test_stop_frees_waiting_streams();
    test_exception_info();
    start(NULL);
    return check_done();
}
