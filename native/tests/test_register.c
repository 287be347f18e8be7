/* Registered host memory: arguments, pointer queries, the device address and copies through it, what unregister ends.
 */
#include <sys/mman.h>

#include "virtual_memory.h"

#define SMALL ((uint64_t)4096)

static char *memory; /* seven pages; nothing is mapped behind them, as nobody else maps memory so low */

static void set_up(void) {
    start(NULL);
    OK(aclrtSetDevice(0));
}

static void tear_down(void) {
    CHECK_EQ(live_now().registered, 0);
    CHECK_EQ(live_now().registered_bytes, 0);
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

static void test_arguments(void) {
    void *out = UNTOUCHED, *block = NULL, *pinned = NULL;
    set_up();
    OK(aclrtMalloc(&block, SMALL, ACL_MEM_MALLOC_NORMAL_ONLY));
    OK(aclrtMallocHost(&pinned, 3 * SMALL));
    CHECK_EQ(aclrtHostRegister(NULL, SMALL, ACL_HOST_REGISTER_MAPPED, &out), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtHostRegister(memory, 0, ACL_HOST_REGISTER_MAPPED, &out), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtHostRegister(memory, SMALL, ACL_HOST_REGISTER_MAPPED, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtHostRegister(memory, SMALL, 1, &out), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtHostRegister(memory, SMALL, ACL_HOST_REGISTER_IOMEMORY, &out), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_EQ(aclrtHostRegister(memory + 64, SMALL, ACL_HOST_REGISTER_MAPPED, &out), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtHostRegister(memory, 8 * SMALL, ACL_HOST_REGISTER_MAPPED, &out), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtHostRegister(memory, UINT64_MAX, ACL_HOST_REGISTER_MAPPED, &out), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtHostRegister(block, SMALL, ACL_HOST_REGISTER_MAPPED, &out), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtHostRegister(plus(pinned, SMALL), SMALL, ACL_HOST_REGISTER_MAPPED, &out),
             ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    CHECK_EQ(aclrtHostRegisterV2(NULL, SMALL, ACL_HOST_REG_MAPPED), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtHostRegisterV2(memory, 0, ACL_HOST_REG_MAPPED), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtHostRegisterV2(memory, SMALL, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtHostRegisterV2(memory, SMALL, 1), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtHostRegisterV2(memory, SMALL, ACL_HOST_REG_IOMEMORY), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_EQ(aclrtHostUnregister(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtHostUnregister(memory), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
    CHECK_EQ(aclrtHostGetDevicePointer(NULL, &out, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtHostGetDevicePointer(memory, NULL, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtHostGetDevicePointer(memory, &out, 1), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtHostGetDevicePointer(memory, &out, 0), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
    CHECK(out == UNTOUCHED);
    OK(aclrtFreeHost(pinned));
    OK(aclrtFree(block));
    tear_down();
    CHECK_EQ(aclrtHostRegister(memory, SMALL, ACL_HOST_REGISTER_MAPPED, &out), ACL_ERROR_RT_CONTEXT_NULL);
}

static int location(const void *at) {
    aclrtPtrAttributes attributes = {.pageSize = 0};
    OK(aclrtPointerGetAttributes(at, &attributes));
    CHECK_EQ(attributes.pageSize, 4096);
    return (int)attributes.location.type;
}

/* The device address shows the caller's bytes, exactly as many as were registered. */
static void test_mapped(void) {
    void *device = NULL, *again = NULL, *block = NULL;
    set_up();
    memset(memory, 1, 7 * SMALL);
    CHECK_EQ(location(memory), ACL_MEM_LOCATION_TYPE_UNREGISTERED);
    OK(aclrtHostRegister(memory + SMALL, 2 * SMALL - 100, ACL_HOST_REGISTER_MAPPED, &device));
    CHECK_EQ(live_now().registered, 1);
    CHECK_EQ(live_now().registered_bytes, 2 * SMALL - 100);
    CHECK((char *)device != memory + SMALL && (uintptr_t)device % SMALL == 0);
    CHECK_EQ(location(memory + SMALL), ACL_MEM_LOCATION_TYPE_HOST);
    CHECK_EQ(location(memory + 3 * SMALL - 101), ACL_MEM_LOCATION_TYPE_HOST);
    CHECK_EQ(location(memory + 3 * SMALL - 100), ACL_MEM_LOCATION_TYPE_UNREGISTERED);
    CHECK_EQ(location(memory), ACL_MEM_LOCATION_TYPE_UNREGISTERED);
    CHECK_EQ(location(device), ACL_MEM_LOCATION_TYPE_HOST);
    OK(aclrtHostGetDevicePointer(memory + SMALL + 70, &again, 0));
    CHECK(again == plus(device, 70));
    OK(aclrtMalloc(&block, SMALL, ACL_MEM_MALLOC_NORMAL_ONLY));
    OK(aclrtMemset(block, SMALL, 0x3c, SMALL));
    OK(aclrtMemcpy(plus(device, 10), SMALL, block, SMALL, ACL_MEMCPY_DEVICE_TO_DEVICE));
    CHECK(memory[SMALL + 9] == 1 && memory[SMALL + 10] == 0x3c && memory[2 * SMALL + 9] == 0x3c);
    CHECK_EQ(memory[2 * SMALL + 10], 1);
    memory[2 * SMALL] = 0x55;
    CHECK_EQ(peek(plus(device, SMALL)), 0x55);
    OK(aclrtMemset(plus(device, 2 * SMALL - 101), 1, 9, 1));
    CHECK_EQ(memory[3 * SMALL - 101], 9);
    CHECK_EQ(poke(plus(device, 2 * SMALL - 100), 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtFree(device), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtFreeHost(memory + SMALL), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtHostUnregister(memory + SMALL + 1), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
    CHECK_EQ(aclrtHostUnregister(device), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
    OK(aclrtHostUnregister(memory + SMALL));
    CHECK_EQ(aclrtHostUnregister(memory + SMALL), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
    CHECK_EQ(poke(device, 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(location(memory + SMALL), ACL_MEM_LOCATION_TYPE_UNREGISTERED);
    OK(aclrtFree(block));
    tear_down();
}

static void test_twice(void) {
    void *device = NULL, *out = UNTOUCHED;
    set_up();
    OK(aclrtHostRegister(memory + 2 * SMALL, 2 * SMALL, ACL_HOST_REGISTER_MAPPED, &device));
    const struct {
        uint64_t from, pages;
        int code;
    } cases[] = {{2, 2, ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED},
                 {2, 1, ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED},
                 {3, 2, ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED},
                 {0, 3, ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED},
                 {0, 7, ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED},
                 {0, 2, 0},
                 {4, 3, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK_EQ(aclrtHostRegisterV2(memory + cases[i].from * SMALL, cases[i].pages * SMALL, ACL_HOST_REG_PINNED),
                 cases[i].code);
        if (!cases[i].code)
            OK(aclrtHostUnregister(memory + cases[i].from * SMALL));
    }
    CHECK_EQ(aclrtHostRegister(memory + 2 * SMALL, SMALL, ACL_HOST_REGISTER_MAPPED, &out),
             ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    CHECK(out == UNTOUCHED);
    OK(aclrtHostUnregister(memory + 2 * SMALL));
    tear_down();
}

/* Flags of the second form: pinned alone has no device address, read-only can be read through it but not written. */
static void test_flags(void) {
    void *device = NULL;
    uint8_t bytes[4] = {1, 2, 3, 4};
    set_up();
    OK(aclrtHostRegisterV2(memory, SMALL, ACL_HOST_REG_PINNED));
    CHECK_EQ(location(memory), ACL_MEM_LOCATION_TYPE_HOST);
    CHECK_EQ(aclrtHostGetDevicePointer(memory, &device, 0), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtHostUnregister(memory));
    OK(aclrtHostRegisterV2(memory, SMALL, ACL_HOST_REG_MAPPED | ACL_HOST_REG_PINNED));
    OK(aclrtHostGetDevicePointer(memory, &device, 0));
    OK(poke(device, 66));
    CHECK_EQ(memory[0], 66);
    OK(aclrtHostUnregister(memory));
    OK(aclrtHostRegisterV2(memory, SMALL, ACL_HOST_REG_READONLY));
    OK(aclrtHostGetDevicePointer(memory, &device, 0));
    CHECK_EQ(peek(device), 66);
    CHECK_EQ(aclrtMemcpy(device, 4, bytes, 4, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemset(device, 4, 0, 4), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(memory[0], 66);
    OK(aclrtHostUnregister(memory));
    tear_down();
}

/* A registration outlives the device and goes with a reset of the runtime. */
static void test_life(void) {
    set_up();
    OK(aclrtHostRegisterV2(memory, SMALL, ACL_HOST_REG_MAPPED));
    OK(aclrtResetDevice(0));
    CHECK_EQ(live_now().registered, 1);
    CHECK_EQ(hostacl_configure("devices", "1"), ACL_ERROR_RELATIVE_RESOURCE_NOT_CLEARED);
    static char report[1000];
    hostacl_live_report(report, sizeof(report));
    CHECK(strstr(report, "registered host memory 0x"));
    OK(hostacl_reset());
    CHECK_EQ(live_now().registered, 0);
    check_nothing_alive();
}

int main(void) {
    memory = mmap((void *)(uintptr_t)GIB, 7 * SMALL, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (!CHECK(memory == (char *)(uintptr_t)GIB))
        return check_done();
    test_arguments();
    test_mapped();
    test_twice();
    test_flags();
    test_life();
    start(NULL);
    check_nothing_alive();
    return check_done();
}
