/* Callbacks through a reporting thread, and host functions. */
#include "streams.h"

enum { SIZE = 64 };

static aclrtStream stream;
static atomic_int calls;
static atomic_bool go;
static void *block;

static void set_up(void) {
    start(NULL);
    OK(aclrtSetDevice(0));
    stream = new_stream();
    block = new_block(SIZE, 1);
    atomic_store(&calls, 0);
    atomic_store(&go, false);
}

static void tear_down(void) {
    OK(aclrtResetDeviceForce(0));
    check_nothing_alive();
}

static uint64_t self(void) {
    return (uint64_t)pthread_self();
}

static void count(void *amount) {
    atomic_fetch_add(&calls, (int)(intptr_t)amount);
}

static void count_when_told(void *amount) {
    while (!atomic_load(&go))
        sched_yield();
    count(amount);
}

static void test_arguments(void) {
    start(NULL);
    CHECK_EQ(aclrtLaunchCallback(NULL, NULL, ACL_CALLBACK_BLOCK, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtLaunchCallback(count, NULL, (aclrtCallbackBlockType)2, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtLaunchCallback(count, NULL, ACL_CALLBACK_BLOCK, NULL), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtSubscribeReport(self(), NULL), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtUnSubscribeReport(self(), NULL), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtProcessReport(0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtProcessReport(-2), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtProcessReport(10), ACL_ERROR_RT_THREAD_SUBSCRIBE);
    CHECK_EQ(aclrtLaunchHostFunc(NULL, NULL, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtLaunchHostFunc(NULL, count, NULL), ACL_ERROR_RT_CONTEXT_NULL);
    set_up();
    CHECK_EQ(aclrtLaunchCallback(count, NULL, ACL_CALLBACK_BLOCK, stream), ACL_ERROR_RT_STREAM_NO_CB_REG);
    CHECK_EQ(aclrtUnSubscribeReport(self(), stream), ACL_ERROR_RT_THREAD_SUBSCRIBE);
    OK(aclrtSubscribeReport(self(), stream));
    CHECK_EQ(aclrtSubscribeReport(self(), stream), ACL_ERROR_RT_STREAM_SUBSCRIBE);
    CHECK_EQ(aclrtSubscribeReport(1, stream), ACL_ERROR_RT_STREAM_SUBSCRIBE);
    CHECK_EQ(aclrtUnSubscribeReport(1, stream), ACL_ERROR_RT_THREAD_SUBSCRIBE);
    CHECK_EQ(aclrtProcessReport(10), ACL_ERROR_RT_REPORT_TIMEOUT);
    OK(aclrtUnSubscribeReport(self(), stream));
    CHECK_EQ(aclrtProcessReport(10), ACL_ERROR_RT_THREAD_SUBSCRIBE);
    CHECK_EQ(aclrtLaunchCallback(count, NULL, ACL_CALLBACK_BLOCK, stream), ACL_ERROR_RT_STREAM_NO_CB_REG);
    CHECK_EQ(aclrtLaunchHostFunc(block, count, NULL), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(aclrtSubscribeReport(self(), block), ACL_ERROR_RT_INVALID_HANDLE);
    tear_down();
}

/* The callback comes after what is before it; with BLOCK what is behind it waits for its return. */
static void test_order(aclrtCallbackBlockType type) {
    set_up();
    OK(aclrtSubscribeReport(self(), stream));
    OK(aclrtMemsetAsync(block, SIZE, 2, SIZE, stream));
    OK(aclrtLaunchCallback(count, (void *)1, type, stream));
    OK(aclrtMemsetAsync(block, SIZE, 3, SIZE, stream));
    if (type == ACL_CALLBACK_BLOCK) {
        CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
        CHECK(block_is(block, SIZE, 2));
    } else {
        OK(aclrtSynchronizeStream(stream));
        CHECK(block_is(block, SIZE, 3));
    }
    CHECK_EQ(calls, 0);
    OK(aclrtProcessReport(-1));
    CHECK_EQ(calls, 1);
    OK(aclrtSynchronizeStream(stream));
    CHECK(block_is(block, SIZE, 3));
    CHECK_EQ(aclrtProcessReport(10), ACL_ERROR_RT_REPORT_TIMEOUT);
    tear_down();
}

static void *report(void *unused) {
    while (aclrtProcessReport(20000) == ACL_SUCCESS)
        continue;
    return unused;
}

struct reporting {
    atomic_bool subscribed; /* the thread may begin */
    uint64_t thread;        /* its number */
};

static void *report_when_subscribed(void *argument) {
    struct reporting *reporting = argument;
    while (!atomic_load(&reporting->subscribed))
        sched_yield();
    return report(NULL);
}

static void test_many_callbacks(void) {
    enum { MANY = 300 };
    struct reporting reporting = {false, 0};
    pthread_t reporter;
    set_up();
    aclrtStream other = new_stream();
    pthread_create(&reporter, NULL, report_when_subscribed, &reporting);
    OK(aclrtSubscribeReport((uint64_t)reporter, stream));
    OK(aclrtSubscribeReport((uint64_t)reporter, other));
    atomic_store(&reporting.subscribed, true);
    for (int i = 0; i < MANY; i++) {
        OK(aclrtLaunchCallback(count, (void *)1, i % 2 ? ACL_CALLBACK_BLOCK : ACL_CALLBACK_NO_BLOCK, stream));
        OK(aclrtLaunchCallback(count, (void *)1000, ACL_CALLBACK_BLOCK, other));
    }
    OK(aclrtSynchronizeDevice());
    EVENTUALLY(calls == MANY * 1001);
    OK(aclrtUnSubscribeReport((uint64_t)reporter, stream));
    OK(aclrtUnSubscribeReport((uint64_t)reporter, other));
    pthread_join(reporter, NULL); /* its wait ends with the last subscription */
    tear_down();
}

/* What its thread has not taken is dropped when it is no longer subscribed; the stream goes on. */
static void test_unsubscribe_with_callbacks(void) {
    set_up();
    OK(aclrtSubscribeReport(self(), stream));
    OK(aclrtLaunchCallback(count, (void *)1, ACL_CALLBACK_BLOCK, stream));
    OK(aclrtLaunchCallback(count, (void *)1, ACL_CALLBACK_BLOCK, stream));
    OK(aclrtMemsetAsync(block, SIZE, 2, SIZE, stream));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    OK(aclrtUnSubscribeReport(self(), stream));
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_STREAM_NO_CB_REG); /* of the second one */
    CHECK(block_is(block, SIZE, 2));
    CHECK_EQ(calls, 0);
    tear_down();
}

/* Neither force nor reset waits for a callback that nobody takes, and it is not called afterwards. */
static void test_dropped_callbacks(void) {
    for (int way = 0; way < 4; way++) {
        set_up();
        OK(aclrtSubscribeReport(self(), stream));
        OK(aclrtLaunchCallback(count, (void *)1, way % 2 ? ACL_CALLBACK_BLOCK : ACL_CALLBACK_NO_BLOCK, stream));
        OK(aclrtLaunchCallback(count, (void *)1, ACL_CALLBACK_BLOCK, stream));
        if (way < 2)
            OK(aclrtDestroyStreamForce(stream));
        OK(way == 3 ? aclrtResetDevice(0) : aclrtResetDeviceForce(0));
        CHECK_EQ(aclrtProcessReport(1), ACL_ERROR_RT_THREAD_SUBSCRIBE);
        CHECK_EQ(calls, 0);
        check_nothing_alive();
    }
}

static void unsubscribe_inside(void *amount) {
    count(amount);
    OK(aclrtSetDevice(0));
    OK(aclrtUnSubscribeReport(self(), stream));
}

static void test_callback_that_calls_the_runtime(void) {
    set_up();
    OK(aclrtSubscribeReport(self(), stream));
    OK(aclrtLaunchCallback(unsubscribe_inside, (void *)1, ACL_CALLBACK_BLOCK, stream));
    OK(aclrtProcessReport(-1));
    CHECK_EQ(calls, 1);
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(aclrtProcessReport(-1), ACL_ERROR_RT_THREAD_SUBSCRIBE);
    tear_down();
}

/* ---- Host functions ---- */

static void test_host_function(void) {
    set_up();
    OK(aclrtMemsetAsync(block, SIZE, 2, SIZE, stream));
    OK(aclrtLaunchHostFunc(stream, count_when_told, (void *)1));
    OK(aclrtMemsetAsync(block, SIZE, 3, SIZE, stream));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    CHECK(block_is(block, SIZE, 2) && calls == 0);
    atomic_store(&go, true);
    OK(aclrtSynchronizeStream(stream));
    CHECK(block_is(block, SIZE, 3) && calls == 1);
    OK(aclrtLaunchHostFunc(NULL, count, (void *)1));
    OK(aclrtSynchronizeStream(NULL));
    CHECK_EQ(calls, 2);
    tear_down();
}

static int inner_codes[6];

static void wait_for_itself(void *unused) {
    uint8_t heap[8] = {0};
    (void)unused;
    inner_codes[0] = aclrtSynchronizeStream(stream); /* no context on this thread */
    OK(aclrtSetDevice(0));
    inner_codes[1] = aclrtSynchronizeStream(stream);
    inner_codes[2] = aclrtDestroyStream(stream);
    inner_codes[3] = aclrtMemcpyAsync(block, 8, heap, 8, ACL_MEMCPY_HOST_TO_DEVICE, stream);
    inner_codes[4] = aclrtGetLastError(ACL_RT_THREAD_LEVEL);
    inner_codes[5] = aclrtMemsetAsync(block, SIZE, 9, SIZE, stream);
}

/* A host function may call the runtime; waiting for its own stream is refused, not a hang. */
static void test_host_function_that_calls_the_runtime(void) {
    set_up();
    OK(aclrtLaunchHostFunc(stream, wait_for_itself, NULL));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(inner_codes[0], ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(inner_codes[1], ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(inner_codes[2], ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(inner_codes[3], ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(inner_codes[4], ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(inner_codes[5], ACL_SUCCESS);
    CHECK(block_is(block, SIZE, 9));
    CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS);
    OK(aclrtResetDevice(0));
    tear_down();
}

static void force_own_end(void *unused) {
    (void)unused;
    OK(aclrtSetDevice(0));
    count_when_told((void *)1);
    OK(aclrtDestroyStreamForce(stream));
    count((void *)1);
}

static void reset_from_inside(void *unused) {
    (void)unused;
    OK(aclrtResetDeviceForce(0));
    count((void *)1);
}

/* A host function may end its own stream, even its device. */
static void test_host_function_that_ends_its_stream(void) {
    set_up();
    OK(aclrtLaunchHostFunc(stream, force_own_end, NULL));
    OK(aclrtMemsetAsync(block, SIZE, 9, SIZE, stream));
    atomic_store(&go, true);
    EVENTUALLY(calls == 2);
    CHECK(block_is(block, SIZE, 1));
    OK(aclrtResetDeviceForce(0));
    EVENTUALLY(live_now().tasks == 0);
    set_up();
    OK(aclrtLaunchHostFunc(stream, reset_from_inside, NULL));
    EVENTUALLY(calls == 1);
    EVENTUALLY(live_now().tasks == 0);
    check_nothing_alive();
}

int main(void) {
    test_arguments();
    test_order(ACL_CALLBACK_BLOCK);
    test_order(ACL_CALLBACK_NO_BLOCK);
    test_many_callbacks();
    test_unsubscribe_with_callbacks();
    test_dropped_callbacks();
    test_callback_that_calls_the_runtime();
    test_host_function();
    test_host_function_that_calls_the_runtime();
    test_host_function_that_ends_its_stream();
    start(NULL);
    return check_done();
}
