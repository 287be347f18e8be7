/* aclrtMemcpy: order of checks, directions, ranges, content (strict profile). */
#include "check.h"

static uint8_t *pattern(size_t size, unsigned seed) {
    uint8_t *bytes = malloc(size);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(seed = seed * 1103515245u + 12345u, seed >> 16);
    return bytes;
}

static void test_order_of_checks(void) {
    char bytes[64] = {0};
    void *block = NULL;
    start(NULL);
    OK(aclrtMemcpy(NULL, 0, NULL, 0, (aclrtMemcpyKind)99));
    CHECK_EQ(aclrtMemcpy(NULL, 64, bytes, 64, (aclrtMemcpyKind)99), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemcpy(bytes, 64, NULL, 64, ACL_MEMCPY_HOST_TO_HOST), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemcpy(bytes, 0, bytes + 1, 1, (aclrtMemcpyKind)6), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemcpy(bytes, 0, bytes + 1, 1, (aclrtMemcpyKind)7), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemcpy(bytes, 0, bytes + 1, 1, (aclrtMemcpyKind)8), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemcpy(bytes, 0, bytes + 1, 1, (aclrtMemcpyKind)-1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemcpy(bytes, 0, bytes, 1, ACL_MEMCPY_HOST_TO_HOST), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemcpy(bytes, 8, bytes, 9, ACL_MEMCPY_HOST_TO_HOST), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtMemcpy(bytes, 9, bytes, 9, ACL_MEMCPY_DEVICE_TO_DEVICE));
    CHECK_EQ(aclrtMemcpy(bytes, 9, bytes + 16, 9, ACL_MEMCPY_HOST_TO_HOST), ACL_ERROR_RT_CONTEXT_NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    for (int kind = 0; kind <= 5; kind++) {
        OK(aclrtMemcpy(block, 64, bytes, 64, (aclrtMemcpyKind)kind));
        OK(aclrtMemcpy(bytes, 64, block, 64, (aclrtMemcpyKind)kind));
    }
    OK(aclrtMemcpy(block, SIZE_MAX, bytes, 64, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtFree(block));
}

static void round_trip(uint32_t policy, size_t size, size_t offset, size_t count) {
    void *first = NULL, *second = NULL;
    uint8_t *in = pattern(count, (unsigned)(size + offset + policy)), *out = calloc(1, count);
    OK(aclrtMallocAlign32(&first, size, (aclrtMemMallocPolicy)policy));
    OK(aclrtMallocAlign32(&second, size, (aclrtMemMallocPolicy)policy));
    OK(aclrtMemcpy(plus(first, offset), count, in, count, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtMemcpy(plus(second, size - count), count, plus(first, offset), count, ACL_MEMCPY_DEVICE_TO_DEVICE));
    OK(aclrtMemcpy(out, count, plus(second, size - count), count, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(!memcmp(in, out, count));
    OK(aclrtFree(first));
    OK(aclrtFree(second));
    free(in);
    free(out);
}

static void test_round_trips(void) {
    start(NULL);
    OK(aclrtSetDevice(0));
    for (uint32_t policy = 0; policy < 3; policy++) {
        round_trip(policy, 1, 0, 1);
        round_trip(policy, 4096, 0, 4096);
        round_trip(policy, 4097, 4095, 2);
        round_trip(policy, 3 * MIB + 5, 1234, 2 * MIB + 77);
    }
    round_trip(ACL_MEM_MALLOC_HUGE1G_ONLY, GIB, GIB - 9 * MIB, 9 * MIB);
}

/* Pieces of any size written in any order, onto fresh and used pages, come back as written. */
static void test_pieces(void) {
    enum { SIZE = 300000 };
    void *block = NULL;
    uint8_t *model = calloc(1, SIZE), *out = malloc(SIZE), *in = pattern(SIZE, 7);
    unsigned seed = 3;
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, SIZE, ACL_MEM_MALLOC_NORMAL_ONLY));
    for (int i = 0; i < 400; i++) {
        seed = seed * 1103515245u + 12345u;
        size_t at = seed % SIZE;
        size_t count = seed / 7 % (i % 2 ? 9000 : 100) + 1;
        if (count > SIZE - at)
            count = SIZE - at;
        OK(aclrtMemcpy(plus(block, at), count, in + at / 2, count, ACL_MEMCPY_HOST_TO_DEVICE));
        memcpy(model + at, in + at / 2, count);
        OK(aclrtMemcpy(out, SIZE, block, SIZE, ACL_MEMCPY_DEVICE_TO_HOST));
        if (!CHECK(!memcmp(model, out, SIZE)))
            break;
    }
    OK(aclrtFree(block));
    free(model);
    free(out);
    free(in);
}

/* A block of scattered pages: 40 pieces and more per copy. */
static void test_scattered(void) {
    enum { PAGES = 200 };
    void *blocks[PAGES], *rest = NULL;
    size_t size = PAGES / 2 * 4096;
    uint8_t *in = pattern(size, 5), *out = calloc(1, size);
    start("pages_4k", "800K", "pages_2m", "2M", NULL);
    OK(aclrtSetDevice(0));
    for (int i = 0; i < PAGES; i++)
        OK(aclrtMallocAlign32(&blocks[i], 4096, ACL_MEM_MALLOC_NORMAL_ONLY));
    for (int i = 0; i < PAGES; i++)
        OK(i % 2 ? aclrtMemset(blocks[i], 4096, i, 4096) : aclrtFree(blocks[i]));
    OK(aclrtMallocAlign32(&rest, size, ACL_MEM_MALLOC_NORMAL_ONLY));
    OK(aclrtMemcpy(rest, size, in, size, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtMemcpy(out, size, rest, size, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(!memcmp(in, out, size));
    for (int i = 1; i < PAGES; i += 2) {
        uint8_t byte = 0;
        OK(aclrtMemcpy(&byte, 1, plus(blocks[i], 4095), 1, ACL_MEMCPY_DEVICE_TO_HOST));
        CHECK_EQ(byte, (uint8_t)i);
    }
    free(in);
    free(out);
}

static void test_ranges(void) {
    static uint8_t bytes[8192];
    void *block = NULL, *next = NULL;
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, 1000, ACL_MEM_MALLOC_NORMAL_ONLY));
    OK(aclrtMalloc(&next, 1000, ACL_MEM_MALLOC_NORMAL_ONLY));
    OK(aclrtMemcpy(plus(block, 999), 1, bytes, 1, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK_EQ(aclrtMemcpy(plus(block, 999), 2, bytes, 2, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemcpy(bytes, 1001, block, 1001, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemcpy(plus(next, -1), 1, bytes, 1, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemcpy(block, 8192, bytes, 8192, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemcpy(next, 2, plus(block, 999), 2, ACL_MEMCPY_DEVICE_TO_DEVICE), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemcpy(plus(block, 500 * GIB), 1, bytes, 1, ACL_MEMCPY_HOST_TO_DEVICE),
             ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemcpy(block, SIZE_MAX, bytes, SIZE_MAX, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
}

static void test_host_to_host(void) {
    uint8_t bytes[64] = {1, 2, 3, 4, 5, 6, 7, 8};
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMemcpy(bytes + 8, 8, bytes, 8, ACL_MEMCPY_HOST_TO_HOST));
    CHECK_EQ(bytes[15], 8);
    CHECK_EQ(aclrtMemcpy(bytes + 7, 8, bytes, 8, ACL_MEMCPY_HOST_TO_HOST), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemcpy(bytes, 8, bytes + 7, 8, ACL_MEMCPY_DEVICE_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(bytes[0], 1);
}

/* Overlap in device memory is allowed; what the overlapping bytes become is open. */
static void test_overlap_on_device(void) {
    void *block = NULL;
    uint8_t byte = 9, back = 0;
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, 8192, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemcpy(plus(block, 4000), 1, &byte, 1, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtMemcpy(plus(block, 4096), 4096, block, 4096, ACL_MEMCPY_DEVICE_TO_DEVICE));
    OK(aclrtMemcpy(&back, 1, plus(block, 8096), 1, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_EQ(back, 9);
    OK(aclrtMemcpy(plus(block, 16), 4096, block, 4096, ACL_MEMCPY_DEVICE_TO_DEVICE));
}

static void test_between_devices(void) {
    uint8_t in[256], out[256] = {0};
    void *first = NULL, *second = NULL;
    memset(in, 51, sizeof(in));
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&first, 256, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemcpy(first, 256, in, 256, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtSetDevice(1));
    OK(aclrtMalloc(&second, 256, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtDeviceEnablePeerAccess(0, 0));
    OK(aclrtMemcpy(second, 256, first, 256, ACL_MEMCPY_DEVICE_TO_DEVICE));
    OK(aclrtMemcpy(out, 256, second, 256, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(!memcmp(in, out, 256));
}

/* A source the host cannot read is an error on fresh pages, not a crash. */
static void test_unreadable_source(void) {
    void *block = NULL;
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, 4096, ACL_MEM_MALLOC_NORMAL_ONLY));
    CHECK_EQ(aclrtMemcpy(block, 4096, (void *)8, 4096, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_COPY_DATA);
    OK(aclrtFree(block));
}

int main(void) {
    test_order_of_checks();
    test_round_trips();
    test_pieces();
    test_scattered();
    test_ranges();
    test_host_to_host();
    test_overlap_on_device();
    test_between_devices();
    test_unreadable_source();
    start(NULL);
    check_nothing_alive();
    return check_done();
}
