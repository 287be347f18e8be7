/* Exported: pinned host memory. Thread safety: any thread, any time; a free waits for copies that use the block. */
#include "acl/acl.h"
#include "context.h"
#include "device.h"
#include "entry.h"
#include "errors.h"
#include "faults.h"
#include "host_blocks.h"
#include "malloc_config.h"
#include "poison.h"
#include "stream.h"
#include "table.h"

#define ROUNDING 32

/* A rounding that wraps gives 0, which the driver refuses; so does the card. */
static int take_block(void **out, uint64_t size, const struct malloc_wishes *wishes) {
    uint64_t rounded = (size + ROUNDING - 1) & ~(uint64_t)(ROUNDING - 1);
    const struct context *context = context_need();
    if (!context)
        return ACL_ERROR_RT_CONTEXT_NULL;
    if (wishes->on_device && wishes->device != context->device->id)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "cfg names device %lld, current is device %d",
                           (long long)wishes->device, context->device->id);
    int fault = rounded ? fault_of_allocation(size) : ACL_SUCCESS;
    *out = rounded && !fault ? host_block_malloc(size) : NULL;
    if (*out || fault)
        return fault;
    if (!rounded)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_PARAM_INVALID, "size %llu cannot be rounded up within 64 bits",
                           (unsigned long long)size);
    return error_raise(ERROR_MEMORY, ACL_ERROR_RT_MEMORY_ALLOCATION, "the host has no %llu bytes",
                       (unsigned long long)size);
}

static int malloc_host(void **out, uint64_t size, const char *name, const aclrtMallocConfig *cfg) {
    struct malloc_wishes wishes;
    if (!out)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "%s is null", name);
    if (!size)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "size is 0");
    int code = malloc_config_read(cfg, false, &wishes);
    if (code)
        return code;
    table_lock();
    code = take_block(out, size, &wishes);
    table_unlock();
    if (!code)
        poison_new_bytes((uint64_t)(uintptr_t)*out, size);
    return code;
}

aclError aclrtMallocHost(void **hostPtr, size_t size) {
    ENTER(aclrtMallocHost, hostPtr, size);
    return malloc_host(hostPtr, size, "hostPtr", NULL);
}

aclError aclrtMallocHostWithCfg(void **ptr, uint64_t size, aclrtMallocConfig *cfg) {
    ENTER(aclrtMallocHostWithCfg, ptr, size, IN(cfg));
    return malloc_host(ptr, size, "ptr", cfg);
}

static aclError free_host(void *hostPtr) {
    table_lock();
    bool freed = host_block_free((uint64_t)(uintptr_t)hostPtr);
    table_unlock();
    if (freed)
        return ACL_SUCCESS;
    return error_raise(ERROR_DRIVER, ACL_ERROR_RT_PARAM_INVALID, "%p is not the start of a live host block", hostPtr);
}

aclError aclrtFreeHost(void *hostPtr) {
    ENTER(aclrtFreeHost, hostPtr);
    return hostPtr ? free_host(hostPtr) : error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "hostPtr is null");
}

aclError aclrtFreeHostWithDevSync(void *hostPtr) {
    ENTER(aclrtFreeHostWithDevSync, hostPtr);
    if (!hostPtr)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "hostPtr is null");
    int code = streams_synchronize_current();
    return code ? code : free_host(hostPtr);
}
