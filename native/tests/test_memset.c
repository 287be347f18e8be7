/* aclrtMemset: order of checks, ranges, content, host memory (strict profile). */
#include "check.h"

static void test_order_of_checks(void) {
    void *block = NULL;
    char byte = 0;
    start(NULL);
    OK(aclrtMemset(NULL, 0, 0, 0));
    CHECK_EQ(aclrtMemset(NULL, 16, 0, 16), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemset(&byte, 0, 0, 1), ACL_ERROR_RT_CONTEXT_NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_EQ(aclrtMemset(block, 8, 0, 9), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemset(block, 0, 0, 1), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemset(block, 8192, 0, 4097), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemset(plus(block, 4095), 2, 0, 2), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemset(plus(block, 300 * GIB), 1, 0, 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemset(block, SIZE_MAX, 0, SIZE_MAX), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtFree(block));
}

/* Whether a range of a block holds one value. */
static bool holds(const void *block, uint64_t at, uint64_t count, int value) {
    uint8_t *bytes = malloc(count);
    OK(aclrtMemcpy(bytes, count, plus(block, at), count, ACL_MEMCPY_DEVICE_TO_HOST));
    uint64_t i = 0;
    while (i < count && bytes[i] == (uint8_t)value)
        i++;
    free(bytes);
    return i == count;
}

static void test_content(void) {
    void *block = NULL;
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, 5 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemset(plus(block, 3), 5 * MIB, 119, 4 * MIB));
    CHECK(holds(block, 3, 4 * MIB, 119));
    OK(aclrtMemset(block, 5 * MIB, 511, 3));
    CHECK(holds(block, 0, 3, 255));
    CHECK(holds(block, 3, 100, 119));
    OK(aclrtMemset(block, 5 * MIB, 0, 5 * MIB));
    CHECK(holds(block, 0, 5 * MIB, 0));
    OK(aclrtMemset(block, 5 * MIB, -1, 1));
    CHECK(holds(block, 0, 1, 255));
    CHECK(holds(block, 1, 4096, 0));
    OK(aclrtFree(block));
}

static void test_host_memory(void) {
    uint8_t bytes[200] = {0};
    void *host = NULL;
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMemset(bytes + 10, 190, 18, 100));
    CHECK_EQ(bytes[9], 0);
    CHECK_EQ(bytes[10], 18);
    CHECK_EQ(bytes[109], 18);
    CHECK_EQ(bytes[110], 0);
    OK(aclrtMallocHost(&host, 4096));
    OK(aclrtMemset(host, 4096, 6, 4096));
    CHECK_EQ(((uint8_t *)host)[4095], 6);
    OK(aclrtFreeHost(host));
}

int main(void) {
    test_order_of_checks();
    test_content();
    test_host_memory();
    return check_done();
}
