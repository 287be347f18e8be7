/* The aclrtMalloc family: refusals, order of checks, out pointers, attribute lists. Page classes are in test_pages.c.
 */
#include "check.h"

#define UNTOUCHED ((void *)0x5a5a5a5a5a5a5a5a)

/* The five entries under one signature. */
static int for_scheduler(void **out, size_t size, aclrtMemMallocPolicy policy) {
    return aclrtMallocForTaskScheduler(out, size, policy, NULL);
}

static int with_cfg(void **out, size_t size, aclrtMemMallocPolicy policy) {
    return aclrtMallocWithCfg(out, size, policy, NULL);
}

typedef int malloc_fn(void **out, size_t size, aclrtMemMallocPolicy policy);

static malloc_fn *const entries[] = {aclrtMalloc, aclrtMallocAlign32, aclrtMallocCached, with_cfg, for_scheduler};

#define EACH_ENTRY(entry)                                                                                              \
    for (int each = 0; each < 5; each++)                                                                               \
        for (malloc_fn *entry = entries[each]; entry; entry = NULL)

static void test_entry_refusals(void) {
    void *block = UNTOUCHED;
    start(NULL);
    for (int with_device = 0; with_device < 2; with_device++) {
        EACH_ENTRY(entry) {
            CHECK_EQ(entry(NULL, 1024, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM);
            CHECK_EQ(entry(&block, 0, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM);
            CHECK_EQ(entry(&block, SIZE_MAX, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM);
            CHECK(block == UNTOUCHED);
        }
        OK(aclrtSetDevice(0));
    }
}

static void test_no_context(void) {
    void *block = UNTOUCHED;
    start(NULL);
    EACH_ENTRY(entry) {
        CHECK_EQ(entry(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_CONTEXT_NULL);
        CHECK_EQ(entry(&block, 64, ACL_MEM_MALLOC_HUGE1G_ONLY), ACL_ERROR_RT_CONTEXT_NULL);
        CHECK(block == UNTOUCHED);
    }
}

static void test_wrapping_sizes(void) {
    static const struct {
        size_t size;
        bool padded; /* refused by the padded entries */
        bool plain;  /* refused by the others */
    } rows[] = {
        {SIZE_MAX, true, true},          {SIZE_MAX - 31, true, true},   {SIZE_MAX - 32, true, false},
        {SIZE_MAX - 63, true, false},    {SIZE_MAX - 64, false, false}, {SIZE_MAX - 99, false, false},
        {(size_t)1 << 45, false, false},
    };
    start(NULL);
    OK(aclrtSetDevice(0));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int each = 0; each < 4; each++) {
            void *block = UNTOUCHED;
            bool refused = each % 2 == 0 ? rows[i].padded : rows[i].plain;
            CHECK_EQ(entries[each](&block, rows[i].size, ACL_MEM_MALLOC_HUGE_FIRST),
                     refused ? ACL_ERROR_INVALID_PARAM : ACL_ERROR_RT_MEMORY_ALLOCATION);
            CHECK(block == (refused ? UNTOUCHED : NULL));
        }
    }
}

static void test_out_of_memory(void) {
    void *all = NULL;
    void *block = UNTOUCHED;
    start("pages_4k", "1M", "pages_2m", "8M", "pages_1g", "1", NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMallocAlign32(&all, 8 * MIB, ACL_MEM_MALLOC_HUGE_ONLY));
    CHECK_EQ(aclrtMalloc(&block, 1, ACL_MEM_MALLOC_HUGE_ONLY), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK(block == NULL);
    block = UNTOUCHED;
    CHECK_EQ(aclrtMalloc(&block, 2 * MIB, ACL_MEM_MALLOC_NORMAL_ONLY), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK(block == NULL);
    block = UNTOUCHED;
    CHECK_EQ(aclrtMalloc(&block, GIB + 1, ACL_MEM_MALLOC_HUGE1G_ONLY), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK(block == NULL);
    OK(aclrtFree(all));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

static void test_largest_block(void) {
    void *block = NULL;
    start("soc_name", "Ascend950PR_9599", "pages_2m", "200G", NULL);
    OK(aclrtSetDevice(0));
    CHECK_EQ(aclrtMallocAlign32(&block, 128 * GIB + 1, ACL_MEM_MALLOC_HUGE_ONLY), ACL_ERROR_RT_MEMORY_ALLOCATION);
    OK(aclrtMallocAlign32(&block, 128 * GIB, ACL_MEM_MALLOC_HUGE_ONLY));
    OK(aclrtMemset(plus(block, 128 * GIB - 1), 1, 3, 1));
    OK(aclrtFree(block));
}

static int malloc_with(size_t count, aclrtMallocAttribute *attrs, void **out) {
    aclrtMallocConfig config = {.attrs = attrs, .numAttrs = count};
    return aclrtMallocWithCfg(out, 100, ACL_MEM_MALLOC_HUGE_FIRST, &config);
}

static void test_attributes(void) {
    void *block = UNTOUCHED;
    aclrtMallocAttribute attrs[3] = {{.attr = ACL_RT_MEM_ATTR_RSV}};
    start(NULL);
    CHECK_EQ(malloc_with(1, NULL, &block), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(malloc_with(1, attrs, &block), ACL_ERROR_RT_CONTEXT_NULL);
    OK(aclrtSetDevice(1));
    CHECK_EQ(malloc_with(0, NULL, &block), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(malloc_with(0, attrs, &block), ACL_ERROR_RT_PARAM_INVALID);
    attrs[0] = (aclrtMallocAttribute){.attr = ACL_RT_MEM_ATTR_VA_FLAG};
    CHECK_EQ(malloc_with(1, attrs, &block), ACL_ERROR_RT_PARAM_INVALID);
    attrs[0] = (aclrtMallocAttribute){.attr = (aclrtMallocAttrType)4};
    CHECK_EQ(malloc_with(1, attrs, &block), ACL_ERROR_RT_PARAM_INVALID);
    attrs[0] = (aclrtMallocAttribute){.attr = ACL_RT_MEM_ATTR_DEVICE_ID, .value.deviceId = 0};
    CHECK_EQ(malloc_with(1, attrs, &block), ACL_ERROR_RT_PARAM_INVALID);
    CHECK(block == UNTOUCHED);
    attrs[1] = (aclrtMallocAttribute){.attr = ACL_RT_MEM_ATTR_MODULE_ID, .value.moduleId = 7};
    attrs[2] = (aclrtMallocAttribute){.attr = ACL_RT_MEM_ATTR_DEVICE_ID, .value.deviceId = 1};
    OK(malloc_with(3, attrs, &block));
    OK(aclrtFree(block));
}

/* Blocks never overlap, whatever is asked; small ones are a page or more apart. */
static void test_blocks_are_apart(void) {
    enum { MANY = 500 };
    static void *blocks[MANY];
    start(NULL);
    OK(aclrtSetDevice(0));
    for (int i = 0; i < MANY; i++)
        OK(aclrtMalloc(&blocks[i], (size_t)(i * 37 % 20000 + 1), ACL_MEM_MALLOC_HUGE_FIRST));
    for (int i = 0; i < MANY; i++) {
        for (int j = 0; j < i; j++) {
            uint64_t low = (uintptr_t)blocks[i] < (uintptr_t)blocks[j] ? (uintptr_t)blocks[i] : (uintptr_t)blocks[j];
            uint64_t high = (uintptr_t)blocks[i] ^ (uintptr_t)blocks[j] ^ low;
            uint64_t size = (uint64_t)((low == (uintptr_t)blocks[i] ? i : j) * 37 % 20000 + 1);
            if (high - low < 4096 || high - low < size)
                CHECK_EQ(high - low, size);
        }
    }
    for (int i = 0; i < MANY; i++)
        OK(aclrtFree(blocks[i]));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

int main(void) {
    test_entry_refusals();
    test_no_context();
    test_wrapping_sizes();
    test_out_of_memory();
    test_largest_block();
    test_attributes();
    test_blocks_are_apart();
    return check_done();
}
