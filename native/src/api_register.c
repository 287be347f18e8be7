/* Exported: registering host memory of the caller. Thread safety: any thread, any time; taking a registration back
 * waits for copies that use its device address. */
#include "acl/acl.h"
#include "context.h"
#include "entry.h"
#include "errors.h"
#include "host_register.h"
#include "table.h"

#define PAGE 4096
#define V2_FLAGS (ACL_HOST_REG_MAPPED | ACL_HOST_REG_IOMEMORY | ACL_HOST_REG_READONLY | ACL_HOST_REG_PINNED)

static int result_code(enum register_result result, uint64_t addr, uint64_t size) {
    unsigned long long first = addr, bytes = size;
    switch (result) {
    case REGISTER_TWICE:
        return error_raise(ERROR_DRIVER, ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
                           "a byte of 0x%llx + %llu bytes is registered or pinned already", first, bytes);
    case REGISTER_NO_MEMORY:
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_PARAM_INVALID, "0x%llx + %llu bytes is not all host memory",
                           first, bytes);
    case REGISTER_SHORT:
        return error_raise(ERROR_MEMORY, ACL_ERROR_RT_MEMORY_ALLOCATION,
                           "there are no device addresses or no host memory for %llu bytes", bytes);
    default:
        return ACL_SUCCESS;
    }
}

/* Everything after the checks of flags: alignment, context, registration. The device address goes to *out. */
static int register_range(void *ptr, uint64_t size, bool mapped, bool read_only, void **out) {
    uint64_t addr = (uint64_t)(uintptr_t)ptr;
    if (addr % PAGE)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "%p is no multiple of %d", ptr, PAGE);
    table_lock();
    bool has_context = context_need();
    int code =
        has_context ? result_code(host_register(addr, size, mapped, read_only), addr, size) : ACL_ERROR_RT_CONTEXT_NULL;
    if (!code && out)
        *out = (void *)(uintptr_t)host_register_at(addr)->device_addr;
    table_unlock();
    return code;
}

static int check_range(const void *ptr, uint64_t size) {
    if (!ptr)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "ptr is null");
    if (!size)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "size is 0");
    return ACL_SUCCESS;
}

static int no_io_memory(void) {
    return error_raise(ERROR_DRIVER, ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "there is no I/O memory to register here");
}

aclError aclrtHostRegister(void *ptr, uint64_t size, aclrtHostRegisterType type, void **devPtr) {
    ENTER(aclrtHostRegister, ptr, size, type, devPtr);
    int code = check_range(ptr, size);
    if (code)
        return code;
    if (!devPtr)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "devPtr is null");
    switch ((int)type) {
    case ACL_HOST_REGISTER_MAPPED:
    case ACL_HOST_REGISTER_READONLY:
        return register_range(ptr, size, true, type == ACL_HOST_REGISTER_READONLY, devPtr);
    case ACL_HOST_REGISTER_IOMEMORY:
        return no_io_memory();
    default:
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "type %d is unknown", (int)type);
    }
}

aclError aclrtHostRegisterV2(void *ptr, uint64_t size, uint32_t flag) {
    ENTER(aclrtHostRegisterV2, ptr, size, flag);
    int code = check_range(ptr, size);
    if (code)
        return code;
    if (!flag || flag & ~V2_FLAGS)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "flag 0x%x is unknown", flag);
    if (flag & ACL_HOST_REG_IOMEMORY)
        return no_io_memory();
    bool read_only = flag & ACL_HOST_REG_READONLY;
    return register_range(ptr, size, read_only || flag & ACL_HOST_REG_MAPPED, read_only, NULL);
}

static int not_registered(const void *ptr) {
    return error_raise(ERROR_DRIVER, ACL_ERROR_HOST_MEMORY_NOT_REGISTERED, "%p is not registered", ptr);
}

aclError aclrtHostGetDevicePointer(void *pHost, void **pDevice, uint32_t flag) {
    ENTER(aclrtHostGetDevicePointer, pHost, pDevice, flag);
    if (!pHost || !pDevice)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "%s is null", pHost ? "pDevice" : "pHost");
    if (flag)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "flag is %u and must be 0", flag);
    uint64_t addr = (uint64_t)(uintptr_t)pHost;
    uint64_t device_addr = 0;
    table_lock();
    const struct registration *registration = host_register_at(addr);
    if (registration && registration->device_addr)
        device_addr = registration->device_addr + (addr - registration->range.start);
    table_unlock();
    if (!registration)
        return not_registered(pHost);
    if (!device_addr)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_PARAM_INVALID, "%p was registered without a device address",
                           pHost);
    *pDevice = (void *)(uintptr_t)device_addr;
    return ACL_SUCCESS;
}

aclError aclrtHostUnregister(void *ptr) {
    ENTER(aclrtHostUnregister, ptr);
    if (!ptr)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "ptr is null");
    table_lock();
    bool done = host_unregister((uint64_t)(uintptr_t)ptr);
    table_unlock();
    return done ? ACL_SUCCESS : not_registered(ptr);
}
