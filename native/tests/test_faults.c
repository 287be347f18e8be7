/* hostacl_delay, hostacl_fail_above and hostacl_short_copy. */
#include <time.h>

#include "check.h"

static uint64_t microseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

static void test_delay(void) {
    uint32_t count = 0;
    start(NULL);
    OK(hostacl_delay("aclrtGetDeviceCount", 20000));
    uint64_t before = microseconds();
    OK(aclrtGetDeviceCount(&count));
    OK(aclrtGetDeviceCount(&count));
    CHECK(microseconds() - before >= 40000);
    OK(hostacl_delay("aclrtGetDeviceCount", 3600000000u));
    OK(hostacl_delay("aclrtGetDeviceCount", 0));
    OK(aclrtGetDeviceCount(&count));
    OK(hostacl_delay("aclrtGetDeviceCount", 3600000000u));
    OK(hostacl_delay("aclInit", 3600000000u));
    OK(hostacl_delay(NULL, 0));
    OK(aclrtGetDeviceCount(&count));
    OK(hostacl_delay("aclrtGetDeviceCount", 3600000000u));
    OK(hostacl_reset());
    OK(aclrtGetDeviceCount(&count));
    CHECK_EQ(hostacl_delay("aclrtNothing", 1), ACL_ERROR_INVALID_PARAM);
    CHECK(strstr(hostacl_error(), "aclrtNothing is no exported function"));
    CHECK_EQ(hostacl_delay(NULL, 1), ACL_ERROR_INVALID_PARAM);
}

/* A delayed call that is also to fail waits, then fails. */
static void test_delay_and_failure(void) {
    uint32_t count = 7;
    start(NULL);
    OK(hostacl_delay("aclrtGetDeviceCount", 5000));
    OK(hostacl_fail("aclrtGetDeviceCount", 1, 507000));
    uint64_t before = microseconds();
    CHECK_EQ(aclrtGetDeviceCount(&count), 507000);
    CHECK(microseconds() - before >= 5000);
    CHECK_EQ(count, 7);
}

/* Every kind of allocation stops at the same number of bytes; nothing is left of the refused ones. */
static void test_fail_above(void) {
    void *block = NULL;
    aclrtDrvMemHandle handle = NULL;
    aclrtPhysicalMemProp prop = {.memAttr = ACL_HBM_MEM_HUGE, .location = {.type = ACL_MEM_LOCATION_TYPE_DEVICE}};
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(hostacl_fail_above(4 * MIB, 207001));
    OK(aclrtMalloc(&block, 4 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtFree(block));
    OK(aclrtMallocHost(&block, 4 * MIB));
    OK(aclrtFreeHost(block));
    OK(aclrtMallocPhysical(&handle, 4 * MIB, &prop, 0));
    OK(aclrtFreePhysical(handle));
    block = &block;
    CHECK_EQ(aclrtMalloc(&block, 4 * MIB + 1, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK(!block);
    CHECK(strstr(aclGetRecentErrMsg(), "4194305 bytes are above the 4194304 bytes that may be had"));
    CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK_EQ(aclrtMallocAlign32(&block, GIB, ACL_MEM_MALLOC_NORMAL_ONLY), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK_EQ(aclrtMallocWithCfg(&block, GIB, ACL_MEM_MALLOC_HUGE1G_ONLY, NULL), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK_EQ(aclrtMallocHost(&block, 5 * MIB), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK_EQ(aclrtMallocPhysical(&handle, 6 * MIB, &prop, 0), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK_EQ(aclrtMemAllocManaged(&block, 6 * MIB, ACL_RT_MEM_ATTACH_GLOBAL), ACL_ERROR_RT_MEMORY_ALLOCATION);
    OK(hostacl_fail_above(0, 207005));
    CHECK_EQ(aclrtMalloc(&block, 1, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_RESOURCE_ALLOC_FAIL);
    CHECK_EQ(aclrtMallocHost(&block, 1), ACL_ERROR_RT_RESOURCE_ALLOC_FAIL);
    CHECK_EQ(aclrtMalloc(NULL, 1, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM);
    OK(hostacl_fail_above(0, 0));
    OK(aclrtMalloc(&block, GIB, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtFree(block));
    OK(hostacl_fail_above(1, 207001));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
    OK(hostacl_reset());
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtFree(block));
}

/* The number of bytes at the start of a block that are not zero. */
static size_t moved(const void *block) {
    static uint8_t back[8192];
    size_t count = 0;
    OK(aclrtMemcpy(back, sizeof(back), block, sizeof(back), ACL_MEMCPY_DEVICE_TO_HOST));
    while (count < sizeof(back) && back[count])
        count++;
    for (size_t i = count; i < sizeof(back); i++)
        CHECK(!back[i]);
    return count;
}

static void test_short_copy(void) {
    static uint8_t bytes[8192];
    void *block = NULL;
    memset(bytes, 7, sizeof(bytes));
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, sizeof(bytes), ACL_MEM_MALLOC_HUGE_FIRST));
    OK(hostacl_short_copy(2, 5000, 507899));
    OK(aclrtMemcpy(block, 64, bytes, 64, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK_EQ(aclrtMemcpy(block, 64, bytes, 100, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtMemcpy(block, 64, bytes, 0, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK_EQ(aclrtMemcpy(block, sizeof(bytes), bytes, sizeof(bytes), ACL_MEMCPY_HOST_TO_DEVICE), 507899);
    CHECK(strstr(aclGetRecentErrMsg(), "the copy stopped after 5000 of 8192 bytes"));
    CHECK_EQ(moved(block), 5000);
    OK(aclrtMemset(block, sizeof(bytes), 0, sizeof(bytes)));
    OK(hostacl_short_copy(1, 4096, 0));
    OK(aclrtMemcpy(block, sizeof(bytes), bytes, sizeof(bytes), ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK_EQ(moved(block), 4096);
    OK(hostacl_short_copy(1, 0, 507052));
    OK(hostacl_short_copy(0, 0, 0));
    OK(aclrtMemcpy(block, sizeof(bytes), bytes, sizeof(bytes), ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK_EQ(moved(block), sizeof(bytes));
    OK(hostacl_short_copy(1, MIB, 507052));
    OK(aclrtMemset(block, sizeof(bytes), 0, sizeof(bytes)));
    CHECK_EQ(aclrtMemcpy(block, 64, bytes, 64, ACL_MEMCPY_HOST_TO_DEVICE), 507052);
    CHECK_EQ(moved(block), 64);
    OK(hostacl_short_copy(1, 0, 507052));
    OK(aclrtFree(block));
    OK(hostacl_reset());
    CHECK_EQ(aclrtMemcpy(bytes, 64, bytes + 64, 64, ACL_MEMCPY_HOST_TO_HOST), ACL_ERROR_RT_CONTEXT_NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMemcpy(bytes, 64, bytes + 64, 64, ACL_MEMCPY_HOST_TO_HOST));
}

int main(void) {
    test_delay();
    test_delay_and_failure();
    test_fail_above();
    test_short_copy();
    start(NULL);
    return check_done();
}
