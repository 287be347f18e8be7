/* Combining numbers of two ranges in stream order. */
#include "streams.h"

enum {
    COUNT = 5000,
    SUM = ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM,
    MAX = ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX,
    MIN = ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN
};

static aclrtStream stream;

static void set_up(void) {
    start("profile", "strict", NULL);
    OK(aclrtSetDevice(0));
    stream = new_stream();
}

static void tear_down(void) {
    OK(aclrtResetDeviceForce(0));
    check_nothing_alive();
}

static void *upload(const void *values, size_t bytes) {
    void *block = new_block(bytes, 0);
    OK(aclrtMemcpy(block, bytes, values, bytes, ACL_MEMCPY_HOST_TO_DEVICE));
    return block;
}

static int reduce(void *dst, const void *src, uint64_t bytes, int kind, aclDataType type) {
    return aclrtReduceAsync(dst, src, bytes, (aclrtReduceKind)kind, type, stream, NULL);
}

/* Combines two pairs of numbers and compares: a and b hold two numbers each. */
static void check_pair(aclDataType type, int kind, const void *a, const void *b, const void *wanted) {
    size_t bytes = 2 * aclDataTypeSize(type);
    uint8_t got[16];
    void *dst = upload(a, bytes), *src = upload(b, bytes);
    OK(reduce(dst, src, bytes, kind, type));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(got, bytes, dst, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
    if (!CHECK(!memcmp(got, wanted, bytes)))
        printf("    type %d, kind %d\n", (int)type, kind);
    OK(aclrtMemcpy(got, bytes, src, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(!memcmp(got, b, bytes));
    OK(aclrtFree(dst));
    OK(aclrtFree(src));
}

#define PAIR(stored, first, second) ((const stored[]){(stored)(first), (stored)(second)})
#define CHECK_PAIR(type, kind, stored, a, b, wanted)                                                                   \
    check_pair(type, kind, PAIR(stored, a), PAIR(stored, b), PAIR(stored, wanted))
#define TWO(a, b) a, b

static void test_numbers(void) {
    set_up();
    CHECK_PAIR(ACL_INT8, SUM, int8_t, TWO(100, -1), TWO(100, -2), TWO(-56, -3));
    CHECK_PAIR(ACL_INT8, MAX, int8_t, TWO(-1, 5), TWO(1, -128), TWO(1, 5));
    CHECK_PAIR(ACL_INT8, MIN, int8_t, TWO(-1, 5), TWO(1, -128), TWO(-1, -128));
    CHECK_PAIR(ACL_INT16, SUM, int16_t, TWO(32767, 300), TWO(1, -301), TWO(-32768, -1));
    CHECK_PAIR(ACL_INT16, MAX, int16_t, TWO(-300, 3), TWO(2, -4), TWO(2, 3));
    CHECK_PAIR(ACL_INT16, MIN, int16_t, TWO(-300, 3), TWO(2, -4), TWO(-300, -4));
    CHECK_PAIR(ACL_INT32, SUM, int32_t, TWO(INT32_MAX, -70000), TWO(1, 69999), TWO(INT32_MIN, -1));
    CHECK_PAIR(ACL_INT32, MAX, int32_t, TWO(-70000, 1), TWO(70000, -1), TWO(70000, 1));
    CHECK_PAIR(ACL_INT32, MIN, int32_t, TWO(-70000, 1), TWO(70000, -1), TWO(-70000, -1));
    CHECK_PAIR(ACL_FLOAT, SUM, float, TWO(1.5, -2), TWO(0.25, 5), TWO(1.75, 3));
    CHECK_PAIR(ACL_FLOAT, MAX, float, TWO(1.5, -2), TWO(0.25, 5), TWO(1.5, 5));
    CHECK_PAIR(ACL_FLOAT, MIN, float, TWO(1.5, -2), TWO(0.25, 5), TWO(0.25, -2));
    /* 1 + 2, 2048 + 1 rounds to 2048; -1 and 2 */
    CHECK_PAIR(ACL_FLOAT16, SUM, uint16_t, TWO(0x3c00, 0x6800), TWO(0x4000, 0x3c00), TWO(0x4200, 0x6800));
    CHECK_PAIR(ACL_FLOAT16, MAX, uint16_t, TWO(0xbc00, 0x4000), TWO(0x3c00, 0xc000), TWO(0x3c00, 0x4000));
    CHECK_PAIR(ACL_FLOAT16, MIN, uint16_t, TWO(0xbc00, 0x4000), TWO(0x3c00, 0xc000), TWO(0xbc00, 0xc000));
    /* 1 + 2, 256 + 1 rounds to 256, then NaN */
    CHECK_PAIR(ACL_BF16, SUM, uint16_t, TWO(0x3f80, 0x4380), TWO(0x4000, 0x3f80), TWO(0x4040, 0x4380));
    CHECK_PAIR(ACL_BF16, SUM, uint16_t, TWO(0x7fc1, 0x7f80), TWO(0x3f80, 0x3f80), TWO(0x7fc1, 0x7f80));
    CHECK_PAIR(ACL_BF16, MAX, uint16_t, TWO(0xbf80, 0x4000), TWO(0x3f80, 0xc000), TWO(0x3f80, 0x4000));
    CHECK_PAIR(ACL_BF16, MIN, uint16_t, TWO(0xbf80, 0x4000), TWO(0x3f80, 0xc000), TWO(0xbf80, 0xc000));
    tear_down();
}

/* Many numbers over pages that were never written, in order with other tasks. */
static void test_order(void) {
    static float ones[COUNT], got[COUNT];
    void *fresh = NULL, *untouched = NULL;
    set_up();
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
    void *src = upload(ones, sizeof(ones));
    OK(aclrtMalloc(&fresh, sizeof(ones), ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMalloc(&untouched, sizeof(ones), ACL_MEM_MALLOC_HUGE_FIRST));
    OK(hostacl_hold(0));
    OK(reduce(fresh, src, sizeof(ones), SUM, ACL_FLOAT));
    OK(reduce(fresh, fresh, sizeof(ones), SUM, ACL_FLOAT));
    OK(reduce(fresh, untouched, sizeof(ones), SUM, ACL_FLOAT));
    OK(hostacl_release(0));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(got, sizeof(got), fresh, sizeof(got), ACL_MEMCPY_DEVICE_TO_HOST));
    for (int i = 0; i < COUNT && CHECK(got[i] == 2); i++)
        continue;
    tear_down();
}

/* Two streams that add to the same numbers lose nothing. */
static void test_two_streams(void) {
    enum { ROUNDS = 200 };
    static int32_t ones[COUNT], got[COUNT];
    set_up();
    aclrtStream other = new_stream();
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
    void *src = upload(ones, sizeof(ones)), *dst = new_block(sizeof(ones), 0);
    for (int i = 0; i < ROUNDS; i++) {
        OK(aclrtReduceAsync(dst, src, sizeof(ones), (aclrtReduceKind)SUM, ACL_INT32, stream, NULL));
        OK(aclrtReduceAsync(dst, src, sizeof(ones), (aclrtReduceKind)SUM, ACL_INT32, other, NULL));
    }
    OK(aclrtSynchronizeDevice());
    OK(aclrtMemcpy(got, sizeof(got), dst, sizeof(got), ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_EQ(got[0], 2 * ROUNDS);
    CHECK_EQ(got[COUNT - 1], 2 * ROUNDS);
    tear_down();
}

static void test_arguments(void) {
    int32_t host[4] = {0};
    start(NULL);
    CHECK_EQ(aclrtReduceAsync(host, host, 4, (aclrtReduceKind)SUM, ACL_INT32, NULL, NULL), ACL_ERROR_RT_CONTEXT_NULL);
    set_up();
    void *block = new_block(64, 1);
    CHECK_EQ(reduce(NULL, block, 4, SUM, ACL_INT32), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(reduce(block, NULL, 4, SUM, ACL_INT32), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(reduce(block, block, 0, SUM, ACL_INT32), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(reduce(block, block, 4, 9, ACL_INT32), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(reduce(block, block, 4, 14, ACL_INT32), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtReduceAsync(block, block, 4, (aclrtReduceKind)SUM, ACL_INT32, stream, block),
             ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(reduce(block, block, 4, ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL, ACL_INT32), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_EQ(reduce(block, block, 4, SUM, ACL_DOUBLE), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_EQ(reduce(block, block, 6, SUM, ACL_INT32), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(reduce(plus(block, 2), block, 4, SUM, ACL_INT32), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(reduce(block, plus(block, 2), 4, SUM, ACL_INT32), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(reduce(block, host, 4, SUM, ACL_INT32), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(reduce(host, block, 4, SUM, ACL_INT32), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtReduceAsync(block, block, 4, (aclrtReduceKind)SUM, ACL_INT32, host, NULL),
             ACL_ERROR_RT_INVALID_HANDLE);
    OK(reduce(block, block, 68, SUM, ACL_INT32));
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK(block_is(block, 64, 1));
    tear_down();
}

int main(void) {
    test_numbers();
    test_order();
    test_two_streams();
    test_arguments();
    start(NULL);
    check_nothing_alive();
    return check_done();
}
