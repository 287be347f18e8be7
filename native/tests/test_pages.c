/* Rounding, page class, accounting and alignment of device blocks, by policy and entry (strict profile). */
#include "check.h"

enum entry { PLAIN, ALIGN32, CACHED, CONFIG };

static int call(enum entry entry, void **out, size_t size, uint32_t policy) {
    aclrtMemMallocPolicy value = (aclrtMemMallocPolicy)policy;
    switch (entry) {
    case PLAIN:
        return aclrtMalloc(out, size, value);
    case ALIGN32:
        return aclrtMallocAlign32(out, size, value);
    case CACHED:
        return aclrtMallocCached(out, size, value);
    default:
        return aclrtMallocWithCfg(out, size, value, NULL);
    }
}

/* Pages a block takes: of 4 KiB, of 2 MiB, of 1 GiB. */
static const struct row {
    enum entry entry;
    uint32_t policy;
    size_t size;
    uint64_t pages_4k;
    uint64_t pages_2m;
    uint64_t pages_1g;
} rows[] = {
    {PLAIN, ACL_MEM_MALLOC_HUGE_FIRST, 1, 1, 0, 0},
    {PLAIN, ACL_MEM_MALLOC_HUGE_FIRST, 4064, 1, 0, 0},
    {PLAIN, ACL_MEM_MALLOC_HUGE_FIRST, 4065, 2, 0, 0},
    {PLAIN, ACL_MEM_MALLOC_HUGE_FIRST, MIB - 32, 256, 0, 0},
    {PLAIN, ACL_MEM_MALLOC_HUGE_FIRST, MIB - 31, 0, 1, 0},
    {PLAIN, ACL_MEM_MALLOC_HUGE_FIRST, MIB, 0, 1, 0},
    {PLAIN, ACL_MEM_MALLOC_HUGE_FIRST, 2 * MIB - 32, 0, 1, 0},
    {PLAIN, ACL_MEM_MALLOC_HUGE_FIRST, 2 * MIB, 0, 2, 0},
    {PLAIN, ACL_MEM_MALLOC_HUGE_ONLY, 1024, 0, 1, 0},
    {PLAIN, ACL_MEM_MALLOC_HUGE_ONLY, 3 * MIB, 0, 2, 0},
    {PLAIN, ACL_MEM_MALLOC_NORMAL_ONLY, MIB, 257, 0, 0},
    {PLAIN, ACL_MEM_MALLOC_NORMAL_ONLY, 3 * MIB, 769, 0, 0},
    {PLAIN, ACL_MEM_MALLOC_HUGE_FIRST_P2P, 3 * MIB, 769, 0, 0},
    {PLAIN, ACL_MEM_MALLOC_HUGE_ONLY_P2P, 1024, 1, 0, 0},
    {PLAIN, ACL_MEM_MALLOC_NORMAL_ONLY_P2P, 4096, 2, 0, 0},
    {PLAIN, ACL_MEM_MALLOC_HUGE1G_ONLY, 1024, 0, 0, 1},
    {PLAIN, ACL_MEM_MALLOC_HUGE1G_ONLY, GIB, 0, 0, 1},
    {PLAIN, ACL_MEM_MALLOC_HUGE1G_ONLY, GIB + 1, 0, 0, 2},
    {PLAIN, ACL_MEM_MALLOC_HUGE1G_ONLY_P2P, 1, 0, 0, 1},
    {PLAIN, 77, 1024, 1, 0, 0},
    {PLAIN, 77, MIB, 0, 1, 0},
    {PLAIN, UINT32_MAX, MIB, 0, 1, 0},
    {PLAIN, ACL_MEM_TYPE_LOW_BAND_WIDTH, 1024, 1, 0, 0},
    {PLAIN, ACL_MEM_TYPE_HIGH_BAND_WIDTH | ACL_MEM_MALLOC_HUGE_ONLY, 1024, 0, 1, 0},
    {PLAIN, ACL_MEM_ACCESS_USER_SPACE_READONLY | ACL_MEM_MALLOC_NORMAL_ONLY, 2 * MIB, 513, 0, 0},
    {PLAIN, 0x101100 | ACL_MEM_MALLOC_HUGE1G_ONLY, GIB, 0, 0, 1},
    {ALIGN32, ACL_MEM_MALLOC_HUGE_FIRST, 4096, 1, 0, 0},
    {ALIGN32, ACL_MEM_MALLOC_HUGE_FIRST, MIB, 256, 0, 0},
    {ALIGN32, ACL_MEM_MALLOC_HUGE_FIRST, MIB + 1, 0, 1, 0},
    {ALIGN32, ACL_MEM_MALLOC_HUGE_FIRST, 2 * MIB, 0, 1, 0},
    {ALIGN32, ACL_MEM_MALLOC_HUGE_FIRST_P2P, 2 * MIB, 512, 0, 0},
    {ALIGN32, ACL_MEM_MALLOC_HUGE1G_ONLY, 2 * GIB, 0, 0, 2},
    {CACHED, ACL_MEM_MALLOC_HUGE_FIRST, MIB, 0, 1, 0},
    {CACHED, ACL_MEM_MALLOC_HUGE_ONLY, 64, 0, 1, 0},
    {CACHED, ACL_MEM_MALLOC_NORMAL_ONLY, 4096, 2, 0, 0},
    {CACHED, ACL_MEM_MALLOC_HUGE_ONLY_P2P, 64, 1, 0, 0},
    {CACHED, ACL_MEM_MALLOC_HUGE_FIRST_P2P, 3 * MIB, 0, 2, 0},
    {CACHED, ACL_MEM_MALLOC_HUGE1G_ONLY, GIB, 0, 0, 1},
    {CACHED, ACL_MEM_MALLOC_HUGE1G_ONLY_P2P, 64, 1, 0, 0},
    {CONFIG, ACL_MEM_MALLOC_HUGE_FIRST, MIB, 256, 0, 0},
    {CONFIG, ACL_MEM_MALLOC_HUGE_FIRST_P2P, 4 * MIB, 0, 2, 0},
    {CONFIG, ACL_MEM_MALLOC_HUGE_FIRST_P2P, MIB, 256, 0, 0},
    {CONFIG, ACL_MEM_MALLOC_HUGE_ONLY_P2P, 64, 0, 1, 0},
    {CONFIG, ACL_MEM_MALLOC_NORMAL_ONLY_P2P, 4 * MIB, 1024, 0, 0},
    {CONFIG, ACL_MEM_MALLOC_HUGE1G_ONLY_P2P, GIB, 0, 0, 1},
    {CONFIG, 77, 4 * MIB, 0, 2, 0},
};

static void check_row(const struct row *row) {
    void *block = NULL;
    aclrtPtrAttributes attributes;
    uint64_t normal = free_bytes(ACL_HBM_MEM_NORMAL);
    uint64_t huge = free_bytes(ACL_HBM_MEM_HUGE);
    uint64_t giant = free_bytes(ACL_HBM_MEM_HUGE1G);
    bool good = CHECK_EQ(call(row->entry, &block, row->size, row->policy), 0);
    good = CHECK_EQ(normal - free_bytes(ACL_HBM_MEM_NORMAL), row->pages_4k * 4 * KIB) && good;
    good = CHECK_EQ(huge - free_bytes(ACL_HBM_MEM_HUGE), row->pages_2m * 2 * MIB) && good;
    good = CHECK_EQ(giant - free_bytes(ACL_HBM_MEM_HUGE1G), row->pages_1g * GIB) && good;
    OK(aclrtPointerGetAttributes(block, &attributes));
    good = CHECK_EQ(attributes.pageSize, row->pages_4k ? 4 * KIB : 2 * MIB) && good;
    uint64_t align = row->pages_4k ? 4 * KIB : row->pages_2m ? 2 * MIB : GIB;
    good = CHECK_EQ((uintptr_t)block % align, 0) && good;
    OK(aclrtMemset(block, row->size, 1, 1));
    OK(aclrtMemset(plus(block, row->size - 1), 1, 1, 1));
    good = CHECK_EQ(aclrtMemset(plus(block, row->size), 1, 1, 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR) && good;
    OK(aclrtFree(block));
    good = CHECK_EQ(free_bytes(ACL_HBM_MEM_NORMAL), normal) && good;
    good = CHECK_EQ(free_bytes(ACL_HBM_MEM_HUGE), huge) && good;
    good = CHECK_EQ(free_bytes(ACL_HBM_MEM_HUGE1G), giant) && good;
    if (!good)
        printf("    row %d: entry %d, policy 0x%x, size %zu\n", (int)(row - rows), (int)row->entry, row->policy,
               row->size);
}

static void test_rows(void) {
    start(NULL);
    OK(aclrtSetDevice(0));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_row(&rows[i]);
}

static void test_fall_back(void) {
    void *huge = NULL, *block = NULL;
    aclrtPtrAttributes attributes;
    start("pages_4k", "8M", "pages_2m", "4M", NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMallocAlign32(&huge, 4 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_EQ(aclrtMallocAlign32(&block, 2 * MIB, ACL_MEM_MALLOC_HUGE_ONLY), ACL_ERROR_RT_MEMORY_ALLOCATION);
    OK(aclrtMallocAlign32(&block, 6 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtPointerGetAttributes(block, &attributes));
    CHECK_EQ(attributes.pageSize, 4 * KIB);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 2 * MIB);
    CHECK_EQ(aclrtMallocAlign32(&block, 3 * MIB, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_MEMORY_ALLOCATION);
    OK(aclrtMallocAlign32(&block, 2 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 0);
    OK(aclrtFree(huge));
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 4 * MIB);
}

/* Every page of a pool can be used, also when the free ones are scattered. */
static void test_scattered_pages(void) {
    enum { PAGES = 256 };
    void *blocks[PAGES], *rest = NULL;
    start("pages_4k", "1M", "pages_2m", "2M", NULL);
    OK(aclrtSetDevice(0));
    for (int i = 0; i < PAGES; i++)
        OK(aclrtMallocAlign32(&blocks[i], 4096, ACL_MEM_MALLOC_NORMAL_ONLY));
    for (int i = 0; i < PAGES; i += 2)
        OK(aclrtFree(blocks[i]));
    OK(aclrtMallocAlign32(&rest, PAGES / 2 * 4096, ACL_MEM_MALLOC_NORMAL_ONLY));
    CHECK_EQ(free_bytes(ACL_HBM_MEM_NORMAL), 0);
    OK(aclrtMemset(rest, PAGES / 2 * 4096, 9, PAGES / 2 * 4096));
    for (int i = 1; i < PAGES; i += 2)
        OK(aclrtFree(blocks[i]));
    OK(aclrtFree(rest));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

int main(void) {
    test_rows();
    test_fall_back();
    test_scattered_pages();
    return check_done();
}
