/* Host functions that a thread of the program calls in aclrtProcessHostFunc. */
#include "streams.h"

enum { SIZE = 64 };

static aclrtStream stream;
static void *block;
static atomic_int calls;
static _Atomic uint64_t caller;

static void set_up(void) {
    start(NULL);
    OK(aclrtSetDevice(0));
    stream = new_stream();
    block = new_block(SIZE, 1);
    atomic_store(&calls, 0);
    atomic_store(&caller, 0);
}

static void tear_down(void) {
    OK(aclrtResetDeviceForce(0));
    check_nothing_alive();
}

static uint64_t self(void) {
    return (uint64_t)pthread_self();
}

static void count(void *amount) {
    atomic_store(&caller, self());
    atomic_fetch_add(&calls, (int)(intptr_t)amount);
}

static void test_arguments(void) {
    start(NULL);
    CHECK_EQ(aclrtSubscribeHostFunc(self(), NULL), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtUnSubscribeHostFunc(self(), NULL), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtProcessHostFunc(0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtProcessHostFunc(10), ACL_ERROR_RT_THREAD_SUBSCRIBE);
    set_up();
    CHECK_EQ(aclrtUnSubscribeHostFunc(self(), stream), ACL_ERROR_RT_THREAD_SUBSCRIBE);
    OK(aclrtSubscribeHostFunc(self(), stream));
    CHECK_EQ(aclrtSubscribeHostFunc(self(), stream), ACL_ERROR_RT_STREAM_SUBSCRIBE);
    CHECK_EQ(aclrtUnSubscribeHostFunc(1, stream), ACL_ERROR_RT_THREAD_SUBSCRIBE);
    CHECK_EQ(aclrtSubscribeHostFunc(self(), block), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(aclrtProcessHostFunc(10), ACL_ERROR_RT_REPORT_TIMEOUT);
    OK(aclrtUnSubscribeHostFunc(self(), stream));
    CHECK_EQ(aclrtProcessHostFunc(10), ACL_ERROR_RT_THREAD_SUBSCRIBE);
    tear_down();
}

/* The stream waits for the call, which this thread makes. */
static void test_order(void) {
    set_up();
    OK(aclrtSubscribeHostFunc(self(), stream));
    OK(aclrtLaunchHostFunc(stream, count, (void *)1));
    OK(aclrtMemsetAsync(block, SIZE, 2, SIZE, stream));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    CHECK(calls == 0 && block_is(block, SIZE, 1));
    OK(aclrtProcessHostFunc(-1));
    OK(aclrtSynchronizeStream(stream));
    CHECK(calls == 1 && caller == self() && block_is(block, SIZE, 2));
    OK(aclrtUnSubscribeHostFunc(self(), stream));
    OK(aclrtLaunchHostFunc(stream, count, (void *)1));
    OK(aclrtSynchronizeStream(stream));
    CHECK(calls == 2 && caller != self());
    tear_down();
}

/* Callbacks and host functions of one stream go separate ways. */
static void test_both_kinds(void) {
    set_up();
    OK(aclrtSubscribeReport(self(), stream));
    OK(aclrtLaunchHostFunc(stream, count, (void *)1));
    OK(aclrtSynchronizeStream(stream));
    CHECK(calls == 1 && caller != self());
    OK(aclrtSubscribeHostFunc(self(), stream));
    OK(aclrtLaunchCallback(count, (void *)10, ACL_CALLBACK_NO_BLOCK, stream));
    OK(aclrtLaunchHostFunc(stream, count, (void *)100));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    OK(aclrtProcessHostFunc(1000));
    CHECK_EQ(calls, 101);
    CHECK_EQ(aclrtProcessHostFunc(10), ACL_ERROR_RT_REPORT_TIMEOUT);
    OK(aclrtProcessReport(1000));
    CHECK_EQ(calls, 111);
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtUnSubscribeReport(self(), stream));
    CHECK_EQ(aclrtProcessReport(10), ACL_ERROR_RT_THREAD_SUBSCRIBE);
    CHECK_EQ(aclrtProcessHostFunc(10), ACL_ERROR_RT_REPORT_TIMEOUT);
    tear_down();
}

static atomic_bool over;

static void *process(void *unused) {
    while (!atomic_load(&over))
        aclrtProcessHostFunc(20);
    return unused;
}

static void test_thread_of_the_program(void) {
    enum { MANY = 100 };
    pthread_t thread;
    set_up();
    atomic_store(&over, false);
    CHECK(!pthread_create(&thread, NULL, process, NULL));
    OK(aclrtSubscribeHostFunc((uint64_t)thread, stream));
    for (int i = 0; i < MANY; i++)
        OK(aclrtLaunchHostFunc(stream, count, (void *)1));
    OK(aclrtSynchronizeStream(stream));
    CHECK(calls == MANY && caller == (uint64_t)thread);
    OK(aclrtUnSubscribeHostFunc((uint64_t)thread, stream));
    atomic_store(&over, true);
    CHECK(!pthread_join(thread, NULL));
    tear_down();
}

/* What nobody took is dropped with the subscription or the stream. */
static void test_ends(void) {
    set_up();
    OK(aclrtSubscribeHostFunc(self(), stream));
    OK(aclrtLaunchHostFunc(stream, count, (void *)1));
    EVENTUALLY(aclrtSynchronizeStreamWithTimeout(stream, 1) == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    OK(aclrtUnSubscribeHostFunc(self(), stream));
    int code = aclrtSynchronizeStream(stream);
    CHECK(code == ACL_SUCCESS || code == ACL_ERROR_RT_STREAM_NO_CB_REG);
    OK(aclrtSubscribeHostFunc(self(), stream));
    OK(aclrtLaunchHostFunc(stream, count, (void *)1));
    OK(aclrtDestroyStreamForce(stream));
    CHECK_EQ(aclrtProcessHostFunc(10), ACL_ERROR_RT_THREAD_SUBSCRIBE);
    CHECK_EQ(calls, 0);
    tear_down();
}

int main(void) {
    test_arguments();
    test_order();
    test_both_kinds();
    test_thread_of_the_program();
    test_ends();
    start(NULL);
    check_nothing_alive();
    return check_done();
}
