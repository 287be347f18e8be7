/* Streams: making, asking, synchronising, destroying, aborting. */
#include "streams.h"

static void test_create(void) {
    aclrtStream a = NULL, b = NULL, none = (aclrtStream)7;
    int32_t id = -1;
    uint32_t priority = 99, flags = 99;
    int32_t least = -1, greatest = -1;
    start(NULL);
    CHECK_EQ(aclrtCreateStream(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtCreateStream(&none), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtCreateStreamWithConfig(&none, 0, 0), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtDeviceGetStreamPriorityRange(&least, &greatest), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK(none == (aclrtStream)7);
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&a));
    OK(aclrtCreateStreamWithConfig(&b, 99, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
    CHECK(a && b && a != b);
    OK(aclrtStreamGetId(NULL, &id));
    CHECK_EQ(id, 0);
    OK(aclrtStreamGetId(a, &id));
    CHECK_EQ(id, 2);
    OK(aclrtStreamGetId(b, &id));
    CHECK_EQ(id, 3);
    OK(aclrtStreamGetPriority(a, &priority));
    OK(aclrtStreamGetFlags(a, &flags));
    CHECK(priority == 0 && flags == 0);
    OK(aclrtStreamGetPriority(b, &priority));
    OK(aclrtStreamGetFlags(b, &flags));
    CHECK(priority == 7 && flags == 3);
    OK(aclrtStreamGetPriority(NULL, &priority));
    CHECK_EQ(priority, 0);
    OK(aclrtDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(least == 7 && greatest == 0);
    CHECK_EQ(aclrtStreamGetId(a, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtStreamGetPriority(a, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtStreamGetFlags(a, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtStreamQuery(a, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtDeviceGetStreamPriorityRange(NULL, &greatest), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtDeviceGetStreamPriorityRange(&least, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(live_now().streams, 2);
    OK(aclrtDestroyStream(a));
    a = new_stream();
    OK(aclrtStreamGetId(a, &id));
    CHECK_EQ(id, 2);
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

/* Numbers belong to the device: a second context's default stream takes the next one. */
static void test_default_stream(void) {
    aclrtStream first = NULL, again = NULL, second = NULL;
    aclrtContext context = NULL, primary = NULL;
    int32_t id = -1;
    start(NULL);
    CHECK_EQ(aclrtCtxGetCurrentDefaultStream(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtCtxGetCurrentDefaultStream(&first), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtSynchronizeStream(NULL), ACL_ERROR_RT_CONTEXT_NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtGetCurrentContext(&primary));
    OK(aclrtCtxGetCurrentDefaultStream(&first));
    OK(aclrtCtxGetCurrentDefaultStream(&again));
    CHECK(first && first == again);
    OK(aclrtSynchronizeStream(first));
    CHECK(is_idle(first) && is_idle(NULL));
    OK(aclrtCreateContext(&context, 0));
    OK(aclrtCtxGetCurrentDefaultStream(&second));
    CHECK(second && second != first);
    OK(aclrtStreamGetId(second, &id));
    CHECK_EQ(id, 2);
    CHECK_EQ(aclrtDestroyStream(first), ACL_ERROR_RT_STREAM_CONTEXT);
    CHECK_EQ(live_now().streams, 0);
    OK(aclrtSetCurrentContext(primary));
    OK(aclrtDestroyContext(context));
    CHECK_EQ(aclrtStreamGetId(second, &id), ACL_ERROR_RT_INVALID_HANDLE);
    OK(aclrtResetDevice(0));
    CHECK_EQ(aclrtDestroyStream(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtDestroyStreamForce(NULL), ACL_ERROR_INVALID_PARAM);
}

static void test_destroying_the_default_stream(const char *profile, int code) {
    aclrtStream stream = NULL;
    start("profile", profile, NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtCtxGetCurrentDefaultStream(&stream));
    CHECK_EQ(aclrtDestroyStream(stream), code);
    CHECK_EQ(aclrtSynchronizeStream(stream), code ? ACL_SUCCESS : ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(aclrtSynchronizeStream(NULL), code ? ACL_SUCCESS : ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(aclrtDestroyStreamForce(stream), code ? code : ACL_ERROR_RT_INVALID_HANDLE);
    OK(aclrtSynchronizeDevice());
    OK(aclrtResetDevice(0));
    CHECK_EQ(live_now().streams, 0);
}

static void test_handles(void) {
    uint64_t heap[16] = {0};
    aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
    uint32_t value = 7;
    start(NULL);
    OK(aclrtSetDevice(0));
    aclrtStream stream = new_stream();
    aclrtEvent event = new_event();
    OK(aclrtDestroyStream(stream));
    aclrtStream dead[] = {stream, heap, event, (aclrtStream)1};
    for (size_t i = 0; i < sizeof(dead) / sizeof(dead[0]); i++) {
        CHECK_EQ(aclrtDestroyStream(dead[i]), ACL_ERROR_RT_INVALID_HANDLE);
        CHECK_EQ(aclrtDestroyStreamForce(dead[i]), ACL_ERROR_RT_INVALID_HANDLE);
        CHECK_EQ(aclrtSynchronizeStream(dead[i]), ACL_ERROR_RT_INVALID_HANDLE);
        CHECK_EQ(aclrtSynchronizeStreamWithTimeout(dead[i], 10), ACL_ERROR_RT_INVALID_HANDLE);
        CHECK_EQ(aclrtStreamQuery(dead[i], &status), ACL_ERROR_RT_INVALID_HANDLE);
        CHECK_EQ(aclrtStreamGetFlags(dead[i], &value), ACL_ERROR_RT_INVALID_HANDLE);
        CHECK_EQ(aclrtStreamAbort(dead[i]), ACL_ERROR_RT_INVALID_HANDLE);
        CHECK_EQ(aclrtRecordEvent(event, dead[i]), ACL_ERROR_RT_INVALID_HANDLE);
        CHECK_EQ(aclrtSetStreamFailureMode(dead[i], 0), ACL_ERROR_RT_INVALID_HANDLE);
    }
    CHECK(status == ACL_STREAM_STATUS_RESERVED && value == 7);
    CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK(strstr(aclGetRecentErrMsg(), "EE1003: aclrtSetStreamFailureMode: stream"));
    OK(aclrtResetDevice(0));
}

/* What is asked of a stream needs no context of its own, what is done with it does. */
static void test_other_context(void) {
    aclrtContext primary = NULL, other = NULL;
    int32_t id = -1;
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtGetCurrentContext(&primary));
    aclrtStream stream = new_stream();
    aclrtEvent event = new_event();
    OK(aclrtCreateContext(&other, 1));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtSynchronizeStreamWithTimeout(stream, 100));
    CHECK(is_idle(stream));
    OK(aclrtStreamGetId(stream, &id));
    CHECK_EQ(aclrtRecordEvent(event, stream), ACL_ERROR_RT_STREAM_CONTEXT);
    CHECK_EQ(aclrtStreamWaitEvent(stream, event), ACL_ERROR_RT_STREAM_CONTEXT);
    CHECK_EQ(aclrtDestroyStream(stream), ACL_ERROR_RT_STREAM_CONTEXT);
    CHECK_EQ(aclrtDestroyStreamForce(stream), ACL_ERROR_RT_STREAM_CONTEXT);
    CHECK_EQ(aclrtStreamAbort(stream), ACL_ERROR_RT_STREAM_CONTEXT);
    CHECK_EQ(aclrtSetStreamFailureMode(stream, 1), ACL_ERROR_RT_STREAM_CONTEXT);
    CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_STREAM_CONTEXT);
    OK(aclrtSetCurrentContext(primary));
    OK(aclrtDestroyContext(other));
    OK(aclrtDestroyStream(stream));
    OK(aclrtResetDevice(0));
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_CONTEXT_NULL);
    check_nothing_alive();
}

/* A device has 1984 streams: the default one, the runtime's own one and those a program makes. */
static void test_limit(void) {
    enum { MINE = 1982 };
    static aclrtStream streams[MINE];
    aclrtStream more = NULL;
    aclrtContext context = NULL;
    start(NULL);
    OK(aclrtSetDevice(0));
    for (int i = 0; i < MINE; i++)
        streams[i] = new_stream();
    CHECK_EQ(aclrtCreateStream(&more), ACL_ERROR_RT_NO_STREAM_RESOURCE);
    CHECK_EQ(aclrtCreateContext(&context, 0), ACL_ERROR_RT_NO_STREAM_RESOURCE);
    CHECK(!more && !context);
    CHECK_EQ(live_now().contexts, 0);
    OK(aclrtDestroyStream(streams[1000]));
    OK(aclrtCreateStream(&more));
    OK(aclrtSetDevice(1));
    OK(aclrtCreateStream(&more));
    OK(aclrtResetDevice(0));
    OK(aclrtResetDevice(1));
    check_nothing_alive();
}

static void test_timeouts(void) {
    start(NULL);
    OK(aclrtSetDevice(0));
    aclrtStream stream = new_stream();
    aclrtEvent event = new_event();
    static const int32_t bad[] = {0, -2, -100, INT32_MIN};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, bad[i]), ACL_ERROR_RT_PARAM_INVALID);
        CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), bad[i] ? ACL_SUCCESS : ACL_ERROR_RT_PARAM_INVALID);
        CHECK_EQ(aclrtSynchronizeDeviceWithTimeout(bad[i]), ACL_ERROR_RT_PARAM_INVALID);
        CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), bad[i] ? ACL_SUCCESS : ACL_ERROR_RT_PARAM_INVALID);
    }
    OK(hostacl_hold(-1));
    OK(aclrtSynchronizeStreamWithTimeout(stream, 1));
    OK(aclrtRecordEvent(event, stream));
    CHECK(!is_idle(stream) && is_idle(NULL));
    CHECK_EQ(live_now().tasks, 1);
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    CHECK_EQ(aclrtSynchronizeDeviceWithTimeout(20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    OK(hostacl_release(-1));
    OK(aclrtSynchronizeStreamWithTimeout(stream, 20000));
    OK(aclrtSynchronizeDeviceWithTimeout(20000));
    CHECK(is_idle(stream));
    CHECK_EQ(live_now().tasks, 0);
    OK(aclrtResetDevice(0));
    CHECK_EQ(aclrtSynchronizeDevice(), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtSynchronizeDeviceWithTimeout(10), ACL_ERROR_RT_CONTEXT_NULL);
}

/* Streams that nobody waits for: synchronise returns at once. */
static void test_flags_without_synchronise(void) {
    static const uint32_t flags[] = {ACL_STREAM_PERSISTENT, ACL_STREAM_CPU_SCHEDULE, ACL_STREAM_DEVICE_USE_ONLY};
    start(NULL);
    OK(aclrtSetDevice(0));
    aclrtEvent event = new_event();
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        aclrtStream stream = NULL;
        OK(aclrtCreateStreamWithConfig(&stream, 0, flags[i]));
        OK(hostacl_hold(0));
        OK(aclrtRecordEvent(event, stream));
        OK(aclrtSynchronizeStream(stream));
        OK(aclrtSynchronizeDevice());
        CHECK(!is_idle(stream));
        OK(hostacl_release(0));
        OK(aclrtDestroyStream(stream));
    }
    OK(aclrtResetDevice(0));
}

/* SynchronizeDevice waits for all streams of the current context and for no others. */
static void test_synchronize_device(void) {
    aclrtContext primary = NULL, other = NULL;
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtGetCurrentContext(&primary));
    aclrtStream first = new_stream();
    aclrtEvent event = new_event();
    OK(aclrtCreateContext(&other, 0));
    OK(hostacl_hold(0));
    aclrtStream second = new_stream();
    OK(aclrtRecordEvent(event, second));
    OK(aclrtSetCurrentContext(primary));
    OK(aclrtRecordEvent(event, first));
    CHECK_EQ(aclrtSynchronizeDeviceWithTimeout(20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    OK(aclrtRecordEvent(event, NULL));
    OK(hostacl_delay_task("aclrtRecordEvent", LONG_MS * 1000));
    OK(hostacl_release(0));
    OK(aclrtSynchronizeDevice());
    CHECK(is_idle(first) && is_idle(NULL));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

/* Destroy waits for what is queued, with force it drops it; both work on held streams. */
static void test_destroy_with_work(void) {
    enum { SIZE = 4096 };
    start(NULL);
    OK(aclrtSetDevice(0));
    void *block = new_block(SIZE, 1);
    for (int force = 0; force < 2; force++) {
        aclrtStream stream = new_stream();
        OK(hostacl_hold(0));
        OK(aclrtMemset(block, SIZE, 1, SIZE));
        OK(aclrtMemsetAsync(block, SIZE, 2, SIZE, stream));
        CHECK(block_is(block, SIZE, 1));
        OK(force ? aclrtDestroyStreamForce(stream) : aclrtDestroyStream(stream));
        CHECK(block_is(block, SIZE, force ? 1 : 2));
        CHECK_EQ(live_now().tasks, 0);
        OK(hostacl_release(0));
        CHECK(block_is(block, SIZE, force ? 1 : 2));
    }
    OK(aclrtFree(block));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

static void *synchronize(void *stream) {
    OK(aclrtSetDevice(0));
    return (void *)(intptr_t)aclrtSynchronizeStream(stream);
}

/* A thread that waits for a stream which is destroyed by force, or aborted, is let go with an error. */
static void test_dropping_under_a_waiter(void) {
    for (int abort = 0; abort < 2; abort++) {
        pthread_t waiter;
        void *code = NULL;
        start(NULL);
        OK(aclrtSetDevice(0));
        aclrtStream stream = new_stream();
        aclrtEvent event = new_event();
        OK(hostacl_hold(0));
        OK(aclrtRecordEvent(event, stream));
        uint64_t calls = hostacl_calls("aclrtSynchronizeStream");
        pthread_create(&waiter, NULL, synchronize, stream);
        EVENTUALLY(hostacl_calls("aclrtSynchronizeStream") > calls);
        sleep_ms(LONG_MS);
        OK(abort ? aclrtStreamAbort(stream) : aclrtDestroyStreamForce(stream));
        pthread_join(waiter, &code);
        CHECK_EQ((intptr_t)code, ACL_ERROR_RT_STREAM_ABORT);
        OK(aclrtResetDeviceForce(0));
        check_nothing_alive();
    }
}

/* An aborted stream is empty and goes on; what failed before is forgotten. */
static void test_abort(void) {
    enum { SIZE = 64 };
    start(NULL);
    CHECK_EQ(aclrtStreamAbort(NULL), ACL_ERROR_INVALID_PARAM);
    OK(aclrtSetDevice(0));
    void *block = new_block(SIZE, 1);
    aclrtStream stream = new_stream();
    aclrtEvent event = new_event();
    OK(aclrtStreamAbort(stream));
    OK(hostacl_fail_task(1, 507899));
    OK(aclrtMemsetAsync(block, SIZE, 9, SIZE, stream));
    EVENTUALLY(is_idle(stream));
    OK(hostacl_hold(0));
    OK(aclrtMemsetAsync(block, SIZE, 2, SIZE, stream));
    OK(aclrtRecordEvent(event, stream));
    OK(aclrtStreamAbort(stream));
    CHECK(is_idle(stream));
    OK(aclrtSynchronizeStream(stream));
    OK(hostacl_release(0));
    OK(aclrtMemsetAsync(block, SIZE, 3, SIZE, stream));
    OK(aclrtSynchronizeStream(stream));
    CHECK(block_is(block, SIZE, 3));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

static unsigned states[4];
static aclrtStream seen;

static void on_state(aclrtStream stream, aclrtStreamState state, void *args) {
    seen = stream;
    states[state] += (unsigned)(uintptr_t)args;
}

static void test_state_callbacks(void) {
    start(NULL);
    CHECK_EQ(aclrtRegStreamStateCallback(NULL, on_state, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtRegStreamStateCallback("a", NULL, NULL), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtRegStreamStateCallback("a", on_state, (void *)1));
    CHECK_EQ(aclrtRegStreamStateCallback("a", on_state, (void *)1), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtRegStreamStateCallback("b", on_state, (void *)10));
    OK(aclrtSetDevice(0));
    CHECK_EQ(states[ACL_RT_STREAM_STATE_CREATE_POST], 0);
    aclrtStream stream = new_stream();
    CHECK(states[ACL_RT_STREAM_STATE_CREATE_POST] == 11 && seen == stream);
    CHECK_EQ(aclrtDestroyStream((aclrtStream)3), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(states[ACL_RT_STREAM_STATE_DESTROY_PRE], 0);
    seen = NULL;
    OK(aclrtDestroyStream(stream));
    CHECK(states[ACL_RT_STREAM_STATE_DESTROY_PRE] == 11 && seen == stream);
    OK(aclrtRegStreamStateCallback("a", NULL, NULL));
    OK(aclrtDestroyStreamForce(new_stream()));
    CHECK_EQ(states[ACL_RT_STREAM_STATE_CREATE_POST], 21);
    CHECK_EQ(states[ACL_RT_STREAM_STATE_DESTROY_PRE], 21);
    OK(aclrtResetDevice(0));
    OK(hostacl_reset());
    OK(aclrtSetDevice(0));
    OK(aclrtDestroyStream(new_stream()));
    CHECK_EQ(states[ACL_RT_STREAM_STATE_CREATE_POST], 21);
    OK(aclrtResetDevice(0));
}

static void test_report(void) {
    char text[2048], line[128];
    start(NULL);
    OK(aclrtSetDevice(1));
    aclrtStream stream = new_stream();
    aclrtEvent event = new_event();
    aclrtNotify notify = NULL;
    OK(aclrtCreateNotify(&notify, 0));
    OK(hostacl_hold(1));
    OK(aclrtRecordEvent(event, stream));
    OK(aclrtRecordEvent(event, NULL));
    CHECK(hostacl_live_report(text, sizeof(text)) < (int)sizeof(text));
    snprintf(line, sizeof(line), "\nstream %p: number 2, device 1, 1 tasks left, held\n", stream);
    CHECK(strstr(text, line));
    CHECK(strstr(text, "\ndefault stream 0x") && strstr(text, ": number 0, device 1, 1 tasks left, held\n"));
    snprintf(line, sizeof(line), "\nevent %p: flags 0xb, device 1\n", event);
    CHECK(strstr(text, line));
    snprintf(line, sizeof(line), "\nnotify %p: device 1\n", notify);
    CHECK(strstr(text, line));
    hostacl_live_t live = live_now();
    CHECK(live.streams == 1 && live.tasks == 2 && live.events == 1 && live.notifies == 1);
    OK(aclrtResetDevice(1));
    check_nothing_alive();
}

int main(void) {
    test_create();
    test_default_stream();
    test_destroying_the_default_stream("strict", ACL_ERROR_RT_PARAM_INVALID);
    test_destroying_the_default_stream("card", ACL_SUCCESS);
    test_handles();
    test_other_context();
    test_limit();
    test_timeouts();
    test_flags_without_synchronise();
    test_synchronize_device();
    test_destroy_with_work();
    test_dropping_under_a_waiter();
    test_abort();
    test_state_callbacks();
    test_report();
    start(NULL);
    return check_done();
}
