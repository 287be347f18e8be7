/* The card profile: as forgiving as the driver, in the ways docs/host_runtime.md lists and in no other. */
#include "check.h"

static void test_freed_blocks_answer(void) {
    char bytes[4096] = {0};
    void *block = NULL, *next = NULL;
    aclrtPtrAttributes attributes;
    start("profile", "card", NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, 4 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtFree(block));
    OK(aclrtMemcpy(block, 4096, bytes, 4096, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtMemset(block, 4096, 1, 4096));
    OK(aclrtPointerGetAttributes(block, &attributes));
    CHECK_EQ(attributes.pageSize, 2 * MIB);
    CHECK_EQ(aclrtFree(block), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemset(plus(block, 100 * GIB), 1, 1, 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtMalloc(&next, 4 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(next == block);
    OK(aclrtFree(next));
    OK(aclrtResetDevice(0));
    OK(aclrtSetDevice(0));
    CHECK_EQ(aclrtMemset(block, 16, 1, 16), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtPointerGetAttributes(block, &attributes), ACL_ERROR_RT_PARAM_INVALID);
}

static void test_whole_pages(void) {
    void *small = NULL, *huge = NULL;
    start("profile", "card", NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&small, 1024, ACL_MEM_MALLOC_NORMAL_ONLY));
    OK(aclrtMemset(small, 4096, 1, 2048));
    CHECK_EQ(aclrtMemset(small, 64 * MIB, 1, 64 * MIB), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtMalloc(&huge, 3 * MIB, ACL_MEM_MALLOC_HUGE_ONLY));
    OK(aclrtMemset(huge, 4 * MIB, 1, 4 * MIB));
    CHECK_EQ(aclrtMemset(plus(huge, 3 * MIB), 2 * MIB, 1, 2 * MIB), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
}

/* Neighbours in address space on different devices are no one range. */
static void test_devices_are_apart(void) {
    void *first = NULL, *second = NULL;
    start("profile", "card", NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtSetDevice(1));
    OK(aclrtMallocAlign32(&second, 2 * MIB, ACL_MEM_MALLOC_HUGE_ONLY));
    OK(aclrtSetDevice(0));
    OK(aclrtMallocAlign32(&first, 2 * MIB, ACL_MEM_MALLOC_HUGE_ONLY));
    void *low = first < second ? first : second;
    CHECK(plus(low, 2 * MIB) == (first < second ? second : first));
    OK(aclrtMemset(low, 2 * MIB, 1, 2 * MIB));
    CHECK_EQ(aclrtMemset(low, 2 * MIB + 1, 1, 2 * MIB + 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
}

static void test_free_memory(void) {
    void *small = NULL, *large = NULL;
    start("profile", "card", NULL);
    OK(aclrtSetDevice(0));
    CHECK_EQ(free_bytes(ACL_HBM_MEM_HUGE), 52 * GIB - 28 * MIB);
    CHECK_EQ(free_bytes(ACL_HBM_MEM_NORMAL), 8 * GIB - 6 * MIB);
    uint64_t before = free_bytes(ACL_HBM_MEM);
    OK(aclrtMalloc(&small, 6 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_EQ(before - free_bytes(ACL_HBM_MEM), 8 * MIB);
    OK(aclrtMalloc(&large, 600 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_EQ(before - free_bytes(ACL_HBM_MEM), 610 * MIB);
    OK(aclrtFree(large));
    CHECK_EQ(before - free_bytes(ACL_HBM_MEM), 8 * MIB);
    OK(aclrtFree(small));
    CHECK_EQ(before - free_bytes(ACL_HBM_MEM), 8 * MIB);
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

/* Small blocks share chunks of 2 MiB; P2P memory has chunks of its own. */
static void test_small_blocks(void) {
    void *blocks[600];
    start("profile", "card", NULL);
    OK(aclrtSetDevice(0));
    uint64_t before = free_bytes(ACL_HBM_MEM_NORMAL);
    for (int i = 0; i < 512; i++)
        OK(aclrtMallocAlign32(&blocks[i], 4096, ACL_MEM_MALLOC_NORMAL_ONLY));
    CHECK_EQ(before - free_bytes(ACL_HBM_MEM_NORMAL), 0);
    OK(aclrtMallocAlign32(&blocks[512], 4096, ACL_MEM_MALLOC_NORMAL_ONLY));
    CHECK_EQ(before - free_bytes(ACL_HBM_MEM_NORMAL), 2 * MIB);
    OK(aclrtMallocAlign32(&blocks[513], 4096, ACL_MEM_MALLOC_NORMAL_ONLY_P2P));
    CHECK_EQ(before - free_bytes(ACL_HBM_MEM_NORMAL), 4 * MIB);
    for (int i = 0; i < 514; i++)
        OK(aclrtFree(blocks[i]));
    CHECK_EQ(before - free_bytes(ACL_HBM_MEM_NORMAL), 4 * MIB);
}

/* Memory the driver keeps is given up before a call fails. */
static void test_kept_memory_is_no_loss(void) {
    void *blocks[16], *all = NULL;
    start("profile", "card", "pages_4k", "8M", "pages_2m", "92M", NULL);
    OK(aclrtSetDevice(0));
    CHECK_EQ(free_bytes(ACL_HBM_MEM_HUGE), 64 * MIB);
    for (int i = 0; i < 16; i++) {
        OK(aclrtMallocAlign32(&blocks[i], 4 * MIB, ACL_MEM_MALLOC_HUGE_ONLY));
        OK(aclrtMemset(blocks[i], 4 * MIB, 1, 4 * MIB));
    }
    CHECK_EQ(aclrtMallocAlign32(&all, 2 * MIB, ACL_MEM_MALLOC_HUGE_ONLY), ACL_ERROR_RT_MEMORY_ALLOCATION);
    for (int i = 0; i < 16; i++)
        OK(aclrtFree(blocks[i]));
    CHECK_EQ(free_bytes(ACL_HBM_MEM_HUGE), 0);
    OK(aclrtMallocAlign32(&all, 64 * MIB, ACL_MEM_MALLOC_HUGE_ONLY));
    OK(aclrtFree(all));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

/* Freed pieces of a chunk join again. */
static void test_pieces_join(void) {
    void *blocks[4], *whole = NULL;
    start("profile", "card", NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMallocAlign32(&whole, 16 * MIB, ACL_MEM_MALLOC_HUGE_ONLY));
    void *first = whole;
    OK(aclrtFree(whole));
    for (int i = 0; i < 4; i++)
        OK(aclrtMallocAlign32(&blocks[i], 4 * MIB, ACL_MEM_MALLOC_HUGE_ONLY));
    static const int order[4] = {2, 0, 3, 1};
    for (int i = 0; i < 4; i++) {
        CHECK(blocks[i] == plus(first, (uint64_t)i * 4 * MIB));
        OK(aclrtFree(blocks[order[i]]));
    }
    OK(aclrtMallocAlign32(&whole, 16 * MIB, ACL_MEM_MALLOC_HUGE_ONLY));
    CHECK(whole == first);
    OK(aclrtFree(whole));
}

static void test_host_block_by_device_free(void) {
    void *host = NULL;
    start("profile", "card", NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMallocHost(&host, 4096));
    OK(aclrtFree(host));
    CHECK_EQ(aclrtFreeHost(host), ACL_ERROR_RT_PARAM_INVALID);
}

int main(void) {
    test_freed_blocks_answer();
    test_whole_pages();
    test_devices_are_apart();
    test_free_memory();
    test_small_blocks();
    test_kept_memory_is_no_loss();
    test_pieces_join();
    test_host_block_by_device_free();
    return check_done();
}
