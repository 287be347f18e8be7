/* Events: recording, waiting, asking, measuring. */
#include "streams.h"

enum { SIZE = 4096 };

static aclrtStream first, second;

static void set_up(void) {
    start(NULL);
    OK(aclrtSetDevice(0));
    first = new_stream();
    second = new_stream();
}

static void tear_down(void) {
    OK(aclrtResetDeviceForce(0));
    check_nothing_alive();
}

static aclrtEvent flagged(uint32_t flag) {
    aclrtEvent event = NULL;
    OK(aclrtCreateEventWithFlag(&event, flag));
    return event;
}

static aclrtEvent extended(uint32_t flag) {
    aclrtEvent event = NULL;
    OK(aclrtCreateEventExWithFlag(&event, flag));
    return event;
}

static bool is_done(aclrtEvent event) {
    aclrtEventRecordedStatus status = (aclrtEventRecordedStatus)7;
    OK(aclrtQueryEventStatus(event, &status));
    return status == ACL_EVENT_RECORDED_STATUS_COMPLETE;
}

static void test_arguments(void) {
    aclrtEvent event = NULL, none = (aclrtEvent)7;
    aclrtEventRecordedStatus status = (aclrtEventRecordedStatus)7;
    aclrtEventWaitStatus wait_status = ACL_EVENT_WAIT_STATUS_RESERVED;
    uint64_t timestamp = 7;
    float ms = 7;
    start(NULL);
    CHECK_EQ(aclrtCreateEvent(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtCreateEventWithFlag(NULL, 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtCreateEventExWithFlag(NULL, 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtCreateEvent(&none), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtCreateEventWithFlag(&none, 1), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtCreateEventExWithFlag(&none, 1), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK(none == (aclrtEvent)7);
    set_up();
    event = new_event();
    CHECK_EQ(aclrtDestroyEvent(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtRecordEvent(NULL, first), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtRecordEventWithFlag(NULL, first, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtRecordEventWithFlag(event, first, 2), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtResetEvent(NULL, first), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtStreamWaitEvent(first, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtStreamWaitEventWithFlag(first, NULL, 0, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtStreamWaitEventWithFlag(first, event, 0, 2), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtSynchronizeEvent(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtSynchronizeEventWithTimeout(NULL, 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtSynchronizeEventWithTimeout(event, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtSynchronizeEventWithTimeout(event, -2), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtQueryEventStatus(NULL, &status), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtQueryEventStatus(event, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtQueryEventWaitStatus(NULL, &wait_status), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtQueryEventWaitStatus(event, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtEventElapsedTime(NULL, event, event), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtEventElapsedTime(&ms, NULL, event), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtEventElapsedTime(&ms, event, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtEventGetTimestamp(NULL, &timestamp), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtEventGetTimestamp(event, NULL), ACL_ERROR_INVALID_PARAM);
    OK(aclrtDestroyEvent(event));
    aclrtEvent dead[] = {event, first, &event};
    for (size_t i = 0; i < sizeof(dead) / sizeof(dead[0]); i++) {
        CHECK_EQ(aclrtDestroyEvent(dead[i]), ACL_ERROR_RT_INVALID_HANDLE);
        CHECK_EQ(aclrtRecordEvent(dead[i], second), ACL_ERROR_RT_INVALID_HANDLE);
        CHECK_EQ(aclrtResetEvent(dead[i], second), ACL_ERROR_RT_INVALID_HANDLE);
        CHECK_EQ(aclrtStreamWaitEvent(second, dead[i]), ACL_ERROR_RT_INVALID_HANDLE);
        CHECK_EQ(aclrtSynchronizeEvent(dead[i]), ACL_ERROR_RT_INVALID_HANDLE);
        CHECK_EQ(aclrtQueryEventStatus(dead[i], &status), ACL_ERROR_RT_INVALID_HANDLE);
        CHECK_EQ(aclrtQueryEventWaitStatus(dead[i], &wait_status), ACL_ERROR_RT_INVALID_HANDLE);
        CHECK_EQ(aclrtEventElapsedTime(&ms, dead[i], dead[i]), ACL_ERROR_RT_INVALID_HANDLE);
        CHECK_EQ(aclrtEventGetTimestamp(dead[i], &timestamp), ACL_ERROR_RT_INVALID_HANDLE);
    }
    CHECK(status == 7 && wait_status == ACL_EVENT_WAIT_STATUS_RESERVED && timestamp == 7 && ms == 7);
    CHECK(is_idle(first) && is_idle(second));
    tear_down();
    CHECK_EQ(aclrtQueryEventStatus(event, &status), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtDestroyEvent(event), ACL_ERROR_RT_INVALID_HANDLE);
}

static void test_flags(void) {
    set_up();
    for (uint32_t flag = 0; flag < 130; flag++) {
        aclrtEvent event = (aclrtEvent)7;
        bool plain = flag && !(flag & ~(ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE));
        int code = plain || flag == ACL_EVENT_EXTERNAL ? ACL_SUCCESS
                   : flag == ACL_EVENT_DEVICE_USE_ONLY ? ACL_ERROR_RT_FEATURE_NOT_SUPPORT
                                                       : ACL_ERROR_RT_PARAM_INVALID;
        CHECK_EQ(aclrtCreateEventWithFlag(&event, flag), code);
        CHECK(code ? event == (aclrtEvent)7 : event != (aclrtEvent)7);
    }
    for (uint32_t flag = 0; flag < 130; flag++) {
        aclrtEvent event = (aclrtEvent)7;
        bool plain = flag && !(flag & ~(ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE));
        if (flag == ACL_EVENT_IPC)
            continue;
        CHECK_EQ(aclrtCreateEventExWithFlag(&event, flag), plain ? ACL_SUCCESS : ACL_ERROR_RT_PARAM_INVALID);
    }
    CHECK_EQ(live_now().events, 7 + 1 + 7);
    tear_down();
}

/* An event that was never recorded keeps nobody waiting. */
static void test_never_recorded(void) {
    aclrtEventWaitStatus status = ACL_EVENT_WAIT_STATUS_RESERVED;
    set_up();
    aclrtEvent events[] = {new_event(), flagged(ACL_EVENT_SYNC), extended(ACL_EVENT_SYNC)};
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(is_done(events[i]), i == 2);
        OK(aclrtSynchronizeEvent(events[i]));
        OK(aclrtSynchronizeEventWithTimeout(events[i], 1));
        OK(aclrtStreamWaitEvent(first, events[i]));
        CHECK_EQ(aclrtQueryEventWaitStatus(events[i], &status), i == 2 ? ACL_ERROR_RT_FEATURE_NOT_SUPPORT : 0);
    }
    CHECK_EQ(status, ACL_EVENT_WAIT_STATUS_COMPLETE);
    OK(aclrtSynchronizeStream(first));
    tear_down();
}

static void test_not_ready(void) {
    set_up();
    aclrtEvent events[] = {new_event(), flagged(ACL_EVENT_SYNC), extended(ACL_EVENT_SYNC), flagged(ACL_EVENT_EXTERNAL)};
    for (int i = 0; i < 4; i++) {
        OK(hostacl_hold(0));
        OK(i == 3 ? aclrtRecordEventWithFlag(events[i], first, ACL_EVENT_RECORD_EXTERNAL)
                  : aclrtRecordEvent(events[i], first));
        CHECK(!is_done(events[i]));
        CHECK_EQ(aclrtSynchronizeEventWithTimeout(events[i], 10), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
        CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
        OK(hostacl_release(0));
        OK(aclrtSynchronizeEventWithTimeout(events[i], 20000));
        CHECK(is_done(events[i]));
        OK(aclrtSynchronizeEvent(events[i]));
    }
    tear_down();
}

/* The wait holds back what is behind it in its own stream, and nothing else. */
static void test_wait_orders_streams(void) {
    aclrtEventWaitStatus status = ACL_EVENT_WAIT_STATUS_RESERVED;
    set_up();
    aclrtEvent event = flagged(ACL_EVENT_SYNC);
    void *a = new_block(SIZE, 1), *b = new_block(SIZE, 2);
    OK(hostacl_delay_task("aclrtMemsetAsync", LONG_MS * 1000));
    OK(aclrtMemsetAsync(a, SIZE, 3, SIZE, first));
    OK(aclrtRecordEvent(event, first));
    OK(aclrtStreamWaitEvent(second, event));
    OK(aclrtMemcpyAsync(b, SIZE, a, SIZE, ACL_MEMCPY_DEVICE_TO_DEVICE, second));
    OK(aclrtQueryEventWaitStatus(event, &status));
    CHECK_EQ(status, ACL_EVENT_WAIT_STATUS_NOT_READY);
    OK(aclrtSynchronizeStream(second));
    CHECK(block_is(b, SIZE, 3));
    OK(aclrtQueryEventWaitStatus(event, &status));
    CHECK_EQ(status, ACL_EVENT_WAIT_STATUS_COMPLETE);
    tear_down();
}

/* Streams of two devices. */
static void test_wait_across_devices(void) {
    aclrtContext primary = NULL;
    set_up();
    OK(aclrtGetCurrentContext(&primary));
    aclrtEvent event = new_event();
    void *block = new_block(SIZE, 1);
    OK(aclrtSetDevice(1));
    aclrtStream far = new_stream();
    OK(aclrtSetCurrentContext(primary));
    OK(hostacl_hold(0));
    OK(aclrtMemsetAsync(block, SIZE, 2, SIZE, first));
    OK(aclrtRecordEvent(event, first));
    OK(aclrtSetDevice(1));
    OK(aclrtStreamWaitEvent(far, event));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(far, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    OK(hostacl_release(0));
    OK(aclrtSynchronizeStream(far));
    CHECK(block_is(block, SIZE, 2));
    OK(aclrtResetDeviceForce(1));
    tear_down();
}

/* A wait binds to the latest recording at the time of the call. */
static void test_wait_binds(void) {
    set_up();
    aclrtEvent event = extended(ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE);
    aclrtStream third = new_stream();
    OK(hostacl_hold(0));
    aclrtStream open = new_stream();
    OK(aclrtRecordEvent(event, open));
    OK(aclrtSynchronizeEvent(event));
    OK(aclrtRecordEvent(event, first));
    OK(aclrtStreamWaitEvent(open, event)); /* for the recording in first */
    OK(aclrtRecordEvent(event, open));     /* behind the wait */
    CHECK(!is_done(event));
    OK(hostacl_release(0));
    OK(aclrtSynchronizeStream(open));
    CHECK(is_done(event));
    OK(hostacl_hold(0));
    OK(aclrtRecordEvent(event, first));
    OK(aclrtRecordEvent(event, third));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(third, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    aclrtStream late = new_stream();
    OK(aclrtStreamWaitEvent(late, event)); /* for the recording in third */
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(late, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    OK(hostacl_release(0));
    OK(aclrtSynchronizeStream(late));
    tear_down();
}

static void test_wait_needs_sync(void) {
    set_up();
    aclrtEvent event = flagged(ACL_EVENT_TIME_LINE), progress = extended(ACL_EVENT_CAPTURE_STREAM_PROGRESS);
    OK(aclrtRecordEvent(event, first));
    OK(aclrtRecordEvent(progress, first));
    CHECK_EQ(aclrtStreamWaitEvent(second, event), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_EQ(aclrtStreamWaitEventWithFlag(second, progress, 0, 0), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    OK(aclrtSynchronizeEvent(event));
    OK(aclrtSynchronizeEvent(progress));
    CHECK(is_done(event) && is_done(progress));
    tear_down();
}

static void test_reset(void) {
    set_up();
    aclrtEvent events[] = {new_event(), flagged(ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE)};
    for (int i = 0; i < 2; i++) {
        OK(aclrtResetEvent(events[i], first));
        for (int round = 0; round < 3; round++) { /* the usual loop */
            OK(aclrtRecordEvent(events[i], first));
            OK(aclrtStreamWaitEvent(second, events[i]));
            OK(aclrtResetEvent(events[i], second));
        }
        OK(aclrtSynchronizeStream(second));
        CHECK(is_done(events[i]));
    }
    CHECK_EQ(aclrtResetEvent(flagged(ACL_EVENT_TIME_LINE), first), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_EQ(aclrtResetEvent(extended(ACL_EVENT_SYNC), first), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    OK(aclrtSynchronizeStream(first));
    tear_down();
}

/* Waits that last too long fail with the code for that, at synchronise. */
static void test_wait_timeouts(void) {
    for (int own = 0; own < 2; own++) {
        set_up();
        aclrtEvent event = new_event();
        void *block = new_block(SIZE, 1);
        OK(hostacl_hold(0));
        aclrtStream open = new_stream();
        OK(aclrtRecordEvent(event, first));
        OK(aclrtSetOpWaitTimeout(own ? 0 : 1));
        OK(own ? aclrtStreamWaitEventWithFlag(open, event, 1, 0) : aclrtStreamWaitEvent(open, event));
        OK(aclrtMemsetAsync(block, SIZE, 2, SIZE, open));
        CHECK_EQ(aclrtSynchronizeStream(open), ACL_ERROR_RT_WAIT_TIMEOUT);
        CHECK(block_is(block, SIZE, 2)); /* the stream went on */
        OK(aclrtSynchronizeStream(open));
        tear_down();
    }
    set_up();
    aclrtEvent event = new_event();
    OK(hostacl_hold(0));
    aclrtStream open = new_stream();
    OK(aclrtRecordEvent(event, first));
    OK(aclrtSetOpWaitTimeout(1));
    OK(hostacl_reset()); /* forgets the limit */
    set_up();
    event = new_event();
    OK(hostacl_hold(0));
    open = new_stream();
    OK(aclrtRecordEvent(event, first));
    OK(aclrtStreamWaitEvent(open, event));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(open, 1300), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    tear_down();
}

static void test_elapsed_time(void) {
    float ms = 77;
    uint64_t from = 0, to = 0;
    set_up();
    aclrtEvent begin = flagged(ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE), end = flagged(ACL_EVENT_TIME_LINE);
    CHECK_EQ(aclrtEventElapsedTime(&ms, begin, end), ACL_ERROR_RT_INTERNAL_ERROR);
    CHECK_EQ(aclrtEventGetTimestamp(begin, &from), ACL_ERROR_RT_INTERNAL_ERROR);
    OK(hostacl_hold(0));
    OK(aclrtRecordEvent(begin, first));
    CHECK_EQ(aclrtEventElapsedTime(&ms, begin, end), ACL_ERROR_RT_INTERNAL_ERROR);
    CHECK_EQ(aclrtEventElapsedTime(&ms, begin, begin), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
    CHECK_EQ(aclrtEventGetTimestamp(begin, &from), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
    CHECK(ms == 77 && from == 0);
    OK(hostacl_release(0));
    OK(aclrtSynchronizeEvent(begin));
    sleep_ms(10);
    OK(aclrtRecordEvent(end, second));
    OK(aclrtSynchronizeEvent(end));
    OK(aclrtEventElapsedTime(&ms, begin, end));
    CHECK(ms >= 10);
    float back = 0;
    OK(aclrtEventElapsedTime(&back, end, begin));
    CHECK(back == -ms);
    OK(aclrtEventElapsedTime(&back, end, end));
    CHECK(back == 0);
    OK(aclrtEventGetTimestamp(begin, &from));
    OK(aclrtEventGetTimestamp(end, &to));
    CHECK(from > 0 && to >= from + 10000 && (double)(to - from) <= (double)ms * 1000 + 1);
    aclrtEvent bare = flagged(ACL_EVENT_SYNC);
    OK(aclrtRecordEvent(bare, first));
    OK(aclrtSynchronizeEvent(bare));
    CHECK_EQ(aclrtEventElapsedTime(&ms, begin, bare), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
    CHECK_EQ(aclrtEventGetTimestamp(bare, &from), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
    aclrtEvent plain = new_event();
    OK(aclrtRecordEvent(plain, first));
    OK(aclrtSynchronizeEvent(plain));
    OK(aclrtEventElapsedTime(&ms, begin, plain));
    tear_down();
}

/* An event may be destroyed while its recording is under way; those who wait for the recording get it. */
static void test_destroy_while_pending(void) {
    set_up();
    aclrtEvent event = new_event();
    OK(hostacl_hold(0));
    OK(aclrtRecordEvent(event, first));
    OK(aclrtStreamWaitEvent(second, event));
    OK(aclrtDestroyEvent(event));
    CHECK_EQ(live_now().events, 0);
    CHECK_EQ(aclrtDestroyEvent(event), ACL_ERROR_RT_INVALID_HANDLE);
    OK(hostacl_release(0));
    OK(aclrtSynchronizeStream(second));
    tear_down();
}

static void *synchronize(void *event) {
    OK(aclrtSetDevice(0));
    return (void *)(intptr_t)aclrtSynchronizeEvent(event);
}

/* A recording that was dropped never comes, and nobody hangs for it. */
static void test_dropped_recording(void) {
    pthread_t waiter;
    void *code = NULL;
    set_up();
    aclrtEvent event = new_event(), again = extended(ACL_EVENT_SYNC);
    OK(hostacl_hold(0));
    aclrtStream open = new_stream();
    OK(aclrtRecordEvent(event, first));
    OK(aclrtRecordEvent(again, first));
    OK(aclrtStreamWaitEvent(open, event));
    uint64_t calls = hostacl_calls("aclrtSynchronizeEvent");
    pthread_create(&waiter, NULL, synchronize, event);
    EVENTUALLY(hostacl_calls("aclrtSynchronizeEvent") > calls);
    OK(aclrtDestroyStreamForce(first));
    pthread_join(waiter, &code);
    CHECK_EQ((intptr_t)code, ACL_ERROR_RT_STREAM_ABORT);
    CHECK_EQ(aclrtSynchronizeEvent(event), ACL_ERROR_RT_STREAM_ABORT);
    CHECK_EQ(aclrtSynchronizeStream(open), ACL_ERROR_RT_STREAM_ABORT);
    CHECK(!is_done(event) && !is_done(again));
    OK(aclrtRecordEvent(event, open));
    OK(aclrtSynchronizeEvent(event));
    CHECK(is_done(event));
    tear_down();
}

/* Events go with their context. */
static void test_context_takes_events(void) {
    aclrtContext context = NULL;
    set_up();
    aclrtEvent mine = new_event();
    OK(aclrtCreateContext(&context, 0));
    aclrtEvent its = new_event();
    OK(aclrtDestroyContext(context));
    OK(aclrtSetDevice(0));
    CHECK_EQ(aclrtDestroyEvent(its), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK(!is_done(mine));
    CHECK_EQ(live_now().events, 1);
    tear_down();
}

int main(void) {
    test_arguments();
    test_flags();
    test_never_recorded();
    test_not_ready();
    test_wait_orders_streams();
    test_wait_across_devices();
    test_wait_binds();
    test_wait_needs_sync();
    test_reset();
    test_wait_timeouts();
    test_elapsed_time();
    test_destroy_while_pending();
    test_dropped_recording();
    test_context_takes_events();
    start(NULL);
    return check_done();
}
