/* Mode unified: host code reads and writes through device pointers, copies see the same bytes, what is gone faults, and
 * the host's limit of mappings is refused by name. */
#include <setjmp.h>
#include <signal.h>

#include "virtual_memory.h"

static sigjmp_buf out;

static void on_fault(int number) {
    siglongjmp(out, number);
}

/* Whether reading the byte faults. */
static bool faults(const void *at) {
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_NODEFER}, old_segv, old_bus;
    sigaction(SIGSEGV, &action, &old_segv);
    sigaction(SIGBUS, &action, &old_bus);
    volatile bool faulted = true;
    if (!sigsetjmp(out, 1)) {
        (void)*(const volatile char *)at;
        faulted = false;
    }
    sigaction(SIGSEGV, &old_segv, NULL);
    sigaction(SIGBUS, &old_bus, NULL);
    return faulted;
}

static void set_up(void) {
    start("mode", "unified", "profile", "strict", NULL);
    OK(aclrtSetDevice(0));
}

static void tear_down(void) {
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

/* Host code plays a kernel on a block: it sees copied bytes, and copies see what it wrote. */
static void block_of(uint64_t bytes, aclrtMemMallocPolicy policy) {
    void *block = NULL;
    set_up();
    OK(aclrtMallocAlign32(&block, bytes, policy));
    volatile uint8_t *kernel = block;
    CHECK_EQ(kernel[bytes - 1], 0);
    OK(poke(plus(block, bytes / 2), 6));
    CHECK_EQ(kernel[bytes / 2], 6);
    kernel[0] = 7;
    kernel[bytes - 1] = 8;
    CHECK_EQ(peek(block), 7);
    CHECK_EQ(peek(plus(block, bytes - 1)), 8);
    OK(aclrtFree(block));
    CHECK(faults(block) && faults(plus(block, bytes - 1)));
    CHECK_EQ(live_now().devices[0].committed_bytes, 0);
    tear_down();
}

static void test_mappings(void) {
    set_up();
    void *at = range(4 * PAGE);
    CHECK(faults(at));
    aclrtDrvMemHandle handle = physical(0, 2 * PAGE);
    OK(aclrtMapMem(at, 2 * PAGE, 0, handle, 0));
    OK(aclrtMapMem(plus(at, 2 * PAGE), 2 * PAGE, 0, handle, 0));
    volatile uint8_t *kernel = at;
    kernel[100] = 1;
    kernel[3 * PAGE] = 2;
    CHECK_EQ(kernel[2 * PAGE + 100], 1);
    CHECK_EQ(kernel[PAGE], 2);
    CHECK_EQ(peek(plus(at, 3 * PAGE)), 2);
    OK(aclrtUnmapMem(at));
    CHECK(faults(at) && faults(plus(at, 2 * PAGE - 1)));
    CHECK_EQ(kernel[3 * PAGE], 2);
    OK(aclrtMapMem(at, 2 * PAGE, 0, handle, 0));
    CHECK_EQ(kernel[100], 1);
    OK(aclrtUnmapMem(at));
    OK(aclrtUnmapMem(plus(at, 2 * PAGE)));
    OK(aclrtFreePhysical(handle));
    CHECK_EQ(live_now().devices[0].committed_bytes, 0);
    handle = physical(0, 2 * PAGE);
    OK(aclrtMapMem(at, 2 * PAGE, 0, handle, 0));
    CHECK_EQ(kernel[100], 0);
    OK(aclrtUnmapMem(at));
    OK(aclrtFreePhysical(handle));
    OK(aclrtReleaseMemAddress(at));
    tear_down();
}

static void test_no_access(void) {
    aclrtMemAccessDesc desc = {.flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE,
                               .location = {.id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE}};
    set_up();
    void *at = range(PAGE);
    aclrtDrvMemHandle handle = physical(0, PAGE);
    OK(aclrtMemMapNoAccess(at, PAGE, 0, handle, 0));
    CHECK(faults(at));
    OK(aclrtMemSetAccess(at, PAGE, &desc, 1));
    CHECK(!faults(at));
    OK(aclrtUnmapMem(at));
    CHECK(faults(at));
    OK(aclrtFreePhysical(handle));
    OK(aclrtReleaseMemAddress(at));
    tear_down();
}

/* A reset of the device takes its views away too. */
static void test_reset(void) {
    void *block = NULL;
    set_up();
    void *at = range(PAGE);
    aclrtDrvMemHandle handle = physical(0, PAGE);
    OK(aclrtMapMem(at, PAGE, 0, handle, 0));
    OK(aclrtMalloc(&block, PAGE, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(!faults(at) && !faults(block));
    OK(aclrtResetDevice(0));
    CHECK(faults(at) && faults(block));
    OK(aclrtReleaseMemAddress(at));
    check_nothing_alive();
}

#ifdef __SANITIZE_THREAD__
#define SANITIZED_THREADS true
#else
#define SANITIZED_THREADS false
#endif

/* Mappings run out before the host's limit; the refusal names it and leaves no trace; after an unmap there is room. */
static void test_limit(void) {
    unsigned long limit = 0;
    FILE *file = fopen("/proc/sys/vm/max_map_count", "r");
    if (!file || fscanf(file, "%lu", &limit) != 1 || limit > 200000 || SANITIZED_THREADS) {
        printf("limit of mappings not tested: vm.max_map_count is %lu; a thread sanitizer needs mappings of its own\n",
               limit);
        if (file)
            fclose(file);
        return;
    }
    fclose(file);
    set_up();
    void *at = range(limit * 2 * PAGE), *block = UNTOUCHED;
    aclrtDrvMemHandle handle = physical(0, PAGE);
    uint64_t count = 0;
    int code = 0;
    while (!(code = aclrtMapMem(plus(at, count * 2 * PAGE), PAGE, 0, handle, 0)))
        count++;
    CHECK_EQ(code, ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK(strstr(aclGetRecentErrMsg(), "vm.max_map_count"));
    CHECK(count > limit / 4 && count < limit);
    CHECK_EQ(live_now().mappings, count);
    CHECK_EQ(aclrtMalloc(&block, PAGE, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK(block == NULL && strstr(aclGetRecentErrMsg(), "vm.max_map_count"));
    CHECK_EQ(live_now().devices[0].pages_2m_used, 1);
    CHECK_EQ(live_now().devices[0].pages_4k_used, 0);
    OK(aclrtUnmapMem(at));
    OK(aclrtMapMem(plus(at, count * 2 * PAGE), PAGE, 0, handle, 0));
    CHECK_EQ(aclrtMapMem(at, PAGE, 0, handle, 0), ACL_ERROR_RT_MEMORY_ALLOCATION);
    OK(aclrtResetDeviceForce(0));
    OK(aclrtReleaseMemAddress(at));
    check_nothing_alive();
}

/* Neighbours join into one mapping of the host, so many more of them fit. */
static void test_neighbours(void) {
    enum { COUNT = 2000 };
    start("mode", "unified", "capacity", "16G", NULL);
    OK(aclrtSetDevice(0));
    void *at = range(COUNT * PAGE);
    aclrtDrvMemHandle handles[COUNT];
    for (uint64_t i = 0; i < COUNT; i++) {
        handles[i] = physical(0, PAGE);
        OK(aclrtMapMem(plus(at, (i * 777 % COUNT) * PAGE), PAGE, 0, handles[i], 0));
    }
    for (uint64_t i = 0; i < COUNT; i++)
        ((volatile char *)at)[i * PAGE] = (char)i;
    for (uint64_t i = 0; i < COUNT; i += 97)
        CHECK_EQ(peek(plus(at, i * PAGE)), (uint8_t)i);
    OK(aclrtResetDeviceForce(0));
    OK(aclrtReleaseMemAddress(at));
    check_nothing_alive();
}

static void test_options(void) {
    char info[4000];
    start(NULL);
    CHECK_EQ(hostacl_configure("mode", "both"), ACL_ERROR_INVALID_PARAM);
    OK(hostacl_configure("mode", "unified"));
    CHECK_EQ(hostacl_configure("first_address", "4G"), ACL_ERROR_INVALID_PARAM);
    hostacl_info(info, sizeof(info));
    CHECK(strstr(info, "mode: unified\n"));
    OK(hostacl_configure("mode", "isolated"));
    OK(hostacl_configure("first_address", "4G"));
    CHECK_EQ(hostacl_configure("mode", "unified"), ACL_ERROR_INVALID_PARAM);
}

/* Registered host memory has its own address as device address; far addresses do not exist. */
static void test_others(void) {
    static char memory[8192] __attribute__((aligned(4096)));
    void *device = NULL, *at = UNTOUCHED;
    set_up();
    memory[100] = 5;
    OK(aclrtHostRegister(memory, sizeof(memory), ACL_HOST_REGISTER_MAPPED, &device));
    CHECK(device == (void *)memory);
    OK(aclrtHostGetDevicePointer(memory + 100, &device, 0));
    CHECK_EQ(*(volatile char *)device, 5);
    CHECK_EQ(peek(device), 5);
    OK(aclrtHostUnregister(memory));
    CHECK_EQ(aclrtReserveMemAddressNoUCMemory(&at, GIB, 0, NULL, 1), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK(at == UNTOUCHED);
    tear_down();
}

/* In mode isolated the same addresses fault. */
static void test_isolated(void) {
    void *block = NULL;
    start("mode", "isolated", NULL);
    OK(aclrtSetDevice(0));
    void *at = range(PAGE);
    aclrtDrvMemHandle handle = physical(0, PAGE);
    OK(aclrtMapMem(at, PAGE, 0, handle, 0));
    OK(aclrtMalloc(&block, PAGE, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(faults(at) && faults(block));
    OK(aclrtResetDevice(0));
    OK(aclrtReleaseMemAddress(at));
}

int main(void) {
    block_of(5000, ACL_MEM_MALLOC_NORMAL_ONLY);
    block_of(3 * MIB, ACL_MEM_MALLOC_HUGE_ONLY);
    block_of(GIB, ACL_MEM_MALLOC_HUGE1G_ONLY);
    test_mappings();
    test_no_access();
    test_reset();
    test_limit();
    test_neighbours();
    test_others();
    test_options();
    test_isolated();
    start(NULL);
    check_nothing_alive();
    return check_done();
}
