/* What the product name decides: padding, 1 GiB pages, memory type, capacity. */
#include "check.h"

static const struct product_row {
    const char *soc_name;
    bool padded;       /* aclrtMalloc(1 MiB) takes a 2 MiB page */
    bool giant;        /* 1 GiB pages exist */
    bool hbm;          /* else DDR */
    uint64_t capacity; /* bytes */
} rows[] = {
    {"Ascend910B1", true, true, true, 64 * GIB},        {"Ascend910B2", true, true, true, 64 * GIB},
    {"Ascend910B4", true, true, true, 32 * GIB},        {"Ascend910_9391", true, true, true, 64 * GIB},
    {"Ascend910_9363", true, true, true, 32 * GIB},     {"Ascend910A", true, false, true, 32 * GIB},
    {"Ascend950PR_9599", false, true, true, 128 * GIB}, {"Ascend310P3", true, false, false, 24000000000},
    {"Ascend310B1", true, false, false, 32 * GIB},
};

static uint64_t total(aclrtMemAttr attr) {
    size_t free_now = 0, total_now = 0;
    OK(aclrtGetMemInfo(attr, &free_now, &total_now));
    return total_now;
}

static void check_memory_type(const struct product_row *row) {
    uint64_t all = total(ACL_MEM_NORMAL) + total(ACL_MEM_HUGE);
    CHECK_EQ(total(ACL_HBM_MEM), all);
    CHECK_EQ(total(ACL_DDR_MEM), row->hbm ? 0 : all);
    CHECK_EQ(total(ACL_DDR_MEM_P2P_HUGE), row->hbm ? 0 : total(ACL_MEM_HUGE));
    if (row->giant)
        all += total(ACL_HBM_MEM_HUGE1G);
    CHECK(all <= row->capacity && row->capacity - all < 4 * KIB);
}

static void check_giant_pages(const struct product_row *row) {
    void *block = (void *)1;
    size_t free_now = 1, total_now = 2;
    int wanted = row->giant ? ACL_SUCCESS : ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
    CHECK_EQ(aclrtMalloc(&block, 1, ACL_MEM_MALLOC_HUGE1G_ONLY), wanted);
    CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM_HUGE1G, &free_now, &total_now), wanted);
    CHECK_EQ(aclrtGetMemInfo(ACL_MEM_P2P_HUGE1G, &free_now, &total_now), wanted);
    if (row->giant)
        OK(aclrtFree(block));
    else
        CHECK(block == (void *)1 && free_now == 1 && total_now == 2);
}

static void check_padding(const struct product_row *row) {
    void *block = NULL;
    aclrtPtrAttributes attributes;
    OK(aclrtMalloc(&block, MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtPointerGetAttributes(block, &attributes));
    CHECK_EQ(attributes.pageSize, row->padded ? 2 * MIB : 4 * KIB);
    OK(aclrtFree(block));
}

static void test_rows(void) {
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int before = check_failures;
        start("soc_name", rows[i].soc_name, NULL);
        OK(aclrtSetDevice(0));
        check_memory_type(&rows[i]);
        check_giant_pages(&rows[i]);
        check_padding(&rows[i]);
        if (check_failures > before)
            printf("    product %s\n", rows[i].soc_name);
    }
}

/* No 1 GiB page is one thing, no such feature another. */
static void test_giant_page_feature(void) {
    void *block = (void *)1;
    size_t free_now = 1, total_now = 2;
    start("pages_1g", "none", NULL);
    OK(aclrtSetDevice(0));
    CHECK_EQ(aclrtMalloc(&block, 1, ACL_MEM_MALLOC_HUGE1G_ONLY), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK(block == (void *)1);
    OK(aclrtGetMemInfo(ACL_HBM_MEM_HUGE1G, &free_now, &total_now));
    CHECK(free_now == 0 && total_now == 0);
    start("pages_1g", "0", NULL);
    OK(aclrtSetDevice(0));
    CHECK_EQ(aclrtMalloc(&block, 1, ACL_MEM_MALLOC_HUGE1G_ONLY), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK(block == NULL);
}

int main(void) {
    test_rows();
    test_giant_page_feature();
    return check_done();
}
