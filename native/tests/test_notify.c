/* Notifies, and words of device memory that streams write and wait for. */
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

static aclrtNotify new_notify(void) {
    aclrtNotify notify = NULL;
    OK(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT));
    return notify;
}

static void test_notify_arguments(void) {
    aclrtNotify notify = NULL;
    start(NULL);
    CHECK_EQ(aclrtCreateNotify(NULL, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtCreateNotify(&notify, 0), ACL_ERROR_RT_CONTEXT_NULL);
    set_up();
    CHECK_EQ(aclrtCreateNotify(&notify, 2), ACL_ERROR_RT_PARAM_INVALID);
    CHECK(!notify);
    OK(aclrtCreateNotify(&notify, ACL_NOTIFY_DEVICE_USE_ONLY));
    CHECK_EQ(aclrtDestroyNotify(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtRecordNotify(NULL, first), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtWaitAndResetNotify(NULL, first, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtRecordNotify(notify, notify), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(live_now().notifies, 1);
    OK(aclrtDestroyNotify(notify));
    CHECK_EQ(live_now().notifies, 0);
    CHECK_EQ(aclrtDestroyNotify(notify), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(aclrtRecordNotify(notify, first), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(aclrtWaitAndResetNotify(first, first, 0), ACL_ERROR_RT_INVALID_HANDLE);
    tear_down();
}

/* One record lets one wait through. */
static void test_notify_is_consumed(void) {
    set_up();
    aclrtNotify notify = new_notify();
    void *block = new_block(SIZE, 1);
    OK(aclrtWaitAndResetNotify(notify, first, 0));
    OK(aclrtMemsetAsync(block, SIZE, 2, SIZE, first));
    OK(aclrtWaitAndResetNotify(notify, first, 0));
    OK(aclrtMemsetAsync(block, SIZE, 3, SIZE, first));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(first, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    CHECK(block_is(block, SIZE, 1));
    OK(aclrtRecordNotify(notify, second));
    EVENTUALLY(live_now().tasks == 2); /* the second wait, and what stands behind it */
    CHECK(block_is(block, SIZE, 2));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(first, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    CHECK(block_is(block, SIZE, 2));
    OK(aclrtRecordNotify(notify, second));
    OK(aclrtSynchronizeStream(first));
    CHECK(block_is(block, SIZE, 3));
    tear_down();
}

/* Two records without a wait between them count once. */
static void test_notify_is_a_flag(void) {
    set_up();
    aclrtNotify notify = new_notify();
    OK(aclrtRecordNotify(notify, first));
    OK(aclrtRecordNotify(notify, first));
    OK(aclrtSynchronizeStream(first));
    OK(aclrtWaitAndResetNotify(notify, second, 0));
    OK(aclrtSynchronizeStream(second));
    OK(aclrtWaitAndResetNotify(notify, second, 0));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(second, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    tear_down();
}

/* Time-outs are seconds; the notify may be destroyed meanwhile. */
static void test_notify_timeout(void) {
    set_up();
    aclrtNotify notify = new_notify();
    OK(aclrtWaitAndResetNotify(notify, first, 1));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(first, 300), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    OK(aclrtDestroyNotify(notify));
    CHECK_EQ(aclrtSynchronizeStream(first), ACL_ERROR_RT_WAIT_TIMEOUT);
    OK(aclrtSynchronizeStream(first));
    tear_down();
}

static void test_notify_across_devices(void) {
    aclrtContext primary = NULL;
    set_up();
    OK(aclrtGetCurrentContext(&primary));
    aclrtNotify notify = new_notify();
    OK(aclrtSetDevice(1));
    aclrtStream far = new_stream();
    OK(aclrtWaitAndResetNotify(notify, far, 0));
    OK(aclrtSetCurrentContext(primary));
    OK(aclrtRecordNotify(notify, first));
    OK(aclrtSynchronizeStream(far));
    OK(aclrtResetDevice(0));
    CHECK_EQ(aclrtDestroyNotify(notify), ACL_ERROR_RT_INVALID_HANDLE);
    OK(aclrtResetDevice(1));
    check_nothing_alive();
}

/* ---- Words ---- */

static void test_word_arguments(void) {
    uint64_t heap = 0;
    start(NULL);
    CHECK_EQ(aclrtValueWrite(NULL, 1, 0, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtValueWait(NULL, 1, 0, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtValueWrite(&heap, 1, 0, NULL), ACL_ERROR_RT_CONTEXT_NULL);
    set_up();
    void *block = new_block(SIZE, 0);
    uint8_t *pinned = new_pinned(SIZE, 0);
    CHECK_EQ(aclrtValueWrite(plus(block, 4), 1, 0, first), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtValueWait(plus(block, 4), 1, 0, first), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtValueWrite(block, 1, 1, first), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtValueWait(block, 1, 4, first), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtValueWrite(&heap, 1, 0, first), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtValueWait(&heap, 1, 0, first), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtValueWrite(pinned, 1, 0, first), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtValueWrite(block, 1, 0, block), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(aclrtValueWait(block, 1, 0, block), ACL_ERROR_RT_INVALID_HANDLE);
    OK(aclrtFreeHost(pinned));
    tear_down();
}

static uint64_t read_word(const void *block) {
    uint64_t word = 0;
    OK(aclrtMemcpy(&word, 8, block, 8, ACL_MEMCPY_DEVICE_TO_HOST));
    return word;
}

/* Whether a wait for a word of that content ends by itself. */
static bool passes(uint64_t word, uint64_t value, uint32_t compare) {
    set_up();
    void *block = new_block(SIZE, 0);
    OK(aclrtMemcpy(block, 8, &word, 8, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtValueWait(block, value, compare, first));
    int code = aclrtSynchronizeStreamWithTimeout(first, 20);
    CHECK(code == ACL_SUCCESS || code == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    tear_down();
    return code == ACL_SUCCESS;
}

static void test_compares(void) {
    CHECK(passes(5, 5, ACL_STREAM_WAIT_VALUE_GEQ) && passes(6, 5, ACL_STREAM_WAIT_VALUE_GEQ));
    CHECK(!passes(4, 5, ACL_STREAM_WAIT_VALUE_GEQ));
    CHECK(passes(UINT64_MAX, 5, ACL_STREAM_WAIT_VALUE_GEQ));
    CHECK(passes(5, 5, ACL_STREAM_WAIT_VALUE_EQ) && !passes(6, 5, ACL_STREAM_WAIT_VALUE_EQ));
    CHECK(!passes(5 | (uint64_t)1 << 40, 5, ACL_STREAM_WAIT_VALUE_EQ));
    CHECK(passes(6, 2, ACL_STREAM_WAIT_VALUE_AND) && !passes(5, 2, ACL_STREAM_WAIT_VALUE_AND));
    CHECK(passes(0, 1, ACL_STREAM_WAIT_VALUE_NOR) && !passes(~(uint64_t)1, 1, ACL_STREAM_WAIT_VALUE_NOR));
}

/* A word written by one stream lets another go on; untouched memory is zero. */
static void test_write_wakes(void) {
    set_up();
    void *block = NULL, *target = new_block(SIZE, 1);
    OK(aclrtMalloc(&block, SIZE, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtValueWait(block, 7, ACL_STREAM_WAIT_VALUE_EQ, first));
    OK(aclrtMemsetAsync(target, SIZE, 2, SIZE, first));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(first, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    OK(aclrtValueWrite(block, 6, 0, second));
    OK(aclrtValueWrite(plus(block, 8), 7, 0, second));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(first, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    CHECK(block_is(target, SIZE, 1));
    OK(aclrtValueWrite(block, 7, 0, second));
    OK(aclrtSynchronizeStream(first));
    CHECK(block_is(target, SIZE, 2));
    CHECK(read_word(block) == 7 && read_word(plus(block, 8)) == 7 && read_word(plus(block, 16)) == 0);
    tear_down();
}

/* Every way to write the memory wakes a wait for it: copies, sets, tasks of other streams, another mapping. */
static void test_everything_wakes(void) {
    uint64_t word = 7;
    uint8_t *pinned;
    set_up();
    void *block = new_block(SIZE, 0);
    OK(aclrtValueWait(block, 7, ACL_STREAM_WAIT_VALUE_EQ, first));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(first, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    OK(aclrtMemcpy(block, 8, &word, 8, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtSynchronizeStream(first));
    OK(aclrtValueWait(block, 0x0101010101010101, ACL_STREAM_WAIT_VALUE_EQ, first));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(first, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    OK(aclrtMemset(block, SIZE, 1, SIZE));
    OK(aclrtSynchronizeStream(first));
    pinned = new_pinned(SIZE, 2);
    OK(aclrtValueWait(block, 0x0202020202020202, ACL_STREAM_WAIT_VALUE_EQ, first));
    OK(aclrtMemcpyAsync(block, 8, pinned, 8, ACL_MEMCPY_HOST_TO_DEVICE, second));
    OK(aclrtSynchronizeStream(first));
    OK(aclrtFreeHost(pinned));
    tear_down();
}

static void test_another_mapping_wakes(void) {
    const aclrtPhysicalMemProp prop = {.memAttr = ACL_HBM_MEM_HUGE, .location = {0, ACL_MEM_LOCATION_TYPE_DEVICE}};
    aclrtDrvMemHandle handle = NULL;
    void *a = NULL, *b = NULL;
    set_up();
    OK(aclrtReserveMemAddress(&a, 2 * MIB, 0, NULL, 1));
    OK(aclrtReserveMemAddress(&b, 2 * MIB, 0, NULL, 1));
    OK(aclrtMallocPhysical(&handle, 2 * MIB, &prop, 0));
    OK(aclrtMapMem(a, 2 * MIB, 0, handle, 0));
    OK(aclrtMapMem(b, 2 * MIB, 0, handle, 0));
    OK(aclrtValueWait(plus(a, 64), 9, ACL_STREAM_WAIT_VALUE_GEQ, first));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(first, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    OK(aclrtValueWrite(plus(b, 64), 9, 0, second));
    OK(aclrtSynchronizeStream(first));
    OK(aclrtValueWait(plus(a, 64), 10, ACL_STREAM_WAIT_VALUE_GEQ, first));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(first, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    OK(aclrtUnmapMem(a));
    CHECK_EQ(aclrtSynchronizeStream(first), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtUnmapMem(b));
    OK(aclrtFreePhysical(handle));
    OK(aclrtReleaseMemAddress(a));
    OK(aclrtReleaseMemAddress(b));
    tear_down();
}

/* Memory that goes while a stream waits for a word of it, or before a word is written. */
static void test_freed_word(void) {
    set_up();
    void *block = new_block(SIZE, 0);
    OK(aclrtValueWait(block, 7, ACL_STREAM_WAIT_VALUE_EQ, first));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(first, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    OK(aclrtFree(block));
    CHECK_EQ(aclrtSynchronizeStream(first), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK(strstr(aclGetRecentErrMsg(), "aclrtValueWait: the word at 0x"));
    block = new_block(SIZE, 0);
    OK(hostacl_hold(0));
    OK(aclrtValueWrite(block, 7, 0, first));
    OK(aclrtFree(block));
    OK(hostacl_release(0));
    CHECK_EQ(aclrtSynchronizeStream(first), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    tear_down();
}

/* Two streams play ping-pong through two words: none of them may spin or miss a wake. */
static void test_ping_pong(void) {
    enum { ROUNDS = 500 };
    set_up();
    void *block = new_block(SIZE, 0);
    void *ping = block, *pong = plus(block, 64);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        OK(aclrtValueWrite(ping, round, 0, first));
        OK(aclrtValueWait(pong, round, ACL_STREAM_WAIT_VALUE_GEQ, first));
        OK(aclrtValueWait(ping, round, ACL_STREAM_WAIT_VALUE_GEQ, second));
        OK(aclrtValueWrite(pong, round, 0, second));
    }
    OK(aclrtSynchronizeDevice());
    CHECK(read_word(ping) == ROUNDS && read_word(pong) == ROUNDS);
    tear_down();
}

int main(void) {
    test_notify_arguments();
    test_notify_is_consumed();
    test_notify_is_a_flag();
    test_notify_timeout();
    test_notify_across_devices();
    test_word_arguments();
    test_compares();
    test_write_wakes();
    test_everything_wakes();
    test_another_mapping_wakes();
    test_freed_word();
    test_ping_pong();
    start(NULL);
    return check_done();
}
