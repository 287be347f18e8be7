/* hostacl_fail, hostacl_calls, hostacl_configure, hostacl_reset, hostacl_info, hostacl_version. */
#include "check.h"

static void test_calls(void) {
    void *block = NULL;
    start(NULL);
    CHECK_EQ(hostacl_calls("aclrtMalloc"), 0);
    aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(NULL, 64, ACL_MEM_MALLOC_HUGE_FIRST);
    CHECK_EQ(hostacl_calls("aclrtMalloc"), 2);
    CHECK_EQ(hostacl_calls("aclrtFree"), 0);
    CHECK_EQ(hostacl_calls("aclrtNothing"), 0);
    CHECK_EQ(hostacl_calls(NULL), 0);
    OK(hostacl_reset());
    CHECK_EQ(hostacl_calls("aclrtMalloc"), 0);
}

static void test_nth_failure(void) {
    void *block = NULL;
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(hostacl_fail("aclrtMalloc", 3, ACL_ERROR_RT_MEMORY_ALLOCATION));
    OK(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtFree(block));
    OK(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtFree(block));
    block = (void *)7;
    uint64_t before = free_bytes(ACL_HBM_MEM);
    CHECK_EQ(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK(block == (void *)7);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), before);
    CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK(strstr(aclGetRecentErrMsg(), "failure injected into call 3"));
    OK(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtFree(block));
}

/* An injected failure comes before any effect, also of calls that undo something. */
static void test_no_effect(void) {
    void *block = NULL;
    uint64_t left = 77;
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(hostacl_fail("aclrtFree", 1, 507899));
    CHECK_EQ(aclrtFree(block), 507899);
    OK(aclrtMemset(block, 64, 1, 64));
    OK(hostacl_fail("aclrtResetDevice", 1, 507000));
    CHECK_EQ(aclrtResetDevice(0), 507000);
    OK(aclrtFree(block));
    OK(hostacl_fail("aclInit", 1, 100000));
    CHECK_EQ(aclInit(NULL), 100000);
    CHECK_EQ(aclFinalizeReference(&left), ACL_ERROR_REPEAT_FINALIZE);
    OK(hostacl_fail("aclrtGetSocName", 1, 507000));
    CHECK(!aclrtGetSocName());
    CHECK(aclrtGetSocName());
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

static void test_clearing(void) {
    int32_t device;
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(hostacl_fail("aclrtGetDevice", 1, 107000));
    OK(hostacl_fail("aclrtGetDevice", 0, 0));
    OK(aclrtGetDevice(&device));
    OK(hostacl_fail("aclrtGetDevice", 1, 107000));
    OK(hostacl_fail("aclrtSetDevice", 1, 107000));
    OK(hostacl_fail(NULL, 0, 0));
    OK(aclrtGetDevice(&device));
    OK(aclrtSetDevice(0));
    OK(hostacl_fail("aclrtGetDevice", 1, 107000));
    OK(hostacl_reset());
    CHECK_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(hostacl_fail("aclrtNothing", 1, 107000), ACL_ERROR_INVALID_PARAM);
    CHECK(strstr(hostacl_error(), "aclrtNothing"));
    CHECK_EQ(hostacl_fail(NULL, 1, 107000), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(hostacl_fail("aclrtFree", 1, 0), ACL_ERROR_INVALID_PARAM);
}

static void test_bad_options(void) {
    static const char *const bad[][2] = {
        {"device", "1"},        {"", ""},
        {"devices", "0"},       {"devices", "65"},
        {"devices", "two"},     {"devices", "2x"},
        {"devices", ""},        {"soc_name", "TPU"},
        {"soc_name", ""},       {"capacity", "1M"},
        {"capacity", "5T"},     {"capacity", "64 G"},
        {"pages_4k", "4095"},   {"pages_4k", "-4K"},
        {"pages_2m", "3M"},     {"pages_2m", "1.5G"},
        {"pages_1g", "many"},   {"pages_1g", "4G"},
        {"profile", "lenient"}, {"profile", "Strict"},
    };
    start(NULL);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (!CHECK_EQ(hostacl_configure(bad[i][0], bad[i][1]), ACL_ERROR_INVALID_PARAM))
            printf("    %s = %s\n", bad[i][0], bad[i][1]);
        CHECK(strlen(hostacl_error()) > 10);
    }
    CHECK_EQ(hostacl_configure(NULL, "1"), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(hostacl_configure("devices", NULL), ACL_ERROR_INVALID_PARAM);
    OK(aclrtSetDevice(1));
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 60 * GIB);
}

/* Pools that are not given follow from the capacity; together they must fit. */
static void test_pools(void) {
    start("capacity", "8M", NULL);
    OK(aclrtSetDevice(0));
    CHECK_EQ(free_bytes(ACL_HBM_MEM_NORMAL), 2 * MIB); /* an eighth, and what makes no page of 2 MiB */
    CHECK_EQ(free_bytes(ACL_HBM_MEM_HUGE), 6 * MIB);
    CHECK_EQ(free_bytes(ACL_HBM_MEM_HUGE1G), 0);
    start("capacity", "10485761", NULL); /* all of it can be used, in whole pages */
    OK(aclrtSetDevice(0));
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 10 * MIB);
    start("capacity", "9M", "pages_4k", "64K", NULL);
    OK(aclrtSetDevice(0));
    CHECK_EQ(free_bytes(ACL_HBM_MEM_NORMAL), 64 * KIB);
    CHECK_EQ(free_bytes(ACL_HBM_MEM_HUGE), 8 * MIB);
    start("capacity", "0x100000000", "pages_4k", "1G", NULL);
    CHECK_EQ(hostacl_configure("pages_1g", "4"), ACL_ERROR_INVALID_PARAM);
    CHECK(strstr(hostacl_error(), "the capacity is 4294967296 bytes"));
    OK(aclrtSetDevice(0));
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 4 * GIB);
    start("pages_4k", "0", "pages_2m", "0", NULL);
    CHECK_EQ(hostacl_configure("pages_1g", "0"), ACL_ERROR_INVALID_PARAM);
    start("soc_name", "Ascend310P3", NULL);
    CHECK_EQ(hostacl_configure("pages_1g", "1"), ACL_ERROR_INVALID_PARAM);
}

static void test_options_need_an_idle_runtime(void) {
    void *host = NULL;
    aclrtContext context = NULL;
    start(NULL);
    OK(aclrtSetDevice(0));
    CHECK_EQ(hostacl_configure("devices", "4"), ACL_ERROR_RELATIVE_RESOURCE_NOT_CLEARED);
    OK(aclrtMallocHost(&host, 64));
    OK(aclrtResetDevice(0));
    CHECK_EQ(hostacl_configure("devices", "4"), ACL_ERROR_RELATIVE_RESOURCE_NOT_CLEARED);
    OK(aclrtFreeHost(host));
    OK(hostacl_configure("devices", "4"));
    OK(aclrtCreateContext(&context, 3));
    CHECK_EQ(hostacl_configure("profile", "card"), ACL_ERROR_RELATIVE_RESOURCE_NOT_CLEARED);
    OK(aclrtDestroyContext(context));
    OK(hostacl_configure("profile", "card"));
}

static void test_reset(void) {
    void *block = NULL, *host = NULL;
    aclrtContext context = NULL;
    uint32_t count = 0;
    start("devices", "5", NULL);
    OK(aclInit(NULL));
    OK(aclrtSetDevice(4));
    OK(aclrtCreateContext(&context, 1));
    OK(aclrtMalloc(&block, MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMallocHost(&host, MIB));
    OK(hostacl_reset());
    check_nothing_alive();
    OK(aclrtGetDeviceCount(&count));
    CHECK_EQ(count, 2);
    CHECK_EQ(aclrtFree(block), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtFreeHost(host), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtDestroyContext(context), ACL_ERROR_RT_CONTEXT_NULL);
    OK(aclInit(NULL));
    OK(aclFinalize());
}

static void test_info(void) {
    char text[2048], cut[8];
    start("soc_name", "Ascend910B3", NULL);
    CHECK(!strcmp(hostacl_version(), "hostacl " HOSTACL_VERSION));
    int len = hostacl_info(text, sizeof(text));
    CHECK_EQ(len, strlen(text));
    CHECK(strstr(text, "version: hostacl ") && strstr(text, "profile: strict\n") && strstr(text, "devices: 2\n"));
    CHECK(strstr(text, "soc_name: Ascend910B3\n") && strstr(text, "addresses: 0x"));
    CHECK_EQ(hostacl_info(cut, sizeof(cut)), len);
    CHECK(!strncmp(cut, text, 7) && cut[7] == 0);
    CHECK_EQ(hostacl_info(NULL, 0), len);
}

int main(void) {
    test_calls();
    test_nth_failure();
    test_no_effect();
    test_clearing();
    test_bad_options();
    test_pools();
    test_options_need_an_idle_runtime();
    test_reset();
    test_info();
    return check_done();
}
