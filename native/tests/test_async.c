/* Copies and sets in stream order: which memory and kinds go together, what is put off, what may be freed meanwhile. */
#include <sys/mman.h>

#include "streams.h"

enum { SIZE = 4096 };

static aclrtStream stream;

static void set_up(const char *profile) {
    start("profile", profile, NULL);
    OK(aclrtSetDevice(0));
    stream = new_stream();
}

static void tear_down(void) {
    OK(aclrtResetDeviceForce(0));
    check_nothing_alive();
}

static void test_arguments(void) {
    uint8_t bytes[SIZE] = {1};
    start(NULL);
    OK(aclrtMemcpyAsync(NULL, 0, NULL, 0, (aclrtMemcpyKind)99, NULL));
    CHECK_EQ(aclrtMemcpyAsync(NULL, 8, bytes, 8, ACL_MEMCPY_DEFAULT, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemcpyAsync(bytes, 8, NULL, 8, ACL_MEMCPY_DEFAULT, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemcpyAsync(bytes, 8, bytes + 8, 8, (aclrtMemcpyKind)6, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemcpyAsync(bytes, 8, bytes + 8, 8, (aclrtMemcpyKind)-1, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS);
    CHECK_EQ(aclrtMemcpyAsync(bytes, 0, bytes + 8, 8, ACL_MEMCPY_DEFAULT, NULL), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemcpyAsync(bytes, 7, bytes + 8, 8, ACL_MEMCPY_DEFAULT, NULL), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemcpyAsync(bytes, 8, bytes + 8, 8, ACL_MEMCPY_DEFAULT, NULL), ACL_ERROR_RT_CONTEXT_NULL);
    OK(aclrtMemsetAsync(NULL, 0, 1, 0, NULL));
    CHECK_EQ(aclrtMemsetAsync(NULL, 8, 1, 8, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemsetAsync(bytes, 7, 1, 8, NULL), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemsetAsync(bytes, 8, 1, 8, NULL), ACL_ERROR_RT_CONTEXT_NULL);
    set_up("strict");
    void *block = new_block(SIZE, 0);
    CHECK_EQ(aclrtMemcpyAsync(block, 8, bytes, 8, ACL_MEMCPY_DEFAULT, bytes), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(aclrtMemsetAsync(block, 8, 1, 8, bytes), ACL_ERROR_RT_INVALID_HANDLE);
    OK(aclrtFree(block));
    CHECK_EQ(aclrtMemcpyAsync(block, 8, bytes, 8, ACL_MEMCPY_DEFAULT, stream), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemcpyAsync(bytes, 8, block, 8, ACL_MEMCPY_DEFAULT, stream), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemsetAsync(block, 8, 1, 8, stream), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtSynchronizeStream(stream));
    tear_down();
}

enum { UNREGISTERED, PINNED, DEVICE, PLACES };

/* The code of every kind between two kinds of memory, kinds 0 to 5. */
static const int codes[PLACES][PLACES][6] = {
    [UNREGISTERED][UNREGISTERED] = {207000, 0, 0, 0, 207000, 107000},
    [UNREGISTERED][PINNED] = {207000, 107000, 0, 107000, 207000, 107000},
    [UNREGISTERED][DEVICE] = {107000, 0, 107000, 0, 0, 0},
    [PINNED][UNREGISTERED] = {207000, 0, 107000, 107000, 207000, 107000},
    [PINNED][PINNED] = {207000, 207000, 207000, 207000, 207000, 207000},
    [PINNED][DEVICE] = {0, 0, 0, 0, 0, 0},
    [DEVICE][UNREGISTERED] = {107000, 107000, 0, 0, 0, 107000},
    [DEVICE][PINNED] = {0, 0, 0, 0, 0, 107000},
    [DEVICE][DEVICE] = {0, 0, 0, 0, 0, 107000},
};

static void test_kinds(const char *profile) {
    static uint8_t heap[2][SIZE];
    set_up(profile);
    void *places[2][PLACES] = {{heap[0], new_pinned(SIZE, 0), new_block(SIZE, 0)},
                               {heap[1], new_pinned(SIZE, 0), new_block(SIZE, 0)}};
    for (int from = 0; from < PLACES; from++) {
        for (int to = 0; to < PLACES; to++) {
            for (int kind = 0; kind < 6; kind++) {
                uint8_t byte = 99;
                OK(aclrtMemset(places[0][from], SIZE, 5, SIZE));
                OK(aclrtMemset(places[1][to], SIZE, 6, SIZE));
                int code = aclrtMemcpyAsync(places[1][to], SIZE, places[0][from], 64, (aclrtMemcpyKind)kind, stream);
                if (!CHECK_EQ(code, codes[from][to][kind]))
                    printf("    from %d to %d, kind %d\n", from, to, kind);
                OK(aclrtSynchronizeStream(stream));
                OK(aclrtMemcpy(&byte, 1, plus(places[1][to], 63), 1, ACL_MEMCPY_DEFAULT));
                CHECK_EQ(byte, code ? 6 : 5);
                OK(aclrtMemcpy(&byte, 1, plus(places[1][to], 64), 1, ACL_MEMCPY_DEFAULT));
                CHECK_EQ(byte, 6);
            }
        }
    }
    OK(aclrtFreeHost(places[0][PINNED]));
    OK(aclrtFreeHost(places[1][PINNED]));
    tear_down();
}

/* Between pinned and device memory nothing moves before its turn; the synchronous calls do not wait for streams. */
static void test_deferred(void) {
    set_up("strict");
    uint8_t *in = new_pinned(SIZE, 1), *out = new_pinned(SIZE, 2);
    void *first = new_block(SIZE, 3), *second = new_block(SIZE, 4);
    OK(hostacl_hold(0));
    OK(aclrtMemcpyAsync(first, SIZE, in, SIZE, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    OK(aclrtMemcpyAsync(second, SIZE, first, SIZE, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
    OK(aclrtMemcpyAsync(out, SIZE, second, SIZE, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    OK(aclrtMemsetAsync(first, SIZE, 7, SIZE, stream));
    OK(aclrtMemsetAsync(in, SIZE, 8, SIZE, stream));
    CHECK(!is_idle(stream) && live_now().tasks == 5);
    CHECK(block_is(first, SIZE, 3) && block_is(second, SIZE, 4) && in[0] == 1 && out[0] == 2);
    OK(hostacl_release(0));
    OK(aclrtSynchronizeStream(stream));
    CHECK(block_is(first, SIZE, 7) && block_is(second, SIZE, 1));
    CHECK(in[0] == 8 && in[SIZE - 1] == 8 && out[0] == 1 && out[SIZE - 1] == 1);
    OK(aclrtFreeHost(in));
    OK(aclrtFreeHost(out));
    tear_down();
}

/* A copy or set of unregistered host memory is done when the call returns, after everything before it. */
static void test_unregistered_is_done(void) {
    uint8_t in[64], out[64] = {0};
    memset(in, 9, sizeof(in));
    set_up("strict");
    void *block = new_block(SIZE, 0);
    OK(hostacl_delay_task("aclrtMemsetAsync", LONG_MS * 1000));
    OK(aclrtMemsetAsync(block, SIZE, 5, SIZE, stream));
    OK(aclrtMemcpyAsync(block, SIZE, in, 1, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    CHECK(is_idle(stream));
    OK(aclrtMemsetAsync(plus(block, 2), 2, 6, 2, stream));
    OK(aclrtMemcpyAsync(out, 64, block, 64, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    CHECK(out[0] == 9 && out[1] == 5 && out[2] == 6 && out[3] == 6 && out[4] == 5 && out[63] == 5);
    OK(aclrtMemsetAsync(out, 64, 3, 64, stream));
    CHECK(out[0] == 3 && out[63] == 3);
    tear_down();
}

/* HOST_TO_BUF_TO_DEVICE takes a copy of the source first, so the call returns at once and the source may go. */
static void test_buffered(void) {
    set_up("strict");
    void *first = new_block(SIZE, 0), *second = new_block(SIZE, 0);
    uint8_t *heap = malloc(SIZE), *pinned = new_pinned(SIZE, 2);
    memset(heap, 1, SIZE);
    OK(hostacl_hold(0));
    OK(aclrtMemcpyAsync(first, SIZE, heap, SIZE, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, stream));
    OK(aclrtMemcpyAsync(second, SIZE, pinned, SIZE, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, stream));
    memset(heap, 9, SIZE);
    free(heap);
    OK(aclrtFreeHost(pinned));
    CHECK(block_is(first, SIZE, 0) && block_is(second, SIZE, 0));
    OK(hostacl_release(0));
    OK(aclrtSynchronizeStream(stream));
    CHECK(block_is(first, SIZE, 1) && block_is(second, SIZE, 2));
    CHECK_EQ(aclrtMemcpyAsync(first, SIZE, plus(NULL, 4096), SIZE_MAX, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, stream),
             ACL_ERROR_RT_PARAM_INVALID);
    tear_down();
}

/* Memory that is freed while a task waits for its turn: an error at synchronise, never a crash. */
static void test_freed_device_memory(const char *profile, int code) {
    set_up(profile);
    uint8_t *pinned = new_pinned(SIZE, 1);
    void *block = new_block(SIZE, 0);
    OK(hostacl_hold(0));
    OK(aclrtMemcpyAsync(block, SIZE, pinned, SIZE, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    OK(aclrtFree(block));
    OK(hostacl_release(0));
    CHECK_EQ(aclrtSynchronizeStream(stream), code);
    if (code) {
        CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), code);
        const char *text = aclGetRecentErrMsg();
        CHECK(strstr(text, "EL0003: aclrtSynchronizeStream: task 1 of stream 2, aclrtMemcpyAsync: destination 0x"));
    }
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtFreeHost(pinned));
    tear_down();
}

static void test_freed_host_memory(const char *profile) {
    for (int again = 0; again < 2; again++) {
        for (int to_host = 0; to_host < 3; to_host++) {
            set_up(profile);
            uint8_t *pinned = new_pinned(SIZE, 1), *other = NULL;
            void *block = new_block(SIZE, 0);
            OK(hostacl_hold(0));
            OK(to_host == 2   ? aclrtMemsetAsync(pinned, SIZE, 3, SIZE, stream)
               : to_host == 1 ? aclrtMemcpyAsync(pinned, SIZE, block, SIZE, ACL_MEMCPY_DEVICE_TO_HOST, stream)
                              : aclrtMemcpyAsync(block, SIZE, pinned, SIZE, ACL_MEMCPY_HOST_TO_DEVICE, stream));
            OK(aclrtFreeHost(pinned));
            if (again) /* most likely at the same place */
                other = new_pinned(SIZE, 7);
            OK(hostacl_release(0));
            CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
            CHECK(strstr(aclGetRecentErrMsg(), "is not all inside the pinned block it was in"));
            CHECK(block_is(block, SIZE, 0));
            if (other) {
                CHECK(other[0] == 7 && other[SIZE - 1] == 7);
                OK(aclrtFreeHost(other));
            }
            tear_down();
        }
    }
}

/* Registered memory is pinned memory while it is registered. */
static void test_registered_memory(void) {
    uint8_t *mine = mmap(NULL, 2 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(mine, 1, SIZE);
    set_up("strict");
    void *block = new_block(SIZE, 0);
    OK(aclrtHostRegisterV2(mine, SIZE, ACL_HOST_REG_PINNED));
    OK(hostacl_hold(0));
    OK(aclrtMemcpyAsync(block, SIZE, mine, SIZE, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    CHECK(block_is(block, SIZE, 0));
    OK(hostacl_release(0));
    OK(aclrtSynchronizeStream(stream));
    CHECK(block_is(block, SIZE, 1));
    OK(hostacl_hold(0));
    OK(aclrtMemcpyAsync(mine, SIZE, block, SIZE, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    OK(aclrtHostUnregister(mine));
    munmap(mine, 2 * SIZE);
    OK(hostacl_release(0));
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    tear_down();
}

/* A range that runs out of its block is an error of the task. */
static void test_overrun(void) {
    set_up("strict");
    uint8_t *pinned = new_pinned(SIZE, 1);
    void *block = new_block(2 * SIZE, 0);
    OK(aclrtMemcpyAsync(block, 2 * SIZE, pinned, SIZE + 1, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtMemcpyAsync(plus(block, SIZE + 1), SIZE, pinned, SIZE, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtMemsetAsync(plus(block, 2 * SIZE - 1), 2, 1, 2, stream));
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK(block_is(block, 2 * SIZE, 0));
    OK(aclrtFreeHost(pinned));
    tear_down();
}

static uint32_t words[4];

static void read_words(const void *block) {
    OK(aclrtMemcpy(words, sizeof(words), block, sizeof(words), ACL_MEMCPY_DEVICE_TO_HOST));
}

static void test_words(void) {
    uint32_t heap[4] = {0};
    start(NULL);
    CHECK_EQ(aclrtMemsetD32(NULL, 16, 1, 4), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemsetD32(plus(heap, 2), 16, 1, 4), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemsetD32(heap, 15, 1, 4), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemsetD32(heap, 16, 1, SIZE_MAX), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemsetD32(heap, 16, 1, 4), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtMemsetD32Async(plus(heap, 2), 16, 1, 4, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemsetD32Async(heap, 16, 1, 4, NULL), ACL_ERROR_RT_CONTEXT_NULL);
    set_up("strict");
    void *block = new_block(3 * SIZE, 0);
    uint32_t *pinned = (uint32_t *)new_pinned(SIZE, 0);
    OK(aclrtMemsetD32(block, 0, 1, 0));
    CHECK_EQ(aclrtMemsetD32(heap, 16, 1, 4), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemsetD32Async(heap, 16, 1, 4, stream), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtMemsetD32(plus(block, 4), 8, 0x01020304, 2));
    read_words(block);
    CHECK(words[0] == 0 && words[1] == 0x01020304 && words[2] == 0x01020304 && words[3] == 0);
    OK(aclrtMemsetD32(block, 2 * SIZE, 0x05060708, 2 * SIZE / 4));
    read_words(plus(block, 2 * SIZE - 8));
    CHECK(words[0] == 0x05060708 && words[1] == 0x05060708 && words[2] == 0);
    OK(hostacl_hold(0));
    OK(aclrtMemsetD32Async(block, SIZE, 0x11111111, 3, stream));
    OK(aclrtMemsetD32Async(pinned, SIZE, 0x22334455, 1, stream));
    read_words(block);
    CHECK(words[0] == 0x05060708 && pinned[0] == 0);
    OK(hostacl_release(0));
    OK(aclrtSynchronizeStream(stream));
    read_words(block);
    CHECK(words[2] == 0x11111111 && words[3] == 0x05060708 && pinned[0] == 0x22334455 && pinned[1] == 0);
    CHECK_EQ(aclrtMemsetD32(plus(block, 3 * SIZE - 4), 64, 1, 2), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtFreeHost(pinned));
    tear_down();
}

/* The last task a thread gave to any stream. */
static void test_last_task(void) {
    uint32_t id = 7;
    set_up("strict");
    void *block = new_block(SIZE, 0);
    CHECK_EQ(aclrtGetThreadLastTaskId(NULL), ACL_ERROR_INVALID_PARAM);
    OK(aclrtMemsetAsync(block, SIZE, 1, SIZE, stream));
    OK(aclrtMemsetAsync(block, SIZE, 1, SIZE, stream));
    OK(aclrtGetThreadLastTaskId(&id));
    CHECK_EQ(id, 2);
    OK(aclrtMemsetAsync(new_block(SIZE, 0), SIZE, 1, SIZE, NULL));
    OK(aclrtGetThreadLastTaskId(&id));
    CHECK_EQ(id, 1);
    tear_down();
}

/* Frees that synchronise the device first. */
static void test_free_with_synchronise(void) {
    start(NULL);
    void *block = NULL;
    CHECK_EQ(aclrtFreeWithDevSync(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtFreeHostWithDevSync(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtFreeWithDevSync(plus(NULL, 8)), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtFreeHostWithDevSync(plus(NULL, 8)), ACL_ERROR_RT_CONTEXT_NULL);
    set_up("strict");
    uint8_t *pinned = new_pinned(SIZE, 1);
    block = new_block(SIZE, 0);
    OK(hostacl_delay_task("aclrtMemcpyAsync", LONG_MS * 1000));
    OK(aclrtMemcpyAsync(block, SIZE, pinned, SIZE, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    OK(aclrtFreeWithDevSync(block));
    CHECK(is_idle(stream));
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(aclrtFreeWithDevSync(block), ACL_ERROR_RT_PARAM_INVALID);
    block = new_block(SIZE, 0);
    OK(aclrtMemcpyAsync(pinned, SIZE, block, SIZE, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    OK(aclrtFreeHostWithDevSync(pinned));
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(aclrtFreeHostWithDevSync(pinned), ACL_ERROR_RT_PARAM_INVALID);
    OK(hostacl_fail_task(1, 507899));
    OK(aclrtMemsetAsync(block, SIZE, 1, SIZE, stream));
    CHECK_EQ(aclrtFreeWithDevSync(block), 507899);
    OK(aclrtFreeWithDevSync(block));
    tear_down();
}

/* A copy between devices asks for peer access when its turn comes. */
static void test_two_devices(void) {
    set_up("strict");
    void *here = new_block(SIZE, 1), *there = NULL;
    aclrtContext primary = NULL;
    OK(aclrtGetCurrentContext(&primary));
    OK(aclrtSetDevice(1));
    there = new_block(SIZE, 2);
    OK(aclrtSetCurrentContext(primary));
    OK(aclrtMemcpyAsync(here, SIZE, there, SIZE, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtDeviceEnablePeerAccess(1, 0));
    OK(aclrtMemcpyAsync(here, SIZE, there, SIZE, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
    OK(aclrtSynchronizeStream(stream));
    CHECK(block_is(here, SIZE, 2));
    OK(aclrtResetDevice(1));
    tear_down();
}

/* The form with a condition: put off for memory the runtime knows, at once for other memory. */
static void test_condition(void) {
    uint8_t bytes[SIZE];
    set_up("strict");
    void *block = new_block(SIZE, 0);
    uint8_t *pinned = new_pinned(SIZE, 3);
    memset(bytes, 4, SIZE);
    OK(hostacl_hold(0));
    OK(aclrtMemcpyAsyncWithCondition(block, SIZE, pinned, SIZE, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    CHECK(block_is(block, SIZE, 0));
    OK(hostacl_release(0));
    OK(aclrtMemcpyAsyncWithCondition(block, SIZE, bytes, 8, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    CHECK(block_is(block, 8, 4) && block_is(plus(block, 8), SIZE - 8, 3));
    OK(aclrtMemcpyAsyncWithCondition(NULL, 0, NULL, 0, (aclrtMemcpyKind)99, NULL));
    CHECK_EQ(aclrtMemcpyAsyncWithCondition(NULL, 8, bytes, 8, ACL_MEMCPY_DEFAULT, stream), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemcpyAsyncWithCondition(block, 7, bytes, 8, ACL_MEMCPY_DEFAULT, stream), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtFreeHost(pinned));
    tear_down();
}

int main(void) {
    test_arguments();
    test_condition();
    test_kinds("strict");
    test_kinds("card");
    test_deferred();
    test_unregistered_is_done();
    test_buffered();
    test_freed_device_memory("strict", ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    test_freed_device_memory("card", ACL_SUCCESS);
    test_freed_host_memory("strict");
    test_freed_host_memory("card");
    test_registered_memory();
    test_overrun();
    test_words();
    test_last_task();
    test_free_with_synchronise();
    test_two_devices();
    start(NULL);
    return check_done();
}
