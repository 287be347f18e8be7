/* Reserved ranges: arguments, sizes, wished addresses, what a range costs, release. */
#include "virtual_memory.h"

#define TIB ((uint64_t)1 << 40)

static void test_arguments(void) {
    void *at = UNTOUCHED;
    start(NULL);
    CHECK_EQ(aclrtReserveMemAddress(NULL, PAGE, 0, NULL, 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtReserveMemAddress(&at, 0, 0, NULL, 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtReserveMemAddress(&at, PAGE, 0, NULL, 2), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtReserveMemAddress(&at, PAGE, 0, NULL, UINT64_MAX), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtReserveMemAddress(&at, PAGE, 1, NULL, 1), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtReserveMemAddress(&at, PAGE, PAGE, NULL, 1), ACL_ERROR_RT_PARAM_INVALID);
    CHECK(at == UNTOUCHED);
    CHECK_EQ(aclrtReserveMemAddress(&at, 64 * TIB, 0, NULL, 1), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK(at == NULL);
    at = UNTOUCHED;
    CHECK_EQ(aclrtReserveMemAddress(&at, UINT64_MAX, 0, NULL, 1), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK(at == NULL);
    check_nothing_alive();
}

/* Needs no device; any size works, small ones cost a unit of 2 MiB, flags 0 and 1 are alike. */
static void test_sizes(void) {
    static const uint64_t sizes[] = {1, 512, PAGE - 1, PAGE, PAGE + 1, 3 * MIB, 600 * MIB, GIB, 3 * GIB + 1};
    start(NULL);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (uint64_t flags = 0; flags < 2; flags++) {
            void *at = NULL;
            OK(aclrtReserveMemAddress(&at, sizes[i], 0, NULL, flags));
            CHECK_EQ((uintptr_t)at % (sizes[i] >= GIB ? GIB : PAGE), 0);
            CHECK_EQ(live_now().reservations, 1);
            CHECK_EQ(live_now().reserved_bytes, (sizes[i] + PAGE - 1) / PAGE * PAGE);
            OK(aclrtReleaseMemAddress(at));
        }
    }
    check_nothing_alive();
}

static void test_ranges_are_apart(void) {
    enum { COUNT = 100 };
    void *at[COUNT];
    start(NULL);
    for (int i = 0; i < COUNT; i++)
        at[i] = range((uint64_t)(i % 7 + 1) * PAGE);
    for (int i = 0; i < COUNT; i++) {
        for (int k = 0; k < COUNT; k++)
            CHECK(i == k || (uintptr_t)at[k] - (uintptr_t)at[i] >= (uint64_t)(i % 7 + 1) * PAGE);
    }
    CHECK_EQ(live_now().reservations, COUNT);
    for (int i = 0; i < COUNT; i++)
        OK(aclrtReleaseMemAddress(at[(i * 37) % COUNT]));
    check_nothing_alive();
}

/* A range of 1 TiB costs no device memory; the whole window can be reserved, then nothing more. */
static void test_large(void) {
    hostacl_live_t live;
    start(NULL);
    OK(aclrtSetDevice(0));
    uint64_t before = free_bytes(ACL_HBM_MEM);
    void *window = NULL;
    uint64_t bytes = 8 * TIB;
    while (aclrtReserveMemAddress(&window, bytes, 0, NULL, 1))
        bytes /= 2;
    CHECK(bytes >= 8 * GIB);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), before);
    OK(hostacl_live(&live));
    CHECK_EQ(live.devices[0].committed_bytes, 0);
    void *more = UNTOUCHED;
    CHECK_EQ(aclrtReserveMemAddress(&more, bytes, 0, NULL, 1), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK(more == NULL);
    OK(aclrtReleaseMemAddress(window));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

/* A wished address: multiple of the next power of two of the size, of 1 GiB above 512 MiB. */
static void test_wishes(void) {
    void *first = range(8 * GIB);
    OK(aclrtReleaseMemAddress(first));
    void *at = UNTOUCHED;
    OK(aclrtReserveMemAddress(&at, 2 * GIB, 0, plus(first, GIB), 1));
    CHECK(at == plus(first, GIB));
    void *other = UNTOUCHED;
    CHECK_EQ(aclrtReserveMemAddress(&other, PAGE, 0, plus(first, 2 * GIB), 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK(other == plus(first, 2 * GIB));
    CHECK_EQ(aclrtReserveMemAddress(&other, 2 * GIB, 0, first, 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK(other == first);
    OK(aclrtReleaseMemAddress(at));
    static const struct {
        uint64_t bytes, offset;
        bool good;
    } cases[] = {
        {PAGE, PAGE, true},           {1, PAGE, true},
        {PAGE, 4096, false},          {PAGE, MIB, false},
        {2 * PAGE, PAGE, false},      {2 * PAGE, 2 * PAGE, true},
        {3 * PAGE, 2 * PAGE, false},  {3 * PAGE, 4 * PAGE, true},
        {512 * MIB, 512 * MIB, true}, {513 * MIB, 512 * MIB, false},
        {600 * MIB, GIB, true},       {3 * GIB, GIB, true},
        {3 * GIB, GIB / 2, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        void *wish = plus(first, cases[i].offset);
        at = UNTOUCHED;
        int code = aclrtReserveMemAddress(&at, cases[i].bytes, 0, wish, 1);
        CHECK_EQ(code, cases[i].good ? ACL_SUCCESS : ACL_ERROR_RT_PARAM_INVALID);
        CHECK(at == (cases[i].good ? wish : UNTOUCHED));
        if (!code)
            OK(aclrtReleaseMemAddress(at));
    }
    at = UNTOUCHED;
    CHECK_EQ(aclrtReserveMemAddress(&at, PAGE, 0, (void *)(uintptr_t)(2 * GIB), 1), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtReserveMemAddress(&at, PAGE, 0, (void *)(uintptr_t)-PAGE, 1), ACL_ERROR_RT_PARAM_INVALID);
    CHECK(at == UNTOUCHED);
    check_nothing_alive();
}

/* A block and a reserved range never share an address, also with a wish. */
static void test_blocks_are_in_the_way(void) {
    void *block = NULL, *at = NULL;
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, 3 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_EQ(aclrtReserveMemAddress(&at, PAGE, 0, plus(block, PAGE), 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtFree(block));
    OK(aclrtReserveMemAddress(&at, PAGE, 0, block, 1));
    CHECK_EQ(aclrtFree(at), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtReleaseMemAddress(at));
    OK(aclrtResetDevice(0));
}

static void test_release(void) {
    static char host[64];
    void *block = NULL;
    start(NULL);
    OK(aclrtSetDevice(0));
    void *at = range(4 * PAGE);
    CHECK_EQ(aclrtReleaseMemAddress(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtReleaseMemAddress(plus(at, PAGE)), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtReleaseMemAddress(plus(at, 1)), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtReleaseMemAddress(host), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtMalloc(&block, PAGE, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_EQ(aclrtReleaseMemAddress(block), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(live_now().reservations, 1);
    OK(aclrtReleaseMemAddress(at));
    CHECK_EQ(aclrtReleaseMemAddress(at), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtFree(block));
    OK(aclrtResetDevice(0));
}

/* Ranges outlive devices and keep the options from changing until they are released. */
static void test_outlives_device(void) {
    start(NULL);
    OK(aclrtSetDevice(0));
    void *at = range(PAGE);
    OK(aclrtResetDevice(0));
    CHECK_EQ(hostacl_configure("devices", "4"), ACL_ERROR_RELATIVE_RESOURCE_NOT_CLEARED);
    OK(aclrtReleaseMemAddress(at));
    OK(hostacl_configure("devices", "4"));
    range(PAGE);
    OK(hostacl_reset());
    check_nothing_alive();
}

/* The far window: whole GiB, addresses of its own, the same rules otherwise. */
static void test_far(void) {
    void *at = UNTOUCHED, *other = UNTOUCHED;
    start(NULL);
    CHECK_EQ(aclrtReserveMemAddressNoUCMemory(NULL, GIB, 0, NULL, 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtReserveMemAddressNoUCMemory(&at, 0, 0, NULL, 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtReserveMemAddressNoUCMemory(&at, PAGE, 0, NULL, 1), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtReserveMemAddressNoUCMemory(&at, GIB + PAGE, 0, NULL, 1), ACL_ERROR_RT_PARAM_INVALID);
    CHECK(at == UNTOUCHED);
    OK(aclrtReserveMemAddressNoUCMemory(&at, 2 * GIB, 0, NULL, 1));
    CHECK((uintptr_t)at >= 40 * TIB && (uintptr_t)at < 224 * TIB && (uintptr_t)at % GIB == 0);
    CHECK_EQ(aclrtReserveMemAddressNoUCMemory(&other, GIB, 0, plus(at, GIB), 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtReserveMemAddressNoUCMemory(&other, 90 * TIB, 0, NULL, 0));
    aclrtDrvMemHandle handle = physical(0, PAGE);
    OK(aclrtSetDevice(0));
    OK(aclrtMapMem(plus(at, 3 * PAGE), PAGE, 0, handle, 0));
    OK(poke(plus(at, 4 * PAGE - 1), 77));
    CHECK_EQ(peek(plus(at, 4 * PAGE - 1)), 77);
    CHECK_EQ(poke(plus(at, 4 * PAGE), 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtUnmapMem(plus(at, 3 * PAGE)));
    OK(aclrtFreePhysical(handle));
    OK(aclrtReleaseMemAddress(at));
    OK(aclrtReleaseMemAddress(other));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

/* First addresses chosen by a test, also high ones and such that are no multiple of 1 GiB. */
static void test_chosen_addresses(void) {
    static const char *const firsts[] = {"0x123456000", "0x8000000000000000", "0xffff800000001000"};
    for (size_t i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++) {
        start("first_address", firsts[i], NULL);
        OK(aclrtSetDevice(0));
        void *at = range(5 * PAGE);
        CHECK_EQ((uintptr_t)at % PAGE, 0);
        aclrtDrvMemHandle handle = physical(0, PAGE);
        OK(aclrtMapMem(plus(at, 4 * PAGE), PAGE, 0, handle, 0));
        OK(poke(plus(at, 5 * PAGE - 1), 9));
        CHECK_EQ(peek(plus(at, 5 * PAGE - 1)), 9);
        OK(aclrtUnmapMem(plus(at, 4 * PAGE)));
        OK(aclrtFreePhysical(handle));
        OK(aclrtReleaseMemAddress(at));
        OK(aclrtResetDevice(0));
        check_nothing_alive();
    }
}

int main(void) {
    test_arguments();
    test_sizes();
    test_ranges_are_apart();
    test_large();
    start(NULL);
    test_wishes();
    test_blocks_are_in_the_way();
    test_release();
    test_outlives_device();
    test_far();
    test_chosen_addresses();
    start(NULL);
    check_nothing_alive();
    return check_done();
}
