/* Devices: set counts, resets, what they take away. */
#include <pthread.h>

#include "check.h"

static void test_ids(void) {
    static const int32_t bad[] = {2, -1, 64, INT32_MAX, INT32_MIN};
    uint32_t count = 0;
    start(NULL);
    OK(aclrtGetDeviceCount(&count));
    CHECK_EQ(count, 2);
    CHECK_EQ(aclrtGetDeviceCount(NULL), ACL_ERROR_INVALID_PARAM);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK_EQ(aclrtSetDevice(bad[i]), ACL_ERROR_RT_INVALID_DEVICEID);
        CHECK_EQ(aclrtResetDevice(bad[i]), ACL_ERROR_RT_INVALID_DEVICEID);
        CHECK_EQ(aclrtResetDeviceForce(bad[i]), ACL_ERROR_RT_INVALID_DEVICEID);
    }
    start("devices", "64", NULL);
    OK(aclrtGetDeviceCount(&count));
    CHECK_EQ(count, 64);
    OK(aclrtSetDevice(63));
    OK(aclrtResetDevice(63));
}

static void test_current(void) {
    int32_t device = -5;
    start(NULL);
    CHECK_EQ(aclrtGetDevice(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(device, -5);
    OK(aclrtSetDevice(0));
    OK(aclrtSetDevice(1));
    OK(aclrtGetDevice(&device));
    CHECK_EQ(device, 1);
    OK(aclrtResetDevice(1));
    CHECK_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtGetDevice(&device));
    CHECK_EQ(device, 0);
    OK(aclrtResetDevice(0));
    OK(aclrtGetDevice(&device));
    OK(aclrtResetDevice(0));
    CHECK_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
}

static void test_counts(void) {
    int32_t device;
    start(NULL);
    CHECK_EQ(aclrtResetDevice(0), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
    CHECK_EQ(aclrtResetDeviceForce(0), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
    for (int i = 0; i < 3; i++)
        OK(aclrtSetDevice(0));
    for (int i = 0; i < 3; i++) {
        OK(aclrtGetDevice(&device));
        OK(aclrtResetDevice(0));
    }
    CHECK_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtResetDevice(0), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
    for (int i = 0; i < 3; i++)
        OK(aclrtSetDevice(0));
    OK(aclrtResetDevice(0));
    OK(aclrtResetDeviceForce(0));
    CHECK_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtResetDeviceForce(0), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
    CHECK_EQ(aclrtResetDevice(0), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
}

static void *use_and_reset(void *block_out) {
    int32_t device;
    void *none = block_out;
    CHECK_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtMalloc(&none, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_CONTEXT_NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(block_out, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtResetDevice(0));
    OK(aclrtGetDevice(&device));
    return NULL;
}

static void *reset_by_force(void *unused) {
    OK(aclrtResetDeviceForce(0));
    return unused;
}

static void run(void *(*body)(void *), void *argument) {
    pthread_t thread;
    pthread_create(&thread, NULL, body, argument);
    pthread_join(thread, NULL);
}

static void test_other_threads(void) {
    void *block = NULL;
    int32_t device;
    start(NULL);
    OK(aclrtSetDevice(0));
    run(use_and_reset, &block);
    OK(aclrtFree(block));
    run(reset_by_force, NULL);
    CHECK_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
    check_nothing_alive();
}

static void test_last_reset_takes_memory(void) {
    void *block = NULL;
    void *host = NULL;
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, 4 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMallocHost(&host, 4096));
    OK(aclrtResetDevice(0));
    OK(aclrtMemset(block, 4 * MIB, 7, 4 * MIB));
    OK(aclrtResetDevice(0));
    CHECK_EQ(aclrtFree(block), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtSetDevice(0));
    CHECK_EQ(aclrtFree(block), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemset(block, 16, 0, 16), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtFreeHost(host));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

int main(void) {
    test_ids();
    test_current();
    test_counts();
    test_other_threads();
    test_last_reset_takes_memory();
    return check_done();
}
