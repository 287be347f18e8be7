/* Mappings: where they may lie, what they show, who may access them, how they end. */
#include <pthread.h>

#include "virtual_memory.h"

static void set_up(void) {
    start("profile", "strict", NULL);
    OK(aclrtSetDevice(0));
}

static void tear_down(void) {
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

static void test_arguments(void) {
    set_up();
    void *at = range(PAGE);
    aclrtDrvMemHandle handle = physical(0, PAGE);
    CHECK_EQ(aclrtMapMem(NULL, PAGE, 0, handle, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMapMem(at, PAGE, 0, NULL, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMapMem(at, 0, 0, handle, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMapMem(at, PAGE, 0, handle, 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMapMem(at, PAGE, PAGE, handle, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMapMem(at, PAGE, 1, handle, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtUnmapMem(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(live_now().mappings, 0);
    OK(aclrtFreePhysical(handle));
    OK(aclrtReleaseMemAddress(at));
    tear_down();
}

/* A mapping by another link shows the same bytes at another place; a link of a handle is advice. */
static void test_links(void) {
    set_up();
    void *at = range(4 * PAGE);
    aclrtDrvMemHandle handle = physical(0, PAGE);
    OK(aclrtMapMem(at, PAGE, 0, handle, 0));
    OK(poke(at, 5));
    OK(aclrtMemMapSelectedLink(plus(at, PAGE), PAGE, at, ACL_RT_MEM_LINK_IDX_1));
    CHECK_EQ(peek(plus(at, PAGE)), 5);
    OK(aclrtFreePhysical(handle));
    OK(aclrtMemMapSelectedLink(plus(at, 2 * PAGE), PAGE, plus(at, PAGE), ACL_RT_MEM_LINK_IDX_0));
    OK(aclrtUnmapMem(at));
    OK(aclrtUnmapMem(plus(at, PAGE)));
    CHECK_EQ(peek(plus(at, 2 * PAGE)), 5);
    CHECK_EQ(aclrtMemMapSelectedLink(NULL, PAGE, at, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemMapSelectedLink(at, PAGE, NULL, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemMapSelectedLink(at, 0, plus(at, 2 * PAGE), 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemMapSelectedLink(at, PAGE, plus(at, 2 * PAGE), 2), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemMapSelectedLink(at, PAGE, plus(at, PAGE), 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemMapSelectedLink(at, PAGE, plus(at, 2 * PAGE + 64), 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemMapSelectedLink(plus(at, 2 * PAGE), PAGE, plus(at, 2 * PAGE), 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemMapSelectedLink(at, 2 * PAGE, plus(at, 2 * PAGE), 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtUnmapMem(plus(at, 2 * PAGE)));
    OK(aclrtReleaseMemAddress(at));
    handle = physical(0, PAGE);
    OK(aclrtMemMapSetLink(handle, ACL_RT_MEM_ACCESS_LINK_HCCS));
    CHECK_EQ(aclrtMemMapSetLink(handle, (aclrtMemLinkType)4), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemMapSetLink(NULL, ACL_RT_MEM_ACCESS_LINK_SIO), ACL_ERROR_INVALID_PARAM);
    OK(aclrtFreePhysical(handle));
    CHECK_EQ(aclrtMemMapSetLink(handle, ACL_RT_MEM_ACCESS_LINK_SIO), ACL_ERROR_RT_INVALID_HANDLE);
    tear_down();
}

/* A place must be aligned, inside one range and free; a refused map changes nothing. */
static void test_places(void) {
    void *block = NULL;
    set_up();
    void *at = range(4 * PAGE), *next = range(4 * PAGE);
    aclrtDrvMemHandle one = physical(0, PAGE), two = physical(0, 2 * PAGE);
    OK(aclrtMalloc(&block, 2 * PAGE, ACL_MEM_MALLOC_HUGE_ONLY));
    void *const bad[] = {plus(at, MIB),      plus(at, 1),      plus(at, 4 * PAGE - MIB), block,
                         (void *)check_done, (void *)PAGE,     (void *)(uintptr_t)-PAGE, plus(at, (uint64_t)1 << 50),
                         plus(at, 4 * GIB),  plus(block, PAGE)};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_EQ(aclrtMapMem(bad[i], PAGE, 0, one, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMapMem(plus(at, 3 * PAGE), 2 * PAGE, 0, two, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(live_now().mappings, 0);
    OK(aclrtMapMem(plus(at, PAGE), PAGE, 0, one, 0));
    CHECK_EQ(aclrtMapMem(plus(at, PAGE), PAGE, 0, one, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMapMem(at, 2 * PAGE, 0, two, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMapMem(plus(at, PAGE), 2 * PAGE, 0, two, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(live_now().mappings, 1);
    OK(aclrtMapMem(plus(at, 2 * PAGE), 2 * PAGE, 0, two, 0));
    OK(aclrtMapMem(at, PAGE, 0, one, 0));
    CHECK_EQ(aclrtUnmapMem(plus(at, 3 * PAGE)), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtUnmapMem(plus(at, 64)), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtUnmapMem(next), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtUnmapMem(block), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtFree(at), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(live_now().mappings, 3);
    OK(aclrtUnmapMem(at));
    CHECK_EQ(aclrtUnmapMem(at), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtUnmapMem(plus(at, PAGE)));
    OK(aclrtUnmapMem(plus(at, 2 * PAGE)));
    OK(aclrtFreePhysical(one));
    OK(aclrtFreePhysical(two));
    OK(aclrtReleaseMemAddress(at));
    OK(aclrtReleaseMemAddress(next));
    CHECK_EQ(aclrtMapMem(at, PAGE, 0, one, 0), ACL_ERROR_RT_INVALID_HANDLE);
    OK(aclrtFree(block));
    tear_down();
}

static void test_after_release(void) {
    set_up();
    void *at = range(PAGE);
    aclrtDrvMemHandle handle = physical(0, PAGE);
    OK(aclrtReleaseMemAddress(at));
    CHECK_EQ(aclrtMapMem(at, PAGE, 0, handle, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtFreePhysical(handle));
    tear_down();
}

/* Neighbouring ranges do not join: a mapping may not cross from one into the other. */
static void test_two_ranges(void) {
    set_up();
    void *room = range(2 * GIB), *low = NULL, *high = NULL;
    OK(aclrtReleaseMemAddress(room));
    OK(aclrtReserveMemAddress(&low, PAGE, 0, room, 1));
    OK(aclrtReserveMemAddress(&high, PAGE, 0, plus(room, PAGE), 1));
    aclrtDrvMemHandle handle = physical(0, 2 * PAGE);
    CHECK_EQ(aclrtMapMem(low, 2 * PAGE, 0, handle, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtFreePhysical(handle));
    OK(aclrtReleaseMemAddress(low));
    OK(aclrtReleaseMemAddress(high));
    tear_down();
}

/* Strict demands the size of the handle, card maps the front of it; a larger size is refused by both. */
static void test_sizes(void) {
    for (int card = 0; card < 2; card++) {
        start("profile", card ? "card" : "strict", NULL);
        OK(aclrtSetDevice(0));
        void *at = range(4 * PAGE);
        aclrtDrvMemHandle handle = physical(0, 2 * PAGE);
        CHECK_EQ(aclrtMapMem(at, MIB, 0, handle, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
        CHECK_EQ(aclrtMapMem(at, PAGE + MIB, 0, handle, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
        CHECK_EQ(aclrtMapMem(at, 3 * PAGE, 0, handle, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
        CHECK_EQ(aclrtMapMem(at, PAGE, 0, handle, 0), card ? ACL_SUCCESS : ACL_ERROR_RT_DRV_INTERNAL_ERROR);
        OK(aclrtMapMem(plus(at, 2 * PAGE), 2 * PAGE, 0, handle, 0));
        OK(poke(plus(at, 2 * PAGE + 5), 42));
        if (card) {
            CHECK_EQ(peek(plus(at, 5)), 42);
            CHECK_EQ(poke(plus(at, PAGE), 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
            OK(aclrtUnmapMem(at));
        }
        OK(aclrtUnmapMem(plus(at, 2 * PAGE)));
        OK(aclrtFreePhysical(handle));
        OK(aclrtReleaseMemAddress(at));
        OK(aclrtResetDevice(0));
        check_nothing_alive();
    }
}

/* One handle at several addresses shows the same bytes, and keeps them while it is mapped nowhere. */
static void test_same_bytes(void) {
    enum { PLACES = 5 };
    set_up();
    void *at = range(PLACES * 3 * PAGE);
    aclrtDrvMemHandle handle = physical(0, 3 * PAGE), other = physical(0, 3 * PAGE);
    for (uint64_t i = 0; i < PLACES; i++)
        OK(aclrtMapMem(plus(at, i * 3 * PAGE), 3 * PAGE, 0, handle, 0));
    for (uint64_t i = 0; i < PLACES; i++) {
        OK(poke(plus(at, i * 3 * PAGE + i * MIB + 7), (uint8_t)(i + 1)));
        for (uint64_t k = 0; k < PLACES; k++)
            CHECK_EQ(peek(plus(at, k * 3 * PAGE + i * MIB + 7)), i + 1);
    }
    for (uint64_t i = 0; i < PLACES; i++)
        OK(aclrtUnmapMem(plus(at, i * 3 * PAGE)));
    OK(aclrtMapMem(at, 3 * PAGE, 0, other, 0));
    OK(aclrtMemset(at, 3 * PAGE, 0x99, 3 * PAGE));
    OK(aclrtMapMem(plus(at, 6 * PAGE), 3 * PAGE, 0, handle, 0));
    CHECK_EQ(peek(plus(at, 6 * PAGE + 3 * MIB + 7)), 4);
    CHECK_EQ(peek(plus(at, 6 * PAGE + 3 * MIB + 8)), 0);
    OK(aclrtUnmapMem(plus(at, 6 * PAGE)));
    OK(aclrtUnmapMem(at));
    CHECK_EQ(poke(at, 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtMapMem(at, 3 * PAGE, 0, handle, 0));
    CHECK_EQ(peek(plus(at, 4 * MIB + 7)), 5);
    OK(aclrtUnmapMem(at));
    OK(aclrtFreePhysical(handle));
    OK(aclrtFreePhysical(other));
    OK(aclrtReleaseMemAddress(at));
    tear_down();
}

/* New memory shows nothing of what its pages held before. */
static void test_fresh_bytes(void) {
    set_up();
    void *at = range(2 * PAGE);
    for (int i = 0; i < 3; i++) {
        aclrtDrvMemHandle handle = physical(0, 2 * PAGE);
        OK(aclrtMapMem(at, 2 * PAGE, 0, handle, 0));
        CHECK_EQ(peek(plus(at, 2 * PAGE - 1)), 0);
        OK(aclrtMemset(at, 2 * PAGE, 0x77, 2 * PAGE));
        OK(aclrtUnmapMem(at));
        OK(aclrtFreePhysical(handle));
    }
    OK(aclrtReleaseMemAddress(at));
    tear_down();
}

/* Copies and sets run across neighbouring mappings and stop at holes, in one check before any byte moves. */
static void test_ranges_of_mappings(void) {
    enum { COUNT = 6 };
    static uint8_t in[COUNT * PAGE], out[COUNT * PAGE];
    aclrtDrvMemHandle handles[COUNT];
    set_up();
    void *at = range(COUNT * PAGE);
    for (uint64_t i = 0; i < COUNT; i++) {
        handles[i] = physical(0, PAGE);
        OK(aclrtMapMem(plus(at, (COUNT - 1 - i) * PAGE), PAGE, 0, handles[i], 0));
    }
    for (size_t i = 0; i < sizeof(in); i++)
        in[i] = (uint8_t)(i >> 3 ^ i >> 17);
    OK(aclrtMemcpy(plus(at, 5), sizeof(in) - 9, in, sizeof(in) - 9, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtMemcpy(out, sizeof(out), plus(at, 5), sizeof(in) - 9, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(!memcmp(in, out, sizeof(in) - 9));
    OK(aclrtMemset(plus(at, PAGE - 10), 20, 0xab, 20));
    CHECK_EQ(peek(plus(at, PAGE - 10)), 0xab);
    CHECK_EQ(peek(plus(at, PAGE + 9)), 0xab);
    OK(aclrtUnmapMem(plus(at, 3 * PAGE)));
    CHECK_EQ(aclrtMemcpy(out, sizeof(out), at, sizeof(out), ACL_MEMCPY_DEVICE_TO_HOST),
             ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemset(at, sizeof(in), 1, 3 * PAGE + 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(peek(plus(at, PAGE - 10)), 0xab);
    OK(aclrtMemset(at, sizeof(in), 1, 3 * PAGE));
    for (uint64_t i = 0; i < COUNT; i++) {
        if (i != 3)
            OK(aclrtUnmapMem(plus(at, i * PAGE)));
        OK(aclrtFreePhysical(handles[i]));
    }
    OK(aclrtReleaseMemAddress(at));
    tear_down();
}

/* A range belongs to the device that was mapped first, for its whole life. */
static void test_first_device(void) {
    set_up();
    OK(aclrtSetDevice(1));
    void *at = range(2 * PAGE);
    aclrtDrvMemHandle zero = physical(0, PAGE), one = physical(1, PAGE);
    OK(aclrtMapMem(at, PAGE, 0, zero, 0));
    CHECK_EQ(aclrtMapMem(plus(at, PAGE), PAGE, 0, one, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtUnmapMem(at));
    CHECK_EQ(aclrtMapMem(at, PAGE, 0, one, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtReleaseMemAddress(at));
    at = range(2 * PAGE);
    OK(aclrtMapMem(at, PAGE, 0, one, 0));
    OK(aclrtUnmapMem(at));
    OK(aclrtFreePhysical(zero));
    OK(aclrtFreePhysical(one));
    OK(aclrtReleaseMemAddress(at));
    OK(aclrtResetDevice(1));
    tear_down();
}

static void test_release_while_mapped(void) {
    set_up();
    void *at = range(3 * GIB);
    aclrtDrvMemHandle handle = physical(0, PAGE);
    OK(aclrtMapMem(plus(at, 2 * GIB), PAGE, 0, handle, 0));
    CHECK_EQ(aclrtReleaseMemAddress(at), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(poke(plus(at, 2 * GIB), 3));
    CHECK_EQ(peek(plus(at, 2 * GIB)), 3);
    OK(aclrtFreePhysical(handle));
    CHECK_EQ(aclrtReleaseMemAddress(at), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtUnmapMem(plus(at, 2 * GIB)));
    OK(aclrtReleaseMemAddress(at));
    tear_down();
}

static void test_giant(void) {
    aclrtPhysicalMemProp prop = property(ACL_HBM_MEM_HUGE1G, ACL_MEM_LOCATION_TYPE_DEVICE, 0);
    aclrtPtrAttributes attributes;
    aclrtDrvMemHandle handle = NULL;
    start("pages_1g", "2", "profile", "strict", NULL);
    OK(aclrtSetDevice(0));
    void *at = range(3 * GIB);
    OK(aclrtMallocPhysical(&handle, GIB, &prop, 0));
    CHECK_EQ(aclrtMapMem(plus(at, PAGE), GIB, 0, handle, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMapMem(at, PAGE, 0, handle, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMapMem(at, 2 * GIB, 0, handle, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtMapMem(plus(at, GIB), GIB, 0, handle, 0));
    OK(aclrtMapMem(plus(at, 2 * GIB), GIB, 0, handle, 0));
    OK(poke(plus(at, 2 * GIB - 1), 31));
    CHECK_EQ(peek(plus(at, 3 * GIB - 1)), 31);
    OK(aclrtPointerGetAttributes(plus(at, GIB), &attributes));
    CHECK_EQ(attributes.pageSize, PAGE);
    OK(aclrtUnmapMem(plus(at, GIB)));
    OK(aclrtUnmapMem(plus(at, 2 * GIB)));
    OK(aclrtFreePhysical(handle));
    OK(aclrtReleaseMemAddress(at));
    tear_down();
}

static int set_access(void *at, uint64_t size, aclrtMemAccessFlags flags, int type, uint32_t id) {
    aclrtMemAccessDesc desc = {.flags = flags, .location = {.id = id, .type = (aclrtMemLocationType)type}};
    return aclrtMemSetAccess(at, size, &desc, 1);
}

static uint64_t get_access(void *at, int type, uint32_t id) {
    aclrtMemLocation location = {.id = id, .type = (aclrtMemLocationType)type};
    uint64_t flag = 77;
    int code = aclrtMemGetAccess(at, &location, &flag);
    return code ? (uint64_t)code : flag;
}

static void test_access(void) {
    aclrtMemAccessDesc both[2] = {{.flags = 3, .location = {.id = 1, .type = 1}},
                                  {.flags = 1, .location = {.id = 0, .type = 1}}};
    uint64_t flag = 77;
    set_up();
    void *at = range(2 * PAGE);
    aclrtDrvMemHandle handle = physical(0, PAGE);
    CHECK_EQ(get_access(at, 1, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtMapMem(at, PAGE, 0, handle, 0));
    CHECK_EQ(get_access(at, 1, 0), ACL_RT_MEM_ACCESS_FLAGS_READWRITE);
    CHECK_EQ(get_access(plus(at, 12345), 1, 0), ACL_RT_MEM_ACCESS_FLAGS_READWRITE);
    CHECK_EQ(get_access(at, 1, 1), ACL_RT_MEM_ACCESS_FLAGS_NONE);
    CHECK_EQ(get_access(at, 0, 0), ACL_RT_MEM_ACCESS_FLAGS_NONE);
    CHECK_EQ(get_access(at, 9, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(get_access(at, 1, 64), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(get_access(plus(at, PAGE), 1, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemGetAccess(NULL, &both[0].location, &flag), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemGetAccess(at, NULL, &flag), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemGetAccess(at, &both[0].location, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemSetAccess(NULL, PAGE, both, 1), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemSetAccess(at, PAGE, NULL, 1), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemSetAccess(at, PAGE, both, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(set_access(at, 0, 3, 1, 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(set_access(at, MIB, 3, 1, 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(set_access(at, 2 * PAGE, 3, 1, 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(set_access(plus(at, MIB), MIB, 3, 1, 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(set_access(at, PAGE, 1, 1, 1), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_EQ(set_access(at, PAGE, 0, 1, 1), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_EQ(set_access(at, PAGE, 3, 1, 2), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(set_access(at, PAGE, 3, 9, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(set_access(at, PAGE, 3, 0, 0), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_EQ(aclrtMemSetAccess(at, PAGE, both, 2), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_EQ(get_access(at, 1, 1), ACL_RT_MEM_ACCESS_FLAGS_NONE);
    OK(set_access(at, PAGE, 3, 1, 0));
    OK(set_access(at, PAGE, 3, 1, 1));
    OK(set_access(at, PAGE, 3, 1, 1));
    CHECK_EQ(get_access(at, 1, 1), ACL_RT_MEM_ACCESS_FLAGS_READWRITE);
    OK(aclrtUnmapMem(at));
    CHECK_EQ(get_access(at, 1, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtMapMem(at, PAGE, 0, handle, 0));
    CHECK_EQ(get_access(at, 1, 1), ACL_RT_MEM_ACCESS_FLAGS_NONE);
    OK(aclrtUnmapMem(at));
    OK(aclrtFreePhysical(handle));
    OK(aclrtReleaseMemAddress(at));
    tear_down();
}

/* A mapping without access takes its place, but nobody touches it before a right is given. */
static void test_no_access(void) {
    set_up();
    void *at = range(2 * PAGE);
    aclrtDrvMemHandle handle = physical(0, PAGE);
    CHECK_EQ(aclrtMemMapNoAccess(at, PAGE, 1, handle, 0), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtMemMapNoAccess(at, PAGE, 0, handle, 0));
    CHECK_EQ(get_access(at, 1, 0), ACL_RT_MEM_ACCESS_FLAGS_NONE);
    CHECK_EQ(poke(at, 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMapMem(at, PAGE, 0, handle, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(set_access(at, PAGE, 3, 1, 0));
    OK(poke(at, 6));
    CHECK_EQ(peek(at), 6);
    OK(aclrtMapMem(plus(at, PAGE), PAGE, 0, handle, 0));
    CHECK_EQ(peek(plus(at, PAGE)), 6);
    OK(aclrtUnmapMem(at));
    OK(aclrtUnmapMem(plus(at, PAGE)));
    OK(aclrtFreePhysical(handle));
    OK(aclrtReleaseMemAddress(at));
    tear_down();
}

static void check_attributes(const void *at, int type, uint32_t id, uint32_t page) {
    aclrtPtrAttributes attributes;
    OK(aclrtPointerGetAttributes(at, &attributes));
    CHECK_EQ(attributes.location.type, type);
    CHECK_EQ(attributes.location.id, id);
    CHECK_EQ(attributes.pageSize, page);
}

/* A range never mapped shows as host memory, after the first map as device memory, as a whole and until released. */
static void test_pointer_attributes(void) {
    aclrtPtrAttributes attributes;
    set_up();
    OK(aclrtSetDevice(1));
    void *at = range(2 * PAGE);
    aclrtDrvMemHandle handle = physical(1, PAGE);
    check_attributes(at, ACL_MEM_LOCATION_TYPE_HOST, 0, 4096);
    OK(aclrtMapMem(at, PAGE, 0, handle, 0));
    check_attributes(plus(at, 77), ACL_MEM_LOCATION_TYPE_DEVICE, 1, PAGE);
    check_attributes(plus(at, 2 * PAGE - 1), ACL_MEM_LOCATION_TYPE_DEVICE, 1, PAGE);
    OK(aclrtUnmapMem(at));
    OK(aclrtFreePhysical(handle));
    OK(aclrtResetDevice(1));
    check_attributes(at, ACL_MEM_LOCATION_TYPE_DEVICE, 1, PAGE);
    OK(aclrtReleaseMemAddress(at));
    CHECK_EQ(aclrtPointerGetAttributes(at, &attributes), ACL_ERROR_RT_PARAM_INVALID);
    tear_down();
}

static void no_address_range(void *at) {
    void *base = UNTOUCHED;
    size_t size = 77;
    CHECK_EQ(aclrtMemGetAddressRange(at, &base, &size), ACL_ERROR_RT_PARAM_INVALID);
    CHECK(base == NULL);
    CHECK_EQ(size, 77);
}

static void is_address_range(void *at, void *wanted, uint64_t bytes) {
    void *base = UNTOUCHED, *alone = UNTOUCHED;
    size_t size = 77, size_alone = 77;
    OK(aclrtMemGetAddressRange(at, &base, &size));
    OK(aclrtMemGetAddressRange(at, &alone, NULL));
    OK(aclrtMemGetAddressRange(at, NULL, &size_alone));
    CHECK(base == wanted && alone == wanted);
    CHECK_EQ(size, bytes);
    CHECK_EQ(size_alone, bytes);
}

static void test_address_range(void) {
    static char host[64];
    void *block = NULL, *base = UNTOUCHED;
    size_t size = 77;
    set_up();
    void *at = range(8 * PAGE);
    aclrtDrvMemHandle handle = physical(0, 3 * PAGE);
    CHECK_EQ(aclrtMemGetAddressRange(NULL, &base, &size), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemGetAddressRange(at, NULL, NULL), ACL_ERROR_RT_PARAM_INVALID);
    CHECK(base == UNTOUCHED && size == 77);
    no_address_range(at);
    no_address_range(host);
    OK(aclrtMapMem(plus(at, PAGE), 3 * PAGE, 0, handle, 0));
    is_address_range(plus(at, 3 * PAGE + 9), plus(at, PAGE), 3 * PAGE);
    no_address_range(at);
    no_address_range(plus(at, 4 * PAGE));
    OK(aclrtUnmapMem(plus(at, PAGE)));
    no_address_range(plus(at, PAGE));
    OK(aclrtMalloc(&block, 5 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    is_address_range(plus(block, 5 * MIB), block, 6 * MIB);
    OK(aclrtFree(block));
    no_address_range(block);
    OK(aclrtMalloc(&block, 5000, ACL_MEM_MALLOC_NORMAL_ONLY));
    is_address_range(block, block, 8192);
    OK(aclrtFree(block));
    OK(aclrtFreePhysical(handle));
    OK(aclrtReleaseMemAddress(at));
    tear_down();
}

/* Many mappings at once, of one handle and of as many ranges; each is found, ends alone, and nothing is left. */
static void test_many(void) {
    enum { COUNT = 100000 };
    static void *ranges[COUNT];
    set_up();
    void *at = range(COUNT * PAGE);
    aclrtDrvMemHandle handle = physical(0, PAGE);
    for (uint64_t i = 0; i < COUNT; i++)
        aclrtMapMem(plus(at, (i * 7919 % COUNT) * PAGE), PAGE, 0, handle, 0);
    CHECK_EQ(live_now().mappings, COUNT);
    for (uint64_t i = 0; i < COUNT / 2; i++) {
        aclrtReserveMemAddress(&ranges[i], PAGE, 0, NULL, 1);
        aclrtMapMem(ranges[i], PAGE, 0, handle, 0);
    }
    CHECK_EQ(live_now().mappings, COUNT + COUNT / 2);
    OK(poke(plus(at, 54321 * PAGE + 5), 91));
    CHECK_EQ(peek(plus(at, 5)), 91);
    CHECK_EQ(peek(plus(ranges[COUNT / 2 - 1], 5)), 91);
    OK(aclrtUnmapMem(plus(at, 777 * PAGE)));
    CHECK_EQ(poke(plus(at, 777 * PAGE), 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(peek(plus(at, 778 * PAGE + 5)), 91);
    for (uint64_t i = 0; i < COUNT / 2; i++) {
        aclrtUnmapMem(ranges[i]);
        aclrtReleaseMemAddress(ranges[i]);
    }
    CHECK_EQ(live_now().mappings, COUNT - 1);
    CHECK_EQ(live_now().reservations, 1);
    OK(aclrtResetDevice(0));
    CHECK_EQ(live_now().mappings, 0);
    OK(aclrtReleaseMemAddress(at));
    check_nothing_alive();
}

/* Threads map, write, read and unmap in one range, each at its own place, over one handle of their own and a shared
 * one. */
struct worker {
    void *at;                 /* two pages of its own */
    aclrtDrvMemHandle shared; /* mapped by all */
    uint8_t mark;             /* what it writes */
};

static void *work(void *user) {
    const struct worker *worker = user;
    OK(aclrtSetDevice(0));
    for (int i = 0; i < 300; i++) {
        aclrtDrvMemHandle own = physical(0, PAGE);
        OK(aclrtMapMem(worker->at, PAGE, 0, own, 0));
        OK(aclrtMapMem(plus(worker->at, PAGE), PAGE, 0, worker->shared, 0));
        OK(poke(plus(worker->at, 100), worker->mark));
        OK(aclrtMemcpy(plus(worker->at, PAGE + worker->mark), 1, plus(worker->at, 100), 1,
                       ACL_MEMCPY_DEVICE_TO_DEVICE));
        CHECK_EQ(peek(plus(worker->at, PAGE + worker->mark)), worker->mark);
        OK(aclrtUnmapMem(worker->at));
        OK(aclrtFreePhysical(own));
        OK(aclrtUnmapMem(plus(worker->at, PAGE)));
    }
    OK(aclrtResetDevice(0));
    return NULL;
}

static void test_threads(void) {
    enum { THREADS = 4 };
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    set_up();
    void *at = range(2 * THREADS * PAGE);
    aclrtDrvMemHandle shared = physical(0, PAGE);
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.at = plus(at, 2 * i * PAGE), .shared = shared, .mark = (uint8_t)(i + 1)};
        pthread_create(&threads[i], NULL, work, &workers[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    OK(aclrtMapMem(at, PAGE, 0, shared, 0));
    for (uint64_t i = 0; i < THREADS; i++)
        CHECK_EQ(peek(plus(at, i + 1)), i + 1);
    OK(aclrtUnmapMem(at));
    OK(aclrtFreePhysical(shared));
    OK(aclrtReleaseMemAddress(at));
    tear_down();
}

/* While one thread copies through a mapping others unmap it, free its handle or reset the device: copies succeed or are
 * refused, and whatever they touched stays valid until they end. */
static atomic_bool stop;

static void *copy_all_the_time(void *user) {
    static uint8_t bytes[2][PAGE];
    OK(aclrtSetDevice(0));
    while (!atomic_load(&stop)) {
        int code = aclrtMemcpy(user, PAGE, bytes[0], PAGE, ACL_MEMCPY_HOST_TO_DEVICE);
        CHECK(!code || code == ACL_ERROR_RT_DRV_INTERNAL_ERROR || code == ACL_ERROR_RT_CONTEXT_NULL);
        code = aclrtMemcpy(bytes[1], PAGE, user, PAGE, ACL_MEMCPY_DEVICE_TO_HOST);
        CHECK(!code || code == ACL_ERROR_RT_DRV_INTERNAL_ERROR || code == ACL_ERROR_RT_CONTEXT_NULL);
    }
    return NULL;
}

static void test_unmap_under_copies(void) {
    pthread_t thread;
    set_up();
    void *at = range(PAGE);
    atomic_store(&stop, false);
    pthread_create(&thread, NULL, copy_all_the_time, at);
    for (int i = 0; i < 200; i++) {
        aclrtDrvMemHandle handle = physical(0, PAGE);
        OK(aclrtMapMem(at, PAGE, 0, handle, 0));
        OK(aclrtFreePhysical(handle));
        if (i % 20 == 19) {
            OK(aclrtResetDeviceForce(0));
            OK(aclrtSetDevice(0));
            CHECK_EQ(aclrtUnmapMem(at), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
        } else {
            OK(aclrtUnmapMem(at));
        }
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    OK(aclrtReleaseMemAddress(at));
    OK(aclrtResetDeviceForce(0));
    check_nothing_alive();
}

/* A driver without the feature refuses every call after the checks of the entry layer. */
static void test_feature_off(void) {
    aclrtPhysicalMemProp prop = property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, 0);
    aclrtDrvMemHandle handle = UNTOUCHED;
    void *at = UNTOUCHED;
    size_t unit = 0;
    start("virtual_memory", "off", NULL);
    CHECK_EQ(aclrtReserveMemAddress(&at, 0, 0, NULL, 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtReserveMemAddress(&at, PAGE, 0, NULL, 1), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_EQ(aclrtMallocPhysical(&handle, PAGE, &prop, 0), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_EQ(aclrtMemGetAllocationGranularity(&prop, 0, &unit), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_EQ(aclrtMapMem((void *)PAGE, PAGE, 0, (void *)16, 0), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_EQ(aclrtUnmapMem((void *)PAGE), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_EQ(aclrtReleaseMemAddress((void *)PAGE), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK(at == UNTOUCHED && handle == UNTOUCHED);
}

/* The report names what is alive. */
static void test_report(void) {
    static char report[4096];
    set_up();
    void *at = range(3 * PAGE);
    aclrtDrvMemHandle handle = physical(0, PAGE);
    OK(aclrtMapMem(plus(at, PAGE), PAGE, 0, handle, 0));
    hostacl_live_report(report, sizeof(report));
    CHECK(strstr(report, "reserved range 0x") && strstr(report, ": 6291456 bytes, 1 mappings\n"));
    CHECK(strstr(report, "handle 0x") && strstr(report, "2097152 bytes in 2 MiB pages, device 0, 1 references\n"));
    CHECK(strstr(report, "mapping 0x") && strstr(report, ": 2097152 bytes of handle 0x"));
    OK(aclrtUnmapMem(plus(at, PAGE)));
    OK(aclrtFreePhysical(handle));
    OK(aclrtReleaseMemAddress(at));
    tear_down();
}

int main(void) {
    test_arguments();
    test_links();
    test_places();
    test_after_release();
    test_two_ranges();
    test_sizes();
    test_same_bytes();
    test_fresh_bytes();
    test_ranges_of_mappings();
    test_first_device();
    test_release_while_mapped();
    test_giant();
    test_access();
    test_no_access();
    test_pointer_attributes();
    test_address_range();
    test_many();
    test_threads();
    test_unmap_under_copies();
    test_feature_off();
    test_report();
    start(NULL);
    check_nothing_alive();
    return check_done();
}
