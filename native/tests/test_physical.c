/* Physical memory handles: arguments, attributes, pools, reference counts, wrong values, generations of the driver. */
#include <pthread.h>
#include <unistd.h>

#include "virtual_memory.h"

static const aclrtMemLocationType on_device = ACL_MEM_LOCATION_TYPE_DEVICE;

static void refused(aclrtPhysicalMemProp prop, uint64_t size, uint64_t flags, int code) {
    aclrtDrvMemHandle handle = UNTOUCHED;
    CHECK_EQ(aclrtMallocPhysical(&handle, size, &prop, flags), code);
    CHECK(handle == UNTOUCHED);
}

static void test_arguments(void) {
    aclrtPhysicalMemProp good = property(ACL_HBM_MEM_HUGE, on_device, 0), bad;
    aclrtDrvMemHandle handle = UNTOUCHED;
    start(NULL);
    CHECK_EQ(aclrtMallocPhysical(NULL, PAGE, &good, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMallocPhysical(&handle, PAGE, NULL, 0), ACL_ERROR_INVALID_PARAM);
    CHECK(handle == UNTOUCHED);
    refused(good, 0, 0, ACL_ERROR_INVALID_PARAM);
    refused(good, PAGE, 1, ACL_ERROR_INVALID_PARAM);
    refused(good, MIB, 0, ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    refused(good, PAGE + 1, 0, ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    refused(good, UINT64_MAX, 0, ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    refused(good, 100 * GIB, 0, ACL_ERROR_RT_MEMORY_ALLOCATION);
    refused(good, ~(PAGE - 1), 0, ACL_ERROR_RT_MEMORY_ALLOCATION);
    refused(property(ACL_HBM_MEM_HUGE, on_device, 2), PAGE, 0, ACL_ERROR_RT_INVALID_DEVICEID);
    refused(property(ACL_HBM_MEM_HUGE, on_device, UINT32_MAX), PAGE, 0, ACL_ERROR_RT_INVALID_DEVICEID);
    refused(property(99, on_device, 0), PAGE, 0, ACL_ERROR_INVALID_PARAM);
    refused(property((aclrtMemAttr)-1, on_device, 0), PAGE, 0, ACL_ERROR_INVALID_PARAM);
    refused(property(ACL_HBM_MEM_HUGE, 9, 0), PAGE, 0, ACL_ERROR_RT_PARAM_INVALID);
    refused(property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_UNREGISTERED, 0), PAGE, 0, ACL_ERROR_INVALID_PARAM);
    refused(property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_MANAGED, 0), PAGE, 0, ACL_ERROR_INVALID_PARAM);
    bad = good;
    bad.handleType = ACL_MEM_HANDLE_TYPE_POSIX;
    refused(bad, PAGE, 0, ACL_ERROR_INVALID_PARAM);
    bad = good;
    bad.allocationType = (aclrtMemAllocationType)1;
    refused(bad, PAGE, 0, ACL_ERROR_INVALID_PARAM);
    bad = good;
    bad.reserve = 5;
    refused(bad, PAGE, 0, ACL_ERROR_RT_PARAM_INVALID);
    check_nothing_alive();
}

/* Attribute, code on a device, what it reads back as, page class. */
static const struct {
    aclrtMemAttr attr;
    int code;
    aclrtMemAttr back;
    int cls;
} on_devices[] = {
    {ACL_DDR_MEM, ACL_ERROR_INVALID_PARAM, 0, 0},
    {ACL_HBM_MEM, ACL_ERROR_INVALID_PARAM, 0, 0},
    {ACL_DDR_MEM_HUGE, ACL_ERROR_INVALID_PARAM, 0, 0},
    {ACL_DDR_MEM_NORMAL, ACL_ERROR_INVALID_PARAM, 0, 0},
    {ACL_HBM_MEM_HUGE, 0, ACL_HBM_MEM_HUGE, 1},
    {ACL_HBM_MEM_NORMAL, 0, ACL_HBM_MEM_NORMAL, 1},
    {ACL_DDR_MEM_P2P_HUGE, ACL_ERROR_INVALID_PARAM, 0, 0},
    {ACL_DDR_MEM_P2P_NORMAL, ACL_ERROR_INVALID_PARAM, 0, 0},
    {ACL_HBM_MEM_P2P_HUGE, ACL_ERROR_INVALID_PARAM, 0, 0},
    {ACL_HBM_MEM_P2P_NORMAL, ACL_ERROR_INVALID_PARAM, 0, 0},
    {ACL_HBM_MEM_HUGE1G, 0, ACL_HBM_MEM_HUGE1G, 2},
    {ACL_HBM_MEM_P2P_HUGE1G, ACL_ERROR_INVALID_PARAM, 0, 0},
    {ACL_MEM_NORMAL, 0, ACL_HBM_MEM_NORMAL, 1},
    {ACL_MEM_HUGE, 0, ACL_HBM_MEM_HUGE, 1},
    {ACL_MEM_HUGE1G, 0, ACL_HBM_MEM_HUGE1G, 2},
    {ACL_MEM_P2P_NORMAL, 0, ACL_MEM_P2P_NORMAL, 1},
    {ACL_MEM_P2P_HUGE, 0, ACL_MEM_P2P_HUGE, 1},
    {ACL_MEM_P2P_HUGE1G, 0, ACL_MEM_P2P_HUGE1G, 2},
};

#define ATTRIBUTES (sizeof(on_devices) / sizeof(on_devices[0]))

static uint64_t pages_used(int cls) {
    hostacl_live_t live = live_now();
    return cls == 1 ? live.devices[1].pages_2m_used : live.devices[1].pages_1g_used;
}

static void test_attributes(void) {
    start("pages_1g", "2", NULL);
    for (size_t i = 0; i < ATTRIBUTES; i++) {
        aclrtPhysicalMemProp prop = property(on_devices[i].attr, on_device, 1), back;
        aclrtDrvMemHandle handle = UNTOUCHED;
        size_t unit = 77;
        CHECK_EQ(aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &unit),
                 on_devices[i].code);
        CHECK_EQ(aclrtMallocPhysical(&handle, PAGE, &prop, 0), on_devices[i].code);
        if (on_devices[i].code) {
            CHECK_EQ(unit, 77);
            CHECK(handle == UNTOUCHED);
            continue;
        }
        CHECK_EQ(unit, on_devices[i].cls == 2 ? GIB : PAGE);
        CHECK_EQ(pages_used(on_devices[i].cls), 1);
        CHECK_EQ(live_now().handle_bytes, unit);
        memset(&back, 0xff, sizeof(back));
        OK(aclrtMemGetAllocationPropertiesFromHandle(handle, &back));
        CHECK_EQ(back.handleType, 0);
        CHECK_EQ(back.allocationType, 0);
        CHECK_EQ(back.memAttr, on_devices[i].back);
        CHECK_EQ(back.location.type, on_device);
        CHECK_EQ(back.location.id, 1);
        CHECK_EQ(back.reserve, 0);
        OK(aclrtFreePhysical(handle));
        CHECK_EQ(live_now().devices[1].pages_2m_used + live_now().devices[1].pages_1g_used, 0);
    }
    check_nothing_alive();
}

static void test_granularity(void) {
    aclrtPhysicalMemProp prop = property(ACL_HBM_MEM_HUGE, on_device, 0);
    size_t unit = 77;
    start("pages_1g", "none", NULL);
    CHECK_EQ(aclrtMemGetAllocationGranularity(NULL, 0, &unit), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemGetAllocationGranularity(&prop, 0, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemGetAllocationGranularity(&prop, 2, &unit), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_EQ(aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_UNDEF, &unit),
             ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    prop.location.id = 9;
    CHECK_EQ(aclrtMemGetAllocationGranularity(&prop, 0, &unit), ACL_ERROR_RT_INVALID_DEVICEID);
    prop = property(ACL_HBM_MEM_HUGE1G, on_device, 0);
    CHECK_EQ(aclrtMemGetAllocationGranularity(&prop, 0, &unit), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_EQ(unit, 77);
    prop.memAttr = ACL_HBM_MEM_NORMAL;
    OK(aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED, &unit));
    CHECK_EQ(unit, PAGE);
    check_nothing_alive();
}

/* 1 GiB pages: a small size takes a whole page, the pool runs out, products and drivers without them refuse. */
static void test_giant(void) {
    aclrtPhysicalMemProp prop = property(ACL_HBM_MEM_HUGE1G, on_device, 0);
    aclrtDrvMemHandle first = NULL, second = NULL;
    start("pages_1g", "2", NULL);
    OK(aclrtMallocPhysical(&first, 1, &prop, 0));
    OK(aclrtMallocPhysical(&second, GIB, &prop, 0));
    CHECK_EQ(live_now().devices[0].pages_1g_used, 2);
    refused(prop, PAGE, 0, ACL_ERROR_RT_MEMORY_ALLOCATION);
    refused(prop, UINT64_MAX, 0, ACL_ERROR_RT_MEMORY_ALLOCATION);
    OK(aclrtFreePhysical(first));
    refused(prop, GIB + 1, 0, ACL_ERROR_RT_MEMORY_ALLOCATION);
    OK(aclrtMallocPhysical(&first, GIB, &prop, 0));
    OK(aclrtFreePhysical(first));
    OK(aclrtFreePhysical(second));
    start("pages_1g", "0", NULL);
    refused(prop, GIB, 0, ACL_ERROR_RT_MEMORY_ALLOCATION);
    start("pages_1g", "none", NULL);
    refused(prop, GIB, 0, ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    start("soc_name", "Ascend310P3", NULL);
    refused(prop, GIB, 0, ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
}

/* The newer driver gives another code for sizes that are no whole pages, and does not round to 1 GiB. */
static void test_newer_driver(void) {
    aclrtDrvMemHandle handle = NULL;
    start("soc_name", "Ascend950PR_9599", NULL);
    refused(property(ACL_HBM_MEM_HUGE, on_device, 0), MIB, 0, ACL_ERROR_RT_PARAM_INVALID);
    refused(property(ACL_HBM_MEM_HUGE1G, on_device, 0), PAGE, 0, ACL_ERROR_RT_PARAM_INVALID);
    aclrtPhysicalMemProp prop = property(ACL_HBM_MEM_HUGE1G, on_device, 0);
    OK(aclrtMallocPhysical(&handle, GIB, &prop, 0));
    void *at = range(GIB);
    CHECK_EQ(aclrtUnmapMem(plus(at, MIB)), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtUnmapMem(plus(at, PAGE)), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtReleaseMemAddress(at));
    OK(aclrtFreePhysical(handle));
    check_nothing_alive();
}

/* The pool is used to its last page, and a refused request leaves no trace. */
static void test_pool(void) {
    enum { PAGES = 10 };
    aclrtDrvMemHandle handles[PAGES];
    start("pages_2m", "20M", "pages_4k", "4M", "pages_1g", "0", NULL);
    OK(aclrtSetDevice(0));
    for (int i = 0; i < PAGES; i++) {
        handles[i] = physical(0, PAGE);
        CHECK_EQ(free_bytes(ACL_HBM_MEM_HUGE), (uint64_t)(PAGES - 1 - i) * PAGE);
    }
    refused(property(ACL_HBM_MEM_HUGE, on_device, 0), PAGE, 0, ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK(strstr(aclGetRecentErrMsg(), "0 of 10 pages of 2 MiB"));
    for (int i = 0; i < PAGES; i += 2)
        OK(aclrtFreePhysical(handles[i]));
    refused(property(ACL_HBM_MEM_HUGE, on_device, 0), 6 * PAGE, 0, ACL_ERROR_RT_MEMORY_ALLOCATION);
    aclrtDrvMemHandle scattered = physical(0, 5 * PAGE);
    CHECK_EQ(free_bytes(ACL_HBM_MEM_HUGE), 0);
    void *at = range(5 * PAGE);
    OK(aclrtMapMem(at, 5 * PAGE, 0, scattered, 0));
    static uint8_t in[5 * PAGE], out[5 * PAGE];
    for (size_t i = 0; i < sizeof(in); i++)
        in[i] = (uint8_t)(i * 7 + i / PAGE);
    OK(aclrtMemcpy(at, sizeof(in), in, sizeof(in), ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtMemcpy(out, sizeof(out), at, sizeof(out), ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(!memcmp(in, out, sizeof(in)));
    OK(aclrtUnmapMem(at));
    OK(aclrtFreePhysical(scattered));
    for (int i = 1; i < PAGES; i += 2)
        OK(aclrtFreePhysical(handles[i]));
    OK(aclrtReleaseMemAddress(at));
    CHECK_EQ(free_bytes(ACL_HBM_MEM_HUGE), PAGES * PAGE);
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

static uint64_t used(void) {
    return live_now().devices[0].pages_2m_used;
}

/* References: creation 1, retain +1, map +1; memory returns when all are gone, whatever the order. */
static void test_references(void) {
    aclrtDrvMemHandle again = NULL;
    start(NULL);
    OK(aclrtSetDevice(0));
    void *at = range(2 * PAGE);
    aclrtDrvMemHandle handle = physical(0, PAGE);
    OK(aclrtMapMem(at, PAGE, 0, handle, 0));
    OK(aclrtMemRetainAllocationHandle(at, &again));
    CHECK(again == handle);
    OK(aclrtFreePhysical(handle));
    OK(aclrtFreePhysical(handle));
    CHECK_EQ(aclrtFreePhysical(handle), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(used(), 1);
    CHECK_EQ(live_now().handles, 1);
    OK(poke(at, 5));
    OK(aclrtMapMem(plus(at, PAGE), PAGE, 0, handle, 0));
    CHECK_EQ(peek(plus(at, PAGE)), 5);
    OK(aclrtUnmapMem(at));
    CHECK_EQ(used(), 1);
    OK(aclrtMemRetainAllocationHandle(plus(at, PAGE), &again));
    OK(aclrtUnmapMem(plus(at, PAGE)));
    CHECK_EQ(used(), 1);
    OK(aclrtMapMem(at, PAGE, 0, handle, 0));
    CHECK_EQ(peek(at), 5);
    OK(aclrtUnmapMem(at));
    OK(aclrtFreePhysical(handle));
    CHECK_EQ(used(), 0);
    CHECK_EQ(aclrtFreePhysical(handle), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtReleaseMemAddress(at));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

static void test_retain_refused(void) {
    aclrtDrvMemHandle handle = physical(0, 2 * PAGE), out = UNTOUCHED;
    void *at = range(2 * PAGE), *block = NULL;
    static char host[64];
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, PAGE, ACL_MEM_MALLOC_HUGE_ONLY));
    CHECK_EQ(aclrtMemRetainAllocationHandle(at, &out), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtMapMem(at, 2 * PAGE, 0, handle, 0));
    CHECK_EQ(aclrtMemRetainAllocationHandle(NULL, &out), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemRetainAllocationHandle(at, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemRetainAllocationHandle(plus(at, PAGE), &out), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemRetainAllocationHandle(plus(at, 1), &out), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemRetainAllocationHandle(block, &out), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemRetainAllocationHandle(host, &out), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK(out == UNTOUCHED);
    OK(aclrtUnmapMem(at));
    OK(aclrtFreePhysical(handle));
    OK(aclrtReleaseMemAddress(at));
    OK(aclrtFree(block));
    OK(aclrtResetDevice(0));
}

/* A value that is no live handle is refused by every call, also a freed one whose place was used again. */
static void test_wrong_handles(void) {
    aclrtPhysicalMemProp prop;
    uint64_t shareable = 0;
    aclrtContext context = NULL;
    start(NULL);
    OK(aclrtCreateContext(&context, 0));
    void *at = range(PAGE);
    aclrtDrvMemHandle stale = physical(0, PAGE);
    OK(aclrtFreePhysical(stale));
    aclrtDrvMemHandle fresh = physical(0, PAGE);
    CHECK(fresh != stale);
    for (size_t i = 0; i < WRONG_HANDLES + 2; i++) {
        void *wrong = i < WRONG_HANDLES ? wrong_handles[i] : i == WRONG_HANDLES ? stale : context;
        CHECK_EQ(aclrtFreePhysical(wrong), ACL_ERROR_RT_PARAM_INVALID);
        CHECK_EQ(aclrtMapMem(at, PAGE, 0, wrong, 0), ACL_ERROR_RT_INVALID_HANDLE);
        CHECK_EQ(aclrtMemMapNoAccess(at, PAGE, 0, wrong, 0), ACL_ERROR_RT_INVALID_HANDLE);
        CHECK_EQ(aclrtMemGetAllocationPropertiesFromHandle(wrong, &prop), ACL_ERROR_RT_INVALID_HANDLE);
        CHECK_EQ(aclrtMemExportToShareableHandle(wrong, 0, 0, &shareable), ACL_ERROR_RT_INVALID_HANDLE);
    }
    CHECK_EQ(aclrtFreePhysical(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemGetAllocationPropertiesFromHandle(NULL, &prop), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemGetAllocationPropertiesFromHandle(fresh, NULL), ACL_ERROR_INVALID_PARAM);
    OK(aclrtFreePhysical(fresh));
    OK(aclrtReleaseMemAddress(at));
    OK(aclrtDestroyContext(context));
    check_nothing_alive();
}

/* No device needs to be set: the memory opens its device, and the last handle closes it again. */
static void test_without_device(void) {
    start(NULL);
    aclrtDrvMemHandle handle = physical(1, PAGE), other = physical(1, PAGE);
    void *at = range(PAGE);
    OK(aclrtMapMem(at, PAGE, 0, handle, 0));
    CHECK_EQ(live_now().devices[1].pages_2m_used, 2);
    CHECK_EQ(live_now().devices_set, 0);
    OK(aclrtFreePhysical(handle));
    OK(aclrtFreePhysical(other));
    CHECK_EQ(live_now().devices[1].pages_2m_used, 1);
    CHECK_EQ(hostacl_configure("devices", "4"), ACL_ERROR_RELATIVE_RESOURCE_NOT_CLEARED);
    OK(aclrtUnmapMem(at));
    OK(aclrtReleaseMemAddress(at));
    OK(hostacl_configure("devices", "4"));
    check_nothing_alive();
}

/* Several threads make and free the only handles of a device that is not set, or of the host: the device opens and
 * closes all the time, and no request fails for that. */
static void *make_and_free(void *user) {
    aclrtPhysicalMemProp prop = *(const aclrtPhysicalMemProp *)user;
    for (int i = 0; i < 300; i++) {
        aclrtDrvMemHandle handle = NULL;
        OK(aclrtMallocPhysical(&handle, PAGE, &prop, 0));
        OK(aclrtFreePhysical(handle));
    }
    return NULL;
}

static void test_opened_by_threads(void) {
    enum { THREADS = 4 };
    aclrtPhysicalMemProp props[2] = {property(ACL_MEM_HUGE, on_device, 1),
                                     property(ACL_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST, 0)};
    pthread_t threads[THREADS];
    start("poison", "0x5a", NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, make_and_free, &props[i % 2]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    check_nothing_alive();
}

/* Touched pages go back to the kernel with the last reference. */
static void test_committed(void) {
    start(NULL);
    OK(aclrtSetDevice(0));
    aclrtDrvMemHandle handle = physical(0, 4 * PAGE);
    void *at = range(4 * PAGE);
    OK(aclrtMapMem(at, 4 * PAGE, 0, handle, 0));
    CHECK_EQ(live_now().devices[0].committed_bytes, 0);
    OK(aclrtMemset(at, 4 * PAGE, 1, 3 * PAGE));
    CHECK_EQ(live_now().devices[0].committed_bytes, 3 * PAGE);
    OK(aclrtUnmapMem(at));
    CHECK_EQ(live_now().devices[0].committed_bytes, 3 * PAGE);
    OK(aclrtFreePhysical(handle));
    CHECK_EQ(live_now().devices[0].committed_bytes, 0);
    OK(aclrtReleaseMemAddress(at));
    OK(aclrtResetDevice(0));
}

/* The last reset drops handles and mappings; ranges stay, bound to their device, and what the handles were is dead. */
static void test_reset(void) {
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtSetDevice(1));
    aclrtDrvMemHandle handle = physical(0, PAGE), kept = physical(1, PAGE);
    void *at = range(PAGE), *other = range(PAGE);
    OK(aclrtMapMem(at, PAGE, 0, handle, 0));
    OK(aclrtMapMem(other, PAGE, 0, kept, 0));
    OK(poke(other, 8));
    OK(aclrtResetDevice(0));
    CHECK_EQ(live_now().handles, 1);
    CHECK_EQ(live_now().mappings, 1);
    CHECK_EQ(peek(other), 8);
    CHECK_EQ(poke(at, 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtFreePhysical(handle), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtUnmapMem(at), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMapMem(at, PAGE, 0, kept, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtSetDevice(0));
    handle = physical(0, PAGE);
    OK(aclrtMapMem(at, PAGE, 0, handle, 0));
    CHECK_EQ(peek(at), 0);
    OK(aclrtResetDeviceForce(0));
    OK(aclrtReleaseMemAddress(at));
    OK(aclrtUnmapMem(other));
    OK(aclrtFreePhysical(kept));
    OK(aclrtReleaseMemAddress(other));
    OK(aclrtResetDevice(1));
    check_nothing_alive();
}

int main(void) {
    test_arguments();
    test_attributes();
    test_granularity();
    test_giant();
    test_newer_driver();
    test_pool();
    test_references();
    test_retain_refused();
    test_wrong_handles();
    test_without_device();
    test_opened_by_threads();
    test_committed();
    test_reset();
    start(NULL);
    check_nothing_alive();
    return check_done();
}
