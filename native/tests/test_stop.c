/* Stopping what a stream is at, and aborting everything on a device. */
#include "streams.h"

enum { SIZE = 64 };

static aclrtStream first, second;
static void *block;
static aclrtNotify notify;

static void set_up(void) {
    start("profile", "strict", NULL);
    OK(aclrtSetDevice(0));
    first = new_stream();
    second = new_stream();
    block = new_block(SIZE, 1);
    OK(aclrtCreateNotify(&notify, 0));
}

static void tear_down(void) {
    OK(aclrtResetDeviceForce(0));
    check_nothing_alive();
}

static void *wait_for_stream(void *stream) {
    OK(aclrtSetDevice(0));
    return (void *)(intptr_t)aclrtSynchronizeStream(stream);
}

/* Waits until another thread waits for a stream, as far as that can be seen. */
static void until_waited_for(void) {
    EVENTUALLY(hostacl_calls("aclrtSynchronizeStream") > 0);
    sleep_ms(LONG_MS);
}

/* The task under way ends, the one behind it runs; who waits is told. */
static void test_stop(void) {
    pthread_t waiter;
    void *code = NULL;
    set_up();
    OK(aclrtWaitAndResetNotify(notify, first, 0));
    OK(aclrtMemsetAsync(block, SIZE, 2, SIZE, first));
    CHECK(!pthread_create(&waiter, NULL, wait_for_stream, first));
    until_waited_for();
    OK(aclrtStreamStop(first));
    CHECK(!pthread_join(waiter, &code));
    CHECK_EQ((intptr_t)code, ACL_ERROR_RT_STREAM_ABORT);
    OK(aclrtSynchronizeStream(first));
    CHECK(block_is(block, SIZE, 2));
    OK(aclrtStreamStop(first));
    OK(aclrtMemsetAsync(block, SIZE, 3, SIZE, first));
    OK(aclrtSynchronizeStream(first));
    CHECK(block_is(block, SIZE, 3));
    tear_down();
}

/* A held stream is at nothing, so nothing ends; a stop does not bring back what an abort dropped. */
static void test_stop_of_held_stream(void) {
    set_up();
    OK(hostacl_hold(0));
    OK(aclrtMemsetAsync(block, SIZE, 2, SIZE, first));
    OK(aclrtStreamStop(first));
    OK(hostacl_release(0));
    OK(aclrtSynchronizeStream(first));
    CHECK(block_is(block, SIZE, 2));
    OK(aclrtWaitAndResetNotify(notify, first, 0));
    OK(aclrtMemsetAsync(block, SIZE, 3, SIZE, first));
    OK(aclrtStreamAbort(first));
    OK(aclrtStreamStop(first));
    OK(aclrtSynchronizeStream(first));
    CHECK(block_is(block, SIZE, 2));
    tear_down();
}

static atomic_int result;

static void stop_own_stream(void *stream) {
    atomic_store(&result, aclrtSetDevice(0) || aclrtStreamStop(stream));
}

static void test_stop_from_inside(void) {
    set_up();
    atomic_store(&result, 77);
    OK(aclrtLaunchHostFunc(first, stop_own_stream, first));
    OK(aclrtMemsetAsync(block, SIZE, 2, SIZE, first));
    CHECK(aclrtSynchronizeStream(first) == ACL_SUCCESS || aclrtSynchronizeStream(first) == ACL_SUCCESS);
    CHECK_EQ(result, 0);
    CHECK(block_is(block, SIZE, 2));
    tear_down();
}

static void test_device_abort(void) {
    aclrtContext other = NULL, own = NULL;
    set_up();
    OK(aclrtGetCurrentContext(&own));
    OK(aclrtWaitAndResetNotify(notify, first, 0));
    OK(aclrtMemsetAsync(block, SIZE, 2, SIZE, first));
    OK(aclrtWaitAndResetNotify(notify, second, 0));
    OK(aclrtCreateContext(&other, 0));
    aclrtStream third = new_stream();
    OK(aclrtMemsetAsync(block, SIZE, 3, SIZE, third));
    OK(aclrtSynchronizeStream(third));
    OK(aclrtWaitAndResetNotify(notify, third, 0));
    OK(aclrtSetCurrentContext(own));
    OK(aclrtDeviceTaskAbort(0, 10000));
    CHECK(is_idle(first) && is_idle(second) && is_idle(third));
    CHECK(block_is(block, SIZE, 3));
    OK(aclrtMemsetAsync(block, SIZE, 4, SIZE, second));
    OK(aclrtSynchronizeStream(second));
    CHECK(block_is(block, SIZE, 4));
    OK(aclrtDestroyContext(other));
    tear_down();
}

static void test_who_waits_is_told(void) {
    pthread_t waiter;
    void *code = NULL;
    set_up();
    OK(aclrtWaitAndResetNotify(notify, first, 0));
    CHECK(!pthread_create(&waiter, NULL, wait_for_stream, first));
    until_waited_for();
    OK(aclrtDeviceTaskAbort(0, 0));
    CHECK(!pthread_join(waiter, &code));
    CHECK_EQ((intptr_t)code, ACL_ERROR_RT_DEVICE_TASK_ABORT);
    tear_down();
}

static atomic_bool go;

static void wait_for_go(void *unused) {
    (void)unused;
    while (!atomic_load(&go))
        sched_yield();
}

static void test_abort_in_time(void) {
    set_up();
    atomic_store(&go, false);
    OK(aclrtLaunchHostFunc(first, wait_for_go, NULL));
    EVENTUALLY(aclrtSynchronizeStreamWithTimeout(first, 1) == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    sleep_ms(5);
    CHECK_EQ(aclrtDeviceTaskAbort(0, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    atomic_store(&go, true);
    OK(aclrtDeviceTaskAbort(0, 0));
    tear_down();
}

static void test_arguments(void) {
    start(NULL);
    CHECK_EQ(aclrtStreamStop(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtStreamStop(&block), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtDeviceTaskAbort(2, 0), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtDeviceTaskAbort(-1, 0), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtDeviceTaskAbort(0, 0), ACL_ERROR_RT_CONTEXT_NULL);
    OK(aclrtSetDevice(0));
    CHECK_EQ(aclrtStreamStop(&block), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(aclrtDeviceTaskAbort(1, 0), ACL_ERROR_RT_CONTEXT_NULL);
    OK(aclrtDeviceTaskAbort(0, 0));
    OK(aclrtResetDevice(0));
}

int main(void) {
    test_stop();
    test_stop_of_held_stream();
    test_stop_from_inside();
    test_device_abort();
    test_who_waits_is_told();
    test_abort_in_time();
    test_arguments();
    start(NULL);
    check_nothing_alive();
    return check_done();
}
