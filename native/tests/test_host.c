/* Pinned host memory. */
#include "check.h"

#define UNTOUCHED ((void *)0x5a5a5a5a5a5a5a5a)

static void test_use(void) {
    void *host = NULL, *block = NULL;
    char back[100] = {0};
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMallocHost(&host, 100));
    CHECK_EQ((uintptr_t)host % 64, 0);
    memset(host, 42, 100);
    OK(aclrtMalloc(&block, 100, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemcpy(block, 100, host, 100, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtMemcpy(back, 100, block, 100, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(!memcmp(back, host, 100));
    OK(aclrtFree(block));
    OK(aclrtResetDevice(0));
    OK(aclrtFreeHost(host));
    check_nothing_alive();
}

static void test_refusals(void) {
    void *host = UNTOUCHED, *block = NULL;
    char heap[64];
    start(NULL);
    CHECK_EQ(aclrtMallocHost(NULL, 64), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMallocHost(&host, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMallocHost(&host, 64), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK(host == UNTOUCHED);
    OK(aclrtSetDevice(0));
    CHECK_EQ(aclrtMallocHost(&host, SIZE_MAX), ACL_ERROR_RT_PARAM_INVALID);
    CHECK(host == NULL);
    host = UNTOUCHED;
    CHECK_EQ(aclrtMallocHost(&host, (size_t)1 << 45), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK(host == NULL);
    OK(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMallocHost(&host, 100));
    CHECK_EQ(aclrtFreeHost(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtFreeHost(heap), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtFreeHost(block), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtFreeHost(plus(host, 32)), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtFreeHost(host));
    CHECK_EQ(aclrtFreeHost(host), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtFree(block));
}

static void test_attributes(void) {
    void *host = UNTOUCHED;
    aclrtMallocAttribute attrs[2] = {{.attr = ACL_RT_MEM_ATTR_VA_FLAG, .value.vaFlag = 1},
                                     {.attr = ACL_RT_MEM_ATTR_MODULE_ID, .value.moduleId = 3}};
    aclrtMallocConfig config = {.attrs = NULL, .numAttrs = 2};
    start(NULL);
    OK(aclrtSetDevice(0));
    CHECK_EQ(aclrtMallocHostWithCfg(NULL, 100, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMallocHostWithCfg(&host, 0, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMallocHostWithCfg(&host, 100, &config), ACL_ERROR_RT_PARAM_INVALID);
    config.attrs = attrs;
    attrs[1] = (aclrtMallocAttribute){.attr = ACL_RT_MEM_ATTR_DEVICE_ID, .value.deviceId = 1};
    CHECK_EQ(aclrtMallocHostWithCfg(&host, 100, &config), ACL_ERROR_RT_PARAM_INVALID);
    CHECK(host == UNTOUCHED);
    attrs[1].value.deviceId = 0;
    OK(aclrtMallocHostWithCfg(&host, 100, &config));
    OK(aclrtFreeHost(host));
    OK(aclrtMallocHostWithCfg(&host, 100, NULL));
    OK(aclrtFreeHost(host));
}

int main(void) {
    test_use();
    test_refusals();
    test_attributes();
    start(NULL);
    check_nothing_alive();
    return check_done();
}
