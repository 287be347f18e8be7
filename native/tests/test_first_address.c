/* Device addresses chosen by a test, and the range that is taken otherwise. */
#include "check.h"

/* The value of a line of hostacl_info. */
static bool info_says(const char *line) {
    char text[2048];
    hostacl_info(text, sizeof(text));
    if (!strstr(text, line))
        printf("    \"%s\" is not in:\n%s", line, text);
    return strstr(text, line);
}

static void use(uint64_t first, const char *option) {
    uint8_t in[5000], out[5000] = {0};
    void *small = NULL, *huge = NULL;
    memset(in, 7, sizeof(in));
    start("first_address", option, NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMallocAlign32(&small, 5000, ACL_MEM_MALLOC_NORMAL_ONLY));
    CHECK_EQ((uintptr_t)small, first);
    OK(aclrtMallocAlign32(&huge, 3 * MIB, ACL_MEM_MALLOC_HUGE_ONLY));
    CHECK((uintptr_t)huge > first && (uintptr_t)huge % (2 * MIB) == 0);
    OK(aclrtMemcpy(small, 5000, in, 5000, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtMemcpy(plus(huge, 3 * MIB - 5000), 5000, small, 5000, ACL_MEMCPY_DEVICE_TO_DEVICE));
    OK(aclrtMemcpy(out, 5000, plus(huge, 3 * MIB - 5000), 5000, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(!memcmp(in, out, 5000));
    CHECK_EQ(aclrtFree(plus(small, 4096)), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtFree(small));
    CHECK_EQ(aclrtMemset(small, 1, 1, 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtFree(huge));
    CHECK(info_says("not reserved because first_address was given"));
}

static void test_chosen(void) {
    use(0x100000000, "4G");
    use(0x123456000, "0x123456000");
    use(0x8000000000000000, "0x8000000000000000");
    use(0xfffffffff0000000 - 4 * GIB, "0xfffffffef0000000");
    use(0xffff800000001000, "0xffff800000000fff");
}

/* The range ends before 2^64; a block that would pass it is out of memory, and nothing wraps. */
static void test_end_of_range(void) {
    void *block = NULL;
    start("first_address", "0xffffffff80000000", NULL);
    OK(aclrtSetDevice(0));
    CHECK_EQ(aclrtMallocAlign32(&block, 2 * GIB, ACL_MEM_MALLOC_HUGE_ONLY), ACL_ERROR_RT_MEMORY_ALLOCATION);
    OK(aclrtMallocAlign32(&block, GIB, ACL_MEM_MALLOC_HUGE_ONLY));
    CHECK_EQ(aclrtMemset(block, SIZE_MAX, 1, 3 * GIB), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtFree(block));
    CHECK_EQ(free_bytes(ACL_HBM_MEM_HUGE), 52 * GIB);
}

static void test_bad_values(void) {
    static const char *const bad[] = {"",
                                      "x",
                                      "-1",
                                      "0",
                                      "4095",
                                      "0xffffffffffffffff",
                                      "0xfffffffff0000000",
                                      "1Q",
                                      "1GG",
                                      "99999999999999999999",
                                      "20000000T"};
    start(NULL);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK_EQ(hostacl_configure("first_address", bad[i]), ACL_ERROR_INVALID_PARAM);
        CHECK(strstr(hostacl_error(), "first_address") == hostacl_error());
    }
}

static void test_usual_range(void) {
    void *block = NULL;
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    if (info_says("the range of the card\n"))
        CHECK_EQ((uintptr_t)block, (uint64_t)16 << 40);
    else
        CHECK(info_says("reserved, not the range of the card because that is taken"));
    OK(aclrtFree(block));
}

int main(void) {
    test_chosen();
    test_end_of_range();
    test_bad_values();
    test_usual_range();
    start(NULL);
    check_nothing_alive();
    return check_done();
}
