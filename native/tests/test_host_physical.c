/* Physical memory of the host: attributes, NUMA nodes, mappings that the host itself may touch, rights, life. */
#include "virtual_memory.h"

/* Attribute, code for a host location, what it reads back as. */
static const struct {
    aclrtMemAttr attr;
    int code;
    aclrtMemAttr back;
} attributes[] = {
    {ACL_DDR_MEM, ACL_ERROR_INVALID_PARAM, 0},
    {ACL_HBM_MEM, ACL_ERROR_INVALID_PARAM, 0},
    {ACL_DDR_MEM_HUGE, 0, ACL_DDR_MEM_HUGE},
    {ACL_DDR_MEM_NORMAL, 0, ACL_DDR_MEM_NORMAL},
    {ACL_HBM_MEM_HUGE, 0, ACL_HBM_MEM_HUGE},
    {ACL_HBM_MEM_NORMAL, 0, ACL_HBM_MEM_NORMAL},
    {ACL_DDR_MEM_P2P_HUGE, 0, ACL_DDR_MEM_P2P_HUGE},
    {ACL_DDR_MEM_P2P_NORMAL, 0, ACL_DDR_MEM_P2P_NORMAL},
    {ACL_HBM_MEM_P2P_HUGE, ACL_ERROR_INVALID_PARAM, 0},
    {ACL_HBM_MEM_P2P_NORMAL, ACL_ERROR_INVALID_PARAM, 0},
    {ACL_HBM_MEM_P2P_HUGE1G, ACL_ERROR_INVALID_PARAM, 0},
    {ACL_MEM_NORMAL, 0, ACL_DDR_MEM_NORMAL},
    {ACL_MEM_HUGE, 0, ACL_DDR_MEM_HUGE},
    {ACL_MEM_P2P_NORMAL, 0, ACL_MEM_P2P_NORMAL},
    {ACL_MEM_P2P_HUGE, 0, ACL_MEM_P2P_HUGE},
    {ACL_MEM_P2P_HUGE1G, 0, ACL_MEM_P2P_HUGE1G},
    {ACL_HBM_MEM_HUGE1G, 0, ACL_HBM_MEM_HUGE1G},
};

static void test_attributes(void) {
    start(NULL);
    for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
        aclrtPhysicalMemProp prop = property(attributes[i].attr, ACL_MEM_LOCATION_TYPE_HOST, 0), back;
        aclrtDrvMemHandle handle = UNTOUCHED;
        size_t unit = 0;
        CHECK_EQ(aclrtMallocPhysical(&handle, PAGE, &prop, 0), attributes[i].code);
        CHECK_EQ(aclrtMemGetAllocationGranularity(&prop, 0, &unit), attributes[i].code);
        if (attributes[i].code)
            continue;
        OK(aclrtMemGetAllocationPropertiesFromHandle(handle, &back));
        CHECK_EQ(back.memAttr, attributes[i].back);
        CHECK_EQ(back.location.type, ACL_MEM_LOCATION_TYPE_HOST);
        OK(aclrtFreePhysical(handle));
    }
    check_nothing_alive();
    CHECK_EQ(hostacl_configure("devices", "1"), 0);
}

static void refused(uint64_t size, int code) {
    aclrtPhysicalMemProp prop = property(ACL_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST, 0);
    aclrtDrvMemHandle handle = UNTOUCHED;
    CHECK_EQ(aclrtMallocPhysical(&handle, size, &prop, 0), code);
    CHECK(handle == UNTOUCHED);
}

static void test_sizes(void) {
    start(NULL);
    refused(MIB, ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    refused((uint64_t)1 << 50, ACL_ERROR_RT_MEMORY_ALLOCATION);
    check_nothing_alive();
}

/* A NUMA node needs a context and must exist. */
static void test_numa(void) {
    aclrtPhysicalMemProp prop = property(ACL_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST_NUMA, 0), back;
    aclrtDrvMemHandle handle = UNTOUCHED;
    start(NULL);
    CHECK_EQ(aclrtMallocPhysical(&handle, PAGE, &prop, 0), ACL_ERROR_RT_CONTEXT_NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMallocPhysical(&handle, PAGE, &prop, 0));
    OK(aclrtMemGetAllocationPropertiesFromHandle(handle, &back));
    CHECK_EQ(back.location.type, ACL_MEM_LOCATION_TYPE_HOST_NUMA);
    CHECK_EQ(back.location.id, 0);
    OK(aclrtFreePhysical(handle));
    prop.location.id = 4000;
    CHECK_EQ(aclrtMallocPhysical(&handle, PAGE, &prop, 0), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

static uint64_t get_access(void *at, int type, uint32_t id) {
    aclrtMemLocation location = {.id = id, .type = (aclrtMemLocationType)type};
    uint64_t flag = 77;
    int code = aclrtMemGetAccess(at, &location, &flag);
    return code ? (uint64_t)code : flag;
}

/* The host touches the memory at its address; copies see the same; it costs no device memory and outlives devices. */
static void test_mapping(void) {
    aclrtPhysicalMemProp prop = property(ACL_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST, 0);
    aclrtMemAccessDesc desc = {.flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE,
                               .location = {.id = 1, .type = ACL_MEM_LOCATION_TYPE_DEVICE}};
    aclrtPtrAttributes shown;
    aclrtDrvMemHandle handle = NULL;
    void *block = NULL;
    start(NULL);
    OK(aclrtSetDevice(0));
    uint64_t before = free_bytes(ACL_HBM_MEM);
    OK(aclrtMallocPhysical(&handle, 2 * PAGE, &prop, 0));
    CHECK_EQ(free_bytes(ACL_HBM_MEM), before);
    CHECK_EQ(live_now().handles, 1);
    void *at = range(4 * PAGE);
    OK(aclrtMapMem(at, 2 * PAGE, 0, handle, 0));
    OK(aclrtMapMem(plus(at, 2 * PAGE), 2 * PAGE, 0, handle, 0));
    OK(aclrtPointerGetAttributes(at, &shown));
    CHECK_EQ(shown.location.type, ACL_MEM_LOCATION_TYPE_HOST);
    CHECK_EQ(shown.location.id, 0);
    CHECK_EQ(shown.pageSize, 4096);
    volatile uint8_t *bytes = at;
    CHECK_EQ(bytes[PAGE], 0);
    bytes[PAGE] = 5;
    CHECK_EQ(bytes[3 * PAGE], 5);
    CHECK_EQ(peek(plus(at, PAGE)), 5);
    OK(aclrtMalloc(&block, PAGE, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemcpy(block, PAGE, plus(at, PAGE), PAGE, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK_EQ(peek(block), 5);
    OK(poke(plus(block, 3), 6));
    OK(aclrtMemcpy(at, PAGE, block, PAGE, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_EQ(bytes[3], 6);
    CHECK_EQ(get_access(at, ACL_MEM_LOCATION_TYPE_HOST, 0), 3);
    CHECK_EQ(get_access(at, ACL_MEM_LOCATION_TYPE_DEVICE, 1), 0);
    OK(aclrtMemSetAccess(at, 2 * PAGE, &desc, 1));
    CHECK_EQ(get_access(at, ACL_MEM_LOCATION_TYPE_DEVICE, 1), 3);
    desc.location.type = ACL_MEM_LOCATION_TYPE_HOST;
    OK(aclrtMemSetAccess(at, 2 * PAGE, &desc, 1));
    OK(aclrtResetDevice(0));
    CHECK_EQ(bytes[3], 6);
    CHECK_EQ(live_now().mappings, 2);
    CHECK_EQ(hostacl_configure("devices", "1"), ACL_ERROR_RELATIVE_RESOURCE_NOT_CLEARED);
    OK(aclrtUnmapMem(at));
    OK(aclrtFreePhysical(handle));
    CHECK_EQ(bytes[2 * PAGE + 3], 6);
    OK(aclrtUnmapMem(plus(at, 2 * PAGE)));
    OK(aclrtReleaseMemAddress(at));
    check_nothing_alive();
}

/* Host and device memory do not mix in one range. */
static void test_range_is_bound(void) {
    aclrtPhysicalMemProp prop = property(ACL_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST, 0);
    aclrtDrvMemHandle host = NULL;
    start(NULL);
    OK(aclrtMallocPhysical(&host, PAGE, &prop, 0));
    aclrtDrvMemHandle device = physical(0, PAGE);
    void *at = range(2 * PAGE);
    OK(aclrtMapMem(at, PAGE, 0, host, 0));
    CHECK_EQ(aclrtMapMem(plus(at, PAGE), PAGE, 0, device, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtUnmapMem(at));
    OK(aclrtFreePhysical(host));
    OK(aclrtFreePhysical(device));
    OK(aclrtReleaseMemAddress(at));
    check_nothing_alive();
}

/* A reset of the runtime takes host handles and their mappings too. */
static void test_reset(void) {
    aclrtPhysicalMemProp prop = property(ACL_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST, 0);
    aclrtDrvMemHandle host = NULL;
    start(NULL);
    OK(aclrtMallocPhysical(&host, PAGE, &prop, 0));
    void *at = range(PAGE);
    OK(aclrtMapMem(at, PAGE, 0, host, 0));
    OK(hostacl_reset());
    CHECK_EQ(aclrtFreePhysical(host), ACL_ERROR_RT_PARAM_INVALID);
    check_nothing_alive();
}

int main(void) {
    test_attributes();
    test_sizes();
    test_numa();
    test_mapping();
    test_range_is_bound();
    test_reset();
    start(NULL);
    check_nothing_alive();
    return check_done();
}
