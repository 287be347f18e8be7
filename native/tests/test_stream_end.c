/* Streams at the end of contexts, devices, the runtime and the process: work runs or is dropped, nothing hangs. */
#include <sys/wait.h>
#include <unistd.h>

#include "streams.h"

enum { SIZE = 4096 };

static aclrtStream first, second;
static uint8_t *pinned;
static void *block;

static void set_up(void) {
    start(NULL);
    OK(aclrtSetDevice(0));
    first = new_stream();
    second = new_stream();
    pinned = new_pinned(SIZE, 1);
    block = new_block(SIZE, 2);
}

/* A copy that shows in pinned memory, which outlives the device. */
static void mark(aclrtStream stream) {
    OK(aclrtMemcpyAsync(pinned, SIZE, block, SIZE, ACL_MEMCPY_DEVICE_TO_HOST, stream));
}

static void check_end(int value) {
    CHECK_EQ(live_now().tasks, 0);
    CHECK(pinned[0] == value && pinned[SIZE - 1] == value);
    OK(aclrtFreeHost(pinned));
    check_nothing_alive();
}

/* The last plain reset runs what is queued, also on a held device; a forced one drops it. */
static void test_reset(void) {
    for (int held = 0; held < 2; held++) {
        for (int force = 0; force < 2; force++) {
            set_up();
            if (held)
                OK(hostacl_hold(0));
            else
                OK(hostacl_delay_task("aclrtMemcpyAsync", LONG_MS * 1000));
            mark(first);
            OK(force ? aclrtResetDeviceForce(0) : aclrtResetDevice(0));
            CHECK_EQ(aclrtSynchronizeStream(first), ACL_ERROR_RT_CONTEXT_NULL);
            check_end(force ? 1 : 2);
        }
    }
}

/* Only the last reset touches streams. */
static void test_reset_that_is_not_the_last(void) {
    set_up();
    OK(aclrtSetDevice(0));
    OK(hostacl_hold(0));
    mark(first);
    OK(aclrtResetDevice(0));
    CHECK(!is_idle(first));
    OK(hostacl_release(0));
    OK(aclrtSynchronizeStream(first));
    OK(aclrtResetDevice(0));
    check_end(2);
}

static void never_called(void *unused) {
    (void)unused;
    CHECK(false);
}

/* Waits that nobody will end do not keep a reset; what is behind them is dropped. */
static void test_reset_with_endless_waits(void) {
    aclrtNotify notify = NULL;
    for (int kind = 0; kind < 4; kind++) {
        set_up();
        aclrtEvent event = new_event();
        OK(aclrtCreateNotify(&notify, 0));
        OK(aclrtSubscribeReport(12345, first));
        if (kind == 0)
            OK(aclrtWaitAndResetNotify(notify, first, 0));
        if (kind == 1)
            OK(aclrtValueWait(block, 1, ACL_STREAM_WAIT_VALUE_EQ, first));
        if (kind == 2)
            OK(aclrtLaunchCallback(never_called, NULL, ACL_CALLBACK_BLOCK, first));
        if (kind == 3) {
            OK(aclrtWaitAndResetNotify(notify, second, 0));
            OK(aclrtRecordEvent(event, second));
            OK(aclrtStreamWaitEvent(first, event));
        }
        mark(first);
        OK(aclrtResetDevice(0));
        check_end(1);
    }
}

/* A wait that another stream will end is waited for, across devices too, and not dropped. */
static void test_reset_with_a_wait_that_ends(void) {
    aclrtContext primary = NULL;
    set_up();
    OK(aclrtGetCurrentContext(&primary));
    OK(aclrtSetDevice(1));
    aclrtStream far = new_stream();
    aclrtEvent event = new_event();
    OK(hostacl_delay_task("aclrtRecordEvent", LONG_MS * 1000));
    OK(aclrtRecordEvent(event, far));
    OK(aclrtSetCurrentContext(primary));
    OK(aclrtStreamWaitEvent(first, event));
    mark(first);
    OK(aclrtResetDevice(0));
    CHECK(pinned[0] == 2);
    OK(aclrtResetDevice(1));
    check_end(2);
    set_up(); /* and one that a held stream of another device keeps is dropped */
    OK(aclrtGetCurrentContext(&primary));
    OK(aclrtSetDevice(1));
    far = new_stream();
    event = new_event();
    OK(hostacl_hold(1));
    OK(aclrtRecordEvent(event, far));
    OK(aclrtSetCurrentContext(primary));
    OK(aclrtStreamWaitEvent(first, event));
    mark(first);
    OK(aclrtResetDevice(0));
    OK(aclrtResetDevice(1));
    check_end(1);
}

static void test_notify_between_ending_streams(void) {
    aclrtNotify notify = NULL;
    set_up();
    OK(aclrtCreateNotify(&notify, 0));
    OK(hostacl_hold(0));
    OK(aclrtWaitAndResetNotify(notify, first, 0));
    mark(first);
    OK(aclrtRecordNotify(notify, second));
    OK(aclrtResetDevice(0));
    check_end(2);
}

static void test_destroy_context(void) {
    aclrtContext context = NULL;
    aclrtNotify notify = NULL;
    for (int endless = 0; endless < 2; endless++) {
        set_up();
        OK(aclrtCreateNotify(&notify, 0));
        OK(aclrtCreateContext(&context, 0));
        aclrtStream inner = new_stream();
        OK(hostacl_hold(0));
        if (endless)
            OK(aclrtWaitAndResetNotify(notify, inner, 0));
        mark(inner);
        OK(aclrtRecordEvent(new_event(), NULL));
        OK(aclrtDestroyContext(context));
        CHECK_EQ(live_now().streams, 2);
        CHECK_EQ(live_now().events, 0);
        OK(aclrtResetDevice(0));
        check_end(endless ? 1 : 2);
    }
}

/* A context that keeps its device open alone takes the device with it. */
static void test_last_context(void) {
    aclrtContext context = NULL;
    start(NULL);
    OK(aclrtCreateContext(&context, 1));
    aclrtStream stream = new_stream();
    pinned = new_pinned(SIZE, 1);
    block = new_block(SIZE, 2);
    OK(hostacl_delay_task("aclrtMemcpyAsync", LONG_MS * 1000));
    mark(stream);
    OK(aclrtDestroyContext(context));
    check_end(2);
}

static void test_runtime_reset(void) {
    set_up();
    OK(aclrtSetDevice(1));
    aclrtStream far = new_stream();
    OK(hostacl_hold(-1));
    OK(aclrtMemsetAsync(new_block(SIZE, 1), SIZE, 1, SIZE, far));
    OK(aclrtRecordEvent(new_event(), NULL));
    OK(hostacl_reset());
    CHECK_EQ(live_now().tasks, 0);
    check_nothing_alive();
    set_up(); /* the hold is over */
    mark(first);
    OK(aclrtSynchronizeStream(first));
    OK(aclrtResetDevice(0));
    check_end(2);
}

/* aclFinalize leaves devices and streams alone. */
static void test_finalize(void) {
    set_up();
    OK(aclInit(NULL));
    OK(hostacl_hold(0));
    mark(first);
    OK(aclFinalize());
    CHECK(!is_idle(first));
    OK(hostacl_release(0));
    OK(aclrtSynchronizeStream(first));
    OK(aclrtResetDevice(0));
    check_end(2);
}

static atomic_int code_of_waiter;

static void *synchronize(void *stream) {
    OK(aclrtSetDevice(1));
    atomic_store(&code_of_waiter, aclrtSynchronizeStream(stream));
    OK(aclrtResetDevice(1));
    return NULL;
}

/* A thread that waits for a stream of a device that is reset under it. */
static void test_reset_under_a_waiter(void) {
    for (int force = 0; force < 2; force++) {
        pthread_t waiter;
        set_up();
        OK(hostacl_hold(0));
        mark(first);
        uint64_t calls = hostacl_calls("aclrtSynchronizeStream");
        pthread_create(&waiter, NULL, synchronize, first);
        EVENTUALLY(hostacl_calls("aclrtSynchronizeStream") > calls);
        sleep_ms(LONG_MS);
        OK(force ? aclrtResetDeviceForce(0) : aclrtResetDevice(0));
        pthread_join(waiter, NULL);
        CHECK_EQ(code_of_waiter, force ? ACL_ERROR_RT_STREAM_ABORT : ACL_SUCCESS);
        check_end(force ? 1 : 2);
    }
}

/* Runs a body in a process of its own, which must end by itself with code 0. */
static void in_process(int (*body)(void)) {
    int status = -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        int failed = body();
        fflush(stdout);
        _exit(failed);
    }
    waitpid(child, &status, 0);
    CHECK_EQ(status, 0);
}

static void endless(void *unused) {
    (void)unused;
    for (;;)
        sleep_ms(1000);
}

static void finalize(void) {
    aclFinalize();
}

/* A process ends while streams are held, wait, run and call. */
static int exit_with_work(void) {
    aclrtNotify notify = NULL;
    set_up();
    OK(aclrtCreateNotify(&notify, 0));
    OK(aclrtWaitAndResetNotify(notify, new_stream(), 0));
    OK(aclrtLaunchHostFunc(new_stream(), endless, NULL));
    OK(aclrtValueWait(block, 1, ACL_STREAM_WAIT_VALUE_EQ, new_stream()));
    OK(hostacl_delay_task("aclrtMemsetAsync", 10000000));
    OK(aclrtMemsetAsync(block, SIZE, 1, SIZE, new_stream()));
    OK(hostacl_hold(0));
    mark(first);
    exit(check_failures > 0);
}

static int finalize_and_exit(void) {
    OK(aclInit(NULL));
    atexit(finalize);
    return exit_with_work();
}

static int calls_of_a_fork(void) {
    aclrtStreamStatus status;
    aclrtEvent event = NULL;
    aclrtStream stream = NULL;
    CHECK_EQ(aclrtCreateStream(&stream), ACL_ERROR_RT_DEV_SETUP_ERROR);
    CHECK_EQ(aclrtSynchronizeStream(first), ACL_ERROR_RT_DEV_SETUP_ERROR);
    CHECK_EQ(aclrtSynchronizeDevice(), ACL_ERROR_RT_DEV_SETUP_ERROR);
    CHECK_EQ(aclrtStreamQuery(first, &status), ACL_ERROR_RT_DEV_SETUP_ERROR);
    CHECK_EQ(aclrtDestroyStream(first), ACL_ERROR_RT_DEV_SETUP_ERROR);
    CHECK_EQ(aclrtCreateEvent(&event), ACL_ERROR_RT_DEV_SETUP_ERROR);
    CHECK_EQ(aclrtMemsetAsync(block, SIZE, 1, SIZE, first), ACL_ERROR_RT_DEV_SETUP_ERROR);
    CHECK_EQ(aclrtProcessReport(-1), ACL_ERROR_RT_DEV_SETUP_ERROR);
    CHECK_EQ(aclrtGetTaskIdFromExceptionInfo(NULL), 0xffffffff);
    CHECK_EQ(hostacl_hold(0), ACL_ERROR_RT_DEV_SETUP_ERROR);
    CHECK_EQ(hostacl_release(-1), ACL_ERROR_RT_DEV_SETUP_ERROR);
    CHECK_EQ(hostacl_fail_task(1, 507015), ACL_ERROR_RT_DEV_SETUP_ERROR);
    CHECK_EQ(hostacl_delay_task(NULL, 0), ACL_ERROR_RT_DEV_SETUP_ERROR);
    return check_failures > 0;
}

/* The fork of a process whose streams are at work. */
static void test_fork(void) {
    set_up();
    void *other = new_block(SIZE, 0);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 20; i++) {
            mark(first);
            OK(aclrtMemsetAsync(other, SIZE, i, SIZE, second));
        }
        in_process(calls_of_a_fork);
    }
    OK(aclrtSynchronizeDevice());
    OK(aclrtResetDevice(0));
    check_end(2);
}

int main(void) {
    in_process(exit_with_work); /* before this process uses the runtime */
    in_process(finalize_and_exit);
    test_reset();
    test_reset_that_is_not_the_last();
    test_reset_with_endless_waits();
    test_reset_with_a_wait_that_ends();
    test_notify_between_ending_streams();
    test_destroy_context();
    test_last_context();
    test_runtime_reset();
    test_finalize();
    test_reset_under_a_waiter();
    test_fork();
    start(NULL);
    return check_done();
}
