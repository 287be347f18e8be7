/* Options poison and poison_free. */
#include <pthread.h>

#include "check.h"

static uint8_t back[3 << 20];

/* Whether all bytes at a device address equal one value. */
static bool all(const void *block, size_t len, uint8_t value) {
    OK(aclrtMemcpy(back, sizeof(back), block, len, ACL_MEMCPY_DEVICE_TO_HOST));
    for (size_t i = 0; i < len; i++) {
        if (back[i] != value)
            return false;
    }
    return true;
}

static void test_new_blocks(const char *profile) {
    void *small = NULL, *large = NULL, *plain = NULL;
    start("profile", profile, "poison", "0xA5", NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&small, 5000, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMallocWithCfg(&large, 3 * MIB, ACL_MEM_MALLOC_HUGE_FIRST, NULL));
    CHECK(all(small, 5000, 0xA5));
    CHECK(all(large, 3 * MIB, 0xA5));
    OK(aclrtFree(small));
    OK(aclrtMemset(large, 3 * MIB, 1, 3 * MIB));
    OK(aclrtFree(large));
    OK(aclrtMalloc(&large, 3 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(all(large, 3 * MIB, 0xA5));
    OK(hostacl_configure("poison", "17"));
    OK(aclrtMalloc(&small, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(all(small, 64, 17));
    CHECK(all(large, 3 * MIB, 0xA5));
    OK(hostacl_configure("poison", "off"));
    OK(aclrtMalloc(&plain, 4 * MIB, ACL_MEM_MALLOC_HUGE_ONLY));
    CHECK(all(plain, 3 * MIB, 0));
    OK(aclrtFree(plain));
    OK(aclrtFree(small));
    OK(aclrtFree(large));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

static void test_host_blocks(void) {
    uint8_t *host = NULL;
    start("poison", "255", NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMallocHost((void **)&host, 5000));
    CHECK(host[0] == 255 && host[4999] == 255);
    OK(aclrtFreeHost(host));
    OK(hostacl_configure("poison", "off"));
    OK(aclrtMallocHost((void **)&host, 5000));
    CHECK(host[0] == 0 && host[4999] == 0);
    OK(aclrtFreeHost(host));
}

static void test_physical(void) {
    void *range = NULL;
    aclrtDrvMemHandle handle = NULL;
    aclrtPhysicalMemProp prop = {.memAttr = ACL_HBM_MEM_HUGE, .location = {.type = ACL_MEM_LOCATION_TYPE_DEVICE}};
    start("poison", "9", NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtReserveMemAddress(&range, 2 * MIB, 0, NULL, 0));
    OK(aclrtMallocPhysical(&handle, 2 * MIB, &prop, 0));
    OK(aclrtMapMem(range, 2 * MIB, 0, handle, 0));
    CHECK(all(range, 2 * MIB, 9));
    OK(aclrtUnmapMem(range));
    OK(aclrtFreePhysical(handle));
    OK(aclrtReleaseMemAddress(range));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

static void test_managed(void) {
    uint8_t *managed = NULL;
    start("poison", "0x77", NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMemAllocManaged((void **)&managed, 5000, ACL_RT_MEM_ATTACH_GLOBAL));
    CHECK(managed[0] == 0x77 && managed[4999] == 0x77);
    OK(aclrtFree(managed));
}

/* A fill with zeros is one too: it shows in memory that is used again. */
static void test_zeros(void) {
    void *block = NULL;
    start("profile", "card", "poison", "0", NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, 8192, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemset(block, 8192, 5, 8192));
    OK(aclrtFree(block));
    OK(aclrtMalloc(&block, 8192, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(all(block, 8192, 0));
    OK(aclrtFree(block));
}

static void *shared_block;
static pthread_barrier_t barrier;

static void *free_shared(void *freed) {
    for (int i = 0; i < 40; i++) {
        pthread_barrier_wait(&barrier);
        int code = aclrtFree(shared_block);
        CHECK(!code || code == ACL_ERROR_RT_PARAM_INVALID);
        atomic_fetch_add((atomic_int *)freed, !code);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

/* Two threads free the same block while its bytes are filled: one of them succeeds. */
static void test_freed_twice(void) {
    pthread_t threads[2];
    atomic_int freed = 0;
    start("profile", "card", "poison_free", "1", NULL);
    OK(aclrtSetDevice(0));
    pthread_barrier_init(&barrier, NULL, 3);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, free_shared, &freed);
    for (int i = 0; i < 40; i++) {
        OK(aclrtMalloc(&shared_block, 16 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    CHECK_EQ(freed, 40);
}

/* In the card profile a freed block goes on answering; filled, it shows who reads it late. */
static void test_freed_blocks(void) {
    void *block = NULL;
    start("profile", "card", "poison_free", "0xDD", NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, 8192, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemset(block, 8192, 1, 8192));
    CHECK(all(block, 8192, 1));
    OK(aclrtFree(block));
    CHECK(all(block, 8192, 0xDD));
    CHECK_EQ(aclrtFree(block), ACL_ERROR_RT_PARAM_INVALID);
    OK(hostacl_configure("poison_free", "off"));
    OK(aclrtMalloc(&block, 8192, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemset(block, 8192, 2, 8192));
    OK(aclrtFree(block));
    CHECK(all(block, 8192, 2));
    start("profile", "strict", "poison_free", "0xDD", NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, 8192, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtFree(block));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

static void test_values(void) {
    start(NULL);
    CHECK_EQ(hostacl_configure("poison", "256"), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(hostacl_configure("poison", ""), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(hostacl_configure("poison_free", "-1"), ACL_ERROR_INVALID_PARAM);
    CHECK(strstr(hostacl_error(), "poison_free: \"-1\" is neither off nor a byte from 0 to 255"));
    OK(hostacl_configure("poison", "0"));
}

int main(void) {
    test_new_blocks("strict");
    test_new_blocks("card");
    test_host_blocks();
    test_physical();
    test_managed();
    test_zeros();
    test_freed_blocks();
    test_freed_twice();
    test_values();
    start(NULL);
    return check_done();
}
