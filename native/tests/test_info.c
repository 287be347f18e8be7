/* aclrtGetMemInfo: every attribute, refusals, exactness (strict profile). */
#include "check.h"

enum { NONE = 0, SMALL = 1, HUGE = 2, GIANT = 4 };

/* Which pages each attribute counts on a product with HBM. */
static const int counted[18] = {
    NONE,  SMALL | HUGE, NONE,  NONE,  HUGE, SMALL, NONE,  NONE, HUGE,
    SMALL, GIANT,        GIANT, SMALL, HUGE, GIANT, SMALL, HUGE, GIANT,
};

static void check_attributes(const uint64_t free_pages[3], const uint64_t total_pages[3]) {
    static const uint64_t page_bytes[3] = {4 * KIB, 2 * MIB, GIB};
    for (int attr = 0; attr < 18; attr++) {
        uint64_t free_wanted = 0, total_wanted = 0;
        size_t free_got = 1, total_got = 1;
        for (int cls = 0; cls < 3; cls++) {
            if (counted[attr] & 1 << cls) {
                free_wanted += free_pages[cls] * page_bytes[cls];
                total_wanted += total_pages[cls] * page_bytes[cls];
            }
        }
        OK(aclrtGetMemInfo((aclrtMemAttr)attr, &free_got, &total_got));
        if (!CHECK_EQ(free_got, free_wanted) || !CHECK_EQ(total_got, total_wanted))
            printf("    attribute %d\n", attr);
    }
}

static void test_each_attribute(void) {
    const uint64_t total[3] = {1024, 64, 3};
    const uint64_t less[3] = {1023, 62, 2};
    void *small = NULL, *huge = NULL, *giant = NULL;
    start("pages_4k", "4M", "pages_2m", "128M", "pages_1g", "3", NULL);
    OK(aclrtSetDevice(1));
    check_attributes(total, total);
    OK(aclrtMalloc(&small, 1, ACL_MEM_MALLOC_NORMAL_ONLY));
    OK(aclrtMalloc(&huge, 2 * MIB, ACL_MEM_MALLOC_HUGE_ONLY));
    OK(aclrtMalloc(&giant, 1, ACL_MEM_MALLOC_HUGE1G_ONLY));
    check_attributes(less, total);
    OK(aclrtSetDevice(0));
    check_attributes(total, total);
    OK(aclrtFree(small));
    OK(aclrtFree(huge));
    OK(aclrtFree(giant));
    OK(aclrtSetDevice(1));
    check_attributes(total, total);
}

static void test_defaults(void) {
    size_t free_now, total;
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtGetMemInfo(ACL_HBM_MEM_NORMAL, &free_now, &total));
    CHECK_EQ(total, 8 * GIB);
    OK(aclrtGetMemInfo(ACL_HBM_MEM_HUGE, &free_now, &total));
    CHECK_EQ(total, 52 * GIB);
    OK(aclrtGetMemInfo(ACL_HBM_MEM_HUGE1G, &free_now, &total));
    CHECK_EQ(total, 4 * GIB);
    OK(aclrtGetMemInfo(ACL_HBM_MEM, &free_now, &total));
    CHECK_EQ(total, 60 * GIB);
    CHECK_EQ(free_now, 60 * GIB);
}

static void test_refusals(void) {
    size_t free_now = 5, total = 6;
    start(NULL);
    CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free_now, &total), ACL_ERROR_RT_CONTEXT_NULL);
    OK(aclrtSetDevice(0));
    CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, NULL, &total), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free_now, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetMemInfo((aclrtMemAttr)18, &free_now, &total), ACL_ERROR_RT_INVALID_MEMORY_TYPE);
    CHECK_EQ(aclrtGetMemInfo((aclrtMemAttr)-1, &free_now, &total), ACL_ERROR_RT_INVALID_MEMORY_TYPE);
    CHECK_EQ(free_now, 5);
    CHECK_EQ(total, 6);
}

int main(void) {
    test_each_attribute();
    test_defaults();
    test_refusals();
    return check_done();
}
