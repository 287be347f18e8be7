/* Controls of streams: hostacl_hold, _release, _fail_task, _delay_task, the option hold, and the environment. */
#include "streams.h"

enum { SIZE = 64 };

static aclrtStream stream;
static void *block;

static void set_up(void) {
    OK(aclrtSetDevice(0));
    stream = new_stream();
    block = new_block(SIZE, 1);
}

static void tear_down(void) {
    OK(aclrtResetDeviceForce(0));
    check_nothing_alive();
}

static void set(int value) {
    OK(aclrtMemsetAsync(block, SIZE, value, SIZE, stream));
}

static void test_arguments(void) {
    start(NULL);
    CHECK_EQ(hostacl_hold(2), ACL_ERROR_INVALID_PARAM);
    CHECK(strstr(hostacl_error(), "no such device"));
    CHECK_EQ(hostacl_hold(-2), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(hostacl_release(2), ACL_ERROR_INVALID_PARAM);
    OK(hostacl_hold(1));
    OK(hostacl_release(-1));
    CHECK_EQ(hostacl_fail_task(1, 0), ACL_ERROR_INVALID_PARAM);
    OK(hostacl_fail_task(0, 0));
    CHECK_EQ(hostacl_delay_task("aclrtNothing", 1), ACL_ERROR_INVALID_PARAM);
    CHECK(strstr(hostacl_error(), "aclrtNothing"));
    CHECK_EQ(hostacl_configure("hold", "2"), ACL_ERROR_INVALID_PARAM);
}

/* A hold is about the streams of its device that exist at the time. */
static void test_hold(void) {
    start(NULL);
    set_up();
    OK(hostacl_hold(1));
    set(2);
    OK(aclrtSynchronizeStream(stream));
    OK(hostacl_hold(0));
    aclrtStream open = new_stream();
    OK(aclrtMemsetAsync(block, SIZE, 3, SIZE, open));
    OK(aclrtSynchronizeStream(open));
    set(4);
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    OK(hostacl_release(1));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    OK(hostacl_release(0));
    OK(aclrtSynchronizeStream(stream));
    CHECK(block_is(block, SIZE, 4));
    tear_down();
}

/* When the hold returns nothing moves any more; what was under way is whole. */
static void test_hold_is_still(void) {
    enum { BIG = 8 << 20, ROUNDS = 20 };
    start(NULL);
    set_up();
    void *a = new_block(BIG, 0), *b = new_block(BIG, 1);
    for (int round = 0; round < ROUNDS; round++) {
        OK(aclrtMemset(a, BIG, 0, BIG));
        OK(aclrtMemcpyAsync(a, BIG, b, BIG, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
        OK(hostacl_hold(0));
        CHECK(block_is(a, BIG, 0) || block_is(a, BIG, 1));
        bool moved = block_is(a, 1, 1);
        CHECK_EQ(is_idle(stream), moved);
        OK(hostacl_release(0));
        OK(aclrtSynchronizeStream(stream));
        CHECK(block_is(a, BIG, 1));
    }
    tear_down();
}

/* A stream that waits when the hold comes does not go on when what it waits for is there. */
static void test_hold_of_a_waiting_stream(void) {
    aclrtNotify notify = NULL;
    start(NULL);
    set_up();
    OK(aclrtCreateNotify(&notify, 0));
    OK(aclrtWaitAndResetNotify(notify, stream, 1));
    set(2);
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    OK(hostacl_hold(0));
    aclrtStream open = new_stream();
    OK(aclrtRecordNotify(notify, open));
    OK(aclrtSynchronizeStream(open));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 1200), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    CHECK(block_is(block, SIZE, 1));
    OK(hostacl_release(0));
    OK(aclrtSynchronizeStream(stream)); /* the flag was there in time */
    CHECK(block_is(block, SIZE, 2));
    tear_down();
}

static void test_option_hold(void) {
    start("hold", "on", NULL);
    set_up();
    set(2);
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(NULL, 10), ACL_SUCCESS);
    OK(hostacl_release(-1));
    OK(aclrtSynchronizeStream(stream));
    CHECK(block_is(block, SIZE, 2));
    stream = new_stream(); /* the option is off */
    set(3);
    OK(aclrtSynchronizeStream(stream));
    OK(hostacl_configure("hold", "on"));
    stream = new_stream();
    OK(hostacl_release(0)); /* of one device: the option stays */
    set(4);
    OK(aclrtSynchronizeStream(stream));
    stream = new_stream();
    set(5);
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    OK(hostacl_configure("hold", "off"));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    tear_down();
}

static void test_fail_task(void) {
    start(NULL);
    set_up();
    OK(hostacl_fail_task(3, 507015));
    set(2);
    set(3);
    OK(aclrtSynchronizeStream(stream));
    set(4);
    CHECK_EQ(aclrtSynchronizeStream(stream), 507015);
    CHECK(block_is(block, SIZE, 3));
    set(5);
    OK(aclrtSynchronizeStream(stream));
    OK(hostacl_fail_task(1, 507015));
    OK(hostacl_fail_task(0, 0));
    set(6);
    OK(aclrtSynchronizeStream(stream));
    OK(hostacl_fail_task(1, 507015));
    start(NULL);
    set_up();
    set(2);
    OK(aclrtSynchronizeStream(stream));
    tear_down();
}

static double ms_of_a_set(void) {
    float ms = 0;
    aclrtEvent begin = new_event(), end = new_event();
    OK(aclrtRecordEvent(begin, stream));
    set(2);
    OK(aclrtRecordEvent(end, stream));
    OK(aclrtSynchronizeEvent(end));
    OK(aclrtEventElapsedTime(&ms, begin, end));
    return (double)ms;
}

static void test_delay_task(void) {
    start(NULL);
    set_up();
    OK(hostacl_delay_task("aclrtMemsetAsync", 30000));
    CHECK(ms_of_a_set() >= 30);
    OK(hostacl_delay_task("aclrtMemsetAsync", 0));
    OK(hostacl_delay_task(NULL, 15000));
    CHECK(ms_of_a_set() >= 30); /* the second record waits as well */
    OK(hostacl_delay_task(NULL, 10000000));
    set(3);
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    OK(aclrtStreamAbort(stream)); /* does not wait for the delay */
    OK(hostacl_delay_task(NULL, 0));
    set(4);
    OK(aclrtSynchronizeStream(stream));
    tear_down();
}

/* A short copy is an error of the task. */
static void test_short_copy(void) {
    start(NULL);
    set_up();
    void *source = new_block(SIZE, 5);
    OK(hostacl_short_copy(1, 4, 507899));
    OK(aclrtMemcpyAsync(block, SIZE, source, SIZE, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
    CHECK_EQ(aclrtSynchronizeStream(stream), 507899);
    CHECK(block_is(block, 4, 5) && block_is(plus(block, 4), SIZE - 4, 1));
    tear_down();
}

static void test_environment(void) {
    start(NULL);
    setenv("HOSTACL_HOLD", "on", 1);
    start(NULL);
    set_up();
    set(2);
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    OK(hostacl_release(-1));
    OK(aclrtSynchronizeStream(stream));
    unsetenv("HOSTACL_HOLD");
    setenv("HOSTACL_FAIL_TASK", "2:507015", 1);
    start(NULL);
    set_up();
    set(2);
    OK(aclrtSynchronizeStream(stream));
    set(2);
    CHECK_EQ(aclrtSynchronizeStream(stream), 507015);
    unsetenv("HOSTACL_FAIL_TASK");
    setenv("HOSTACL_DELAY_TASK", "aclrtRecordEvent:1,aclrtMemsetAsync:30000", 1);
    start(NULL);
    set_up();
    CHECK(ms_of_a_set() >= 30);
    static const char *const bad[][2] = {
        {"HOSTACL_HOLD", "yes"},      {"HOSTACL_FAIL_TASK", "0:507015"},     {"HOSTACL_FAIL_TASK", "1"},
        {"HOSTACL_FAIL_TASK", "1:0"}, {"HOSTACL_FAIL_TASK", "1:2:3"},        {"HOSTACL_DELAY_TASK", "aclrtNothing:1"},
        {"HOSTACL_DELAY_TASK", "30"}, {"HOSTACL_DELAY_TASK", "aclrtMemset"}, {"HOSTACL_DELAY_TASK", "task:-1"}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        unsetenv("HOSTACL_DELAY_TASK");
        setenv(bad[i][0], bad[i][1], 1);
        CHECK_EQ(hostacl_reset(), ACL_ERROR_INVALID_PARAM);
        CHECK(strstr(hostacl_error(), bad[i][0]));
        unsetenv(bad[i][0]);
    }
    start(NULL);
    set_up();
    CHECK(ms_of_a_set() < 30000);
    tear_down();
}

int main(void) {
    test_arguments();
    test_hold();
    test_hold_is_still();
    test_hold_of_a_waiting_stream();
    test_option_hold();
    test_fail_task();
    test_delay_task();
    test_short_copy();
    test_environment();
    start(NULL);
    return check_done();
}
