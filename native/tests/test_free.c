/* aclrtFree: what it takes, what it refuses (strict profile). */
#include <pthread.h>

#include "check.h"

static void test_refusals(void) {
    void *block = NULL;
    void *heap = malloc(4096);
    void *host = NULL;
    start(NULL);
    CHECK_EQ(aclrtFree(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtFree((void *)0x123456000), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, 4 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMallocHost(&host, 64));
    CHECK_EQ(aclrtFree(plus(block, 1)), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtFree(plus(block, 64)), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtFree(plus(block, 2 * MIB)), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtFree(plus(block, 64 * GIB)), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtFree(heap), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtFree(host), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtFree(&block), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtMemset(block, 4 * MIB, 1, 4 * MIB));
    OK(aclrtFree(block));
    CHECK_EQ(aclrtFree(block), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtFreeHost(host));
    free(heap);
}

/* A freed block answers nobody any more, and its address is not given out again soon. */
static void test_freed_is_gone(void) {
    char bytes[64] = {0};
    void *block = NULL, *next = NULL;
    aclrtPtrAttributes attributes;
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, 4 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtFree(block));
    CHECK_EQ(aclrtMemset(block, 64, 0, 64), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemcpy(block, 64, bytes, 64, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemcpy(bytes, 64, block, 64, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtPointerGetAttributes(block, &attributes), ACL_ERROR_RT_PARAM_INVALID);
    for (int i = 0; i < 1000; i++) {
        OK(aclrtMalloc(&next, 4 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
        CHECK(next != block);
        OK(aclrtFree(next));
    }
}

static void *free_there(void *block) {
    int32_t device;
    CHECK_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
    OK(aclrtFree(block));
    CHECK_EQ(aclrtFree(block), ACL_ERROR_RT_PARAM_INVALID);
    return NULL;
}

static void test_from_anywhere(void) {
    void *first = NULL, *second = NULL;
    pthread_t thread;
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&first, 2 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMalloc(&second, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtSetDevice(1));
    OK(aclrtFree(first));
    pthread_create(&thread, NULL, free_there, second);
    pthread_join(thread, NULL);
    OK(aclrtResetDevice(0));
    OK(aclrtResetDevice(1));
    check_nothing_alive();
}

int main(void) {
    test_refusals();
    test_freed_is_gone();
    test_from_anywhere();
    return check_done();
}
