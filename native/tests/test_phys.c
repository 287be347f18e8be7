/* Page pools: takes, gives, scattered pages, touched pages and what goes back to the kernel. */
#include "check.h"
#include "phys.h"

static struct phys phys;

static void test_pools_are_apart(void) {
    struct pages taken[PAGE_CLASSES];
    struct pool_sizes sizes = {{256, 4, 1}};
    CHECK(phys_open(&phys, &sizes, false));
    CHECK_EQ(phys.bytes, 2 * GIB);
    for (enum page_class cls = 0; cls < PAGE_CLASSES; cls++) {
        CHECK(phys_take(&phys, cls, 1, &taken[cls]));
        CHECK_EQ(taken[cls].bytes, page_class_bytes(cls));
        CHECK_EQ(taken[cls].extents[0].phys, phys.pools[cls].base);
        CHECK_EQ(phys.pools[cls].free, phys.pools[cls].total - 1);
    }
    struct pages none;
    CHECK(!phys_take(&phys, PAGE_1G, 1, &none));
    CHECK(!phys_take(&phys, PAGE_2M, 4, &none));
    for (enum page_class cls = 0; cls < PAGE_CLASSES; cls++)
        phys_give(&phys, &taken[cls]);
    CHECK(phys_take(&phys, PAGE_2M, 4, &none));
    phys_give(&phys, &none);
    phys_close(&phys);
}

/* Takes 1, 2, 1, 2 ... pages until the pool is full, frees the single ones, fills the holes with one allocation. */
static void test_scattered(void) {
    enum { PAGES = 300 };
    struct pages singles[PAGES / 3], pairs[PAGES / 3], rest;
    CHECK(phys_open(&phys, &(struct pool_sizes){{PAGES, 0, 0}}, false));
    for (int i = 0; i < PAGES / 3; i++) {
        CHECK(phys_take(&phys, PAGE_4K, 1, &singles[i]));
        CHECK(phys_take(&phys, PAGE_4K, 2, &pairs[i]));
    }
    CHECK(!phys_take(&phys, PAGE_4K, 1, &rest));
    for (int i = 0; i < PAGES / 3; i++)
        phys_give(&phys, &singles[i]);
    CHECK(phys_take(&phys, PAGE_4K, PAGES / 3, &rest));
    CHECK_EQ(rest.count, PAGES / 3);
    for (uint64_t offset = 0; offset < rest.bytes; offset += 1000) {
        const struct extent *extent = pages_extent(&rest, offset);
        CHECK(offset >= extent->at && offset < extent->at + extent->len);
    }
    CHECK_EQ(phys.pools[PAGE_4K].free, 0);
    phys_give(&phys, &rest);
    CHECK_EQ(phys.pools[PAGE_4K].free, PAGES / 3);
    CHECK(phys_take(&phys, PAGE_4K, 1, &singles[0]));
    CHECK_EQ(singles[0].extents[0].phys, 0);
    phys_close(&phys);
}

static void test_touched(void) {
    struct pages pages;
    uint64_t len = 10 * 4096;
    CHECK(phys_open(&phys, &(struct pool_sizes){{0, 8, 0}}, false));
    CHECK(phys_take(&phys, PAGE_2M, 2, &pages));
    CHECK(phys_fresh(&phys, 100, &len));
    CHECK_EQ(len, 10 * 4096);
    CHECK(!phys_collect(&phys, &pages));
    phys_touch(&phys, 3 * 4096 + 5, 4096);
    CHECK(phys_fresh(&phys, 100, &len));
    CHECK_EQ(len, 3 * 4096 - 100);
    len = 10 * 4096;
    CHECK(!phys_fresh(&phys, 4 * 4096 + 1, &len));
    CHECK_EQ(len, 4096 - 1);
    memset(phys.window + 3 * 4096, 1, 8192);
    CHECK_EQ(phys_committed(&phys), 8192);
    CHECK(phys_collect(&phys, &pages));
    CHECK_EQ(pages.extents[0].dirty, 3 * 4096);
    phys_punch(&phys, &pages);
    CHECK_EQ(phys_committed(&phys), 0);
    CHECK(!phys_collect(&phys, &pages));
    phys_give(&phys, &pages);
    phys_close(&phys);
    CHECK_EQ(phys_committed(&phys), 0);
}

int main(void) {
    test_pools_are_apart();
    test_scattered();
    test_touched();
    return check_done();
}
