/* Peer access: queries, enabling one direction, what copies between devices need, the number of the process. */
#include <unistd.h>

#include "virtual_memory.h"

static void test_queries(void) {
    int32_t can = 77;
    start(NULL);
    CHECK_EQ(aclrtDeviceCanAccessPeer(NULL, 0, 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtDeviceCanAccessPeer(&can, 1, 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtDeviceCanAccessPeer(&can, 0, 2), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtDeviceCanAccessPeer(&can, -1, 0), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(can, 77);
    OK(aclrtDeviceCanAccessPeer(&can, 1, 0));
    CHECK_EQ(can, 1);
}

static void test_arguments(void) {
    start(NULL);
    CHECK_EQ(aclrtDeviceEnablePeerAccess(1, 1), ACL_ERROR_FEATURE_UNSUPPORTED);
    CHECK_EQ(aclrtDeviceEnablePeerAccess(1, 0), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtDeviceDisablePeerAccess(1), ACL_ERROR_RT_CONTEXT_NULL);
    OK(aclrtSetDevice(0));
    CHECK_EQ(aclrtDeviceEnablePeerAccess(0, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtDeviceEnablePeerAccess(2, 0), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtDeviceDisablePeerAccess(0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtDeviceDisablePeerAccess(2), ACL_ERROR_RT_INVALID_DEVICEID);
    OK(aclrtDeviceDisablePeerAccess(1));
    OK(aclrtDeviceEnablePeerAccess(1, 0));
    OK(aclrtDeviceEnablePeerAccess(1, 0));
    OK(aclrtResetDevice(0));
}

static void *blocks[2];

static int copy(int from, int to) {
    return aclrtMemcpy(blocks[to], 64, blocks[from], 64, ACL_MEMCPY_DEVICE_TO_DEVICE);
}

static void set_up(const char *profile) {
    start("profile", profile, NULL);
    for (int i = 0; i < 2; i++) {
        OK(aclrtSetDevice(i));
        OK(aclrtMalloc(&blocks[i], 64, ACL_MEM_MALLOC_HUGE_FIRST));
    }
}

static void tear_down(void) {
    OK(aclrtResetDeviceForce(1));
    OK(aclrtResetDeviceForce(0));
    check_nothing_alive();
}

/* One direction is enough for a copy either way; without it the strict profile refuses, and nothing was copied. */
static void test_copies(void) {
    set_up("strict");
    OK(poke(blocks[0], 5));
    CHECK_EQ(copy(0, 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK(strstr(aclGetRecentErrMsg(), "aclrtDeviceEnablePeerAccess"));
    CHECK_EQ(peek(blocks[1]), 0);
    OK(aclrtDeviceEnablePeerAccess(0, 0));
    OK(copy(0, 1));
    CHECK_EQ(peek(blocks[1]), 5);
    OK(copy(1, 0));
    OK(aclrtDeviceDisablePeerAccess(0));
    CHECK_EQ(copy(0, 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtSetDevice(0));
    OK(aclrtDeviceEnablePeerAccess(1, 0));
    OK(copy(0, 1));
    tear_down();
    set_up("card");
    OK(copy(0, 1));
    tear_down();
}

/* Peer access ends with the device that had it. */
static void test_reset(void) {
    set_up("strict");
    OK(aclrtDeviceEnablePeerAccess(0, 0));
    OK(aclrtResetDevice(1));
    OK(aclrtSetDevice(1));
    OK(aclrtMalloc(&blocks[1], 64, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_EQ(copy(0, 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    tear_down();
}

/* A right on a mapping stands in for peer access, for that mapping alone. */
static void test_rights_of_mappings(void) {
    aclrtMemAccessDesc desc = {.flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE,
                               .location = {.id = 1, .type = ACL_MEM_LOCATION_TYPE_DEVICE}};
    set_up("strict");
    void *at = range(2 * PAGE);
    aclrtDrvMemHandle first = physical(0, PAGE), second = physical(0, PAGE);
    OK(aclrtMapMem(at, PAGE, 0, first, 0));
    OK(aclrtMapMem(plus(at, PAGE), PAGE, 0, second, 0));
    OK(poke(at, 4));
    CHECK_EQ(aclrtMemcpy(blocks[1], 64, at, 64, ACL_MEMCPY_DEVICE_TO_DEVICE), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtMemSetAccess(at, PAGE, &desc, 1));
    OK(aclrtMemcpy(blocks[1], 64, at, 64, ACL_MEMCPY_DEVICE_TO_DEVICE));
    CHECK_EQ(peek(blocks[1]), 4);
    OK(aclrtMemcpy(at, 64, blocks[1], 64, ACL_MEMCPY_DEVICE_TO_DEVICE));
    CHECK_EQ(aclrtMemcpy(plus(at, PAGE), 64, blocks[1], 64, ACL_MEMCPY_DEVICE_TO_DEVICE),
             ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemcpy(plus(at, PAGE - 32), 64, blocks[1], 64, ACL_MEMCPY_DEVICE_TO_DEVICE),
             ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtResetDeviceForce(0));
    OK(aclrtReleaseMemAddress(at));
    OK(aclrtSetDevice(0));
    tear_down();
}

/* Mapping a block to a device stands in for peer access, for that block alone and as long as it lives. */
static void test_mapped_blocks(void) {
    void *other = NULL, *inside;
    set_up("strict");
    OK(aclrtMalloc(&other, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(poke(blocks[0], 5));
    OK(aclrtMemP2PMap(blocks[0], 64, 1, 0));
    OK(copy(0, 1));
    CHECK_EQ(peek(blocks[1]), 5);
    OK(copy(1, 0));
    inside = plus(blocks[0], 16);
    OK(aclrtMemcpy(other, 64, inside, 48, ACL_MEMCPY_DEVICE_TO_DEVICE));
    OK(aclrtFree(blocks[0]));
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&blocks[0], 64, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_EQ(copy(0, 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemP2PMap(NULL, 64, 1, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemP2PMap(blocks[0], 0, 1, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemP2PMap(blocks[0], 64, 1, 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemP2PMap(blocks[0], 64, 2, 0), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtMemP2PMap(blocks[0], 8192, 1, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemP2PMap(&other, 8, 1, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(copy(0, 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    tear_down();
}

static void test_process(void) {
    int32_t pid = 0;
    start(NULL);
    CHECK_EQ(aclrtDeviceGetBareTgid(NULL), ACL_ERROR_INVALID_PARAM);
    OK(aclrtDeviceGetBareTgid(&pid));
    CHECK_EQ(pid, getpid());
}

int main(void) {
    test_queries();
    test_arguments();
    test_copies();
    test_reset();
    test_rights_of_mappings();
    test_mapped_blocks();
    test_process();
    start(NULL);
    check_nothing_alive();
    return check_done();
}
