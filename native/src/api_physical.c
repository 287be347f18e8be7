/* Exported: physical memory handles. A device is opened where the call needs one and none is set; no context is needed,
 * except for host memory of a NUMA node. The out handle is written on success only. Thread safety: any thread, any
 * time. */
#include "acl/acl.h"
#include "device.h"
#include "entry.h"
#include "errors.h"
#include "faults.h"
#include "host_memory.h"
#include "mapping.h"
#include "physical.h"
#include "physical_property.h"
#include "runtime.h"
#include "table.h"

/* Size after rounding to pages; 0 when the driver refuses it. */
static uint64_t whole_pages(uint64_t size, enum page_class cls) {
    uint64_t page_bytes = page_class_bytes(cls);
    bool round = cls == PAGE_1G && !runtime_config()->product->driver_v3;
    if (round)
        size = size > UINT64_MAX - page_bytes ? UINT64_MAX & ~(page_bytes - 1)
                                              : (size + page_bytes - 1) & ~(page_bytes - 1);
    return size % page_bytes ? 0 : size;
}

/* Opens what the memory comes from; null, with the refusal recorded, when the host has no memory for it. */
static struct device *open_owner(int32_t id) {
    struct device *device = id < 0 ? host_memory() : device_at(id);
    if (id < 0 ? host_memory_open() : device_open(device))
        return device;
    error_raise(ERROR_MEMORY, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "the host has no memory or address space for it");
    return NULL;
}

static int take(struct physical_request *request, aclrtDrvMemHandle *handle) {
    const struct physical *physical = physical_malloc(request);
    if (physical) {
        *handle = physical->handle;
        return ACL_SUCCESS;
    }
    int code = device_raise_short(request->device, request->cls, request->bytes, request->bytes);
    if (request->device == host_memory())
        host_memory_close_if_idle();
    else
        device_close_if_idle(request->device);
    return code;
}

/* Everything after the null checks. */
static int malloc_physical(aclrtDrvMemHandle *handle, size_t size, const aclrtPhysicalMemProp *prop) {
    struct property_wishes wishes;
    int code = physical_property_read(prop, &wishes);
    if (code)
        return code;
    uint64_t bytes = whole_pages(size, wishes.cls);
    if (!bytes)
        return error_raise(ERROR_DRIVER,
                           runtime_config()->product->driver_v3 ? ACL_ERROR_RT_PARAM_INVALID
                                                                : ACL_ERROR_RT_DRV_INTERNAL_ERROR,
                           "size %zu is no multiple of %s", size, page_class_name(wishes.cls));
    code = fault_of_allocation(size);
    if (code)
        return code;
    struct physical_request request = {
        .cls = wishes.cls, .bytes = bytes, .attr = wishes.attr, .location = prop->location};
    request.device = open_owner(wishes.device);
    return request.device ? take(&request, handle) : ACL_ERROR_RT_RESOURCE_ALLOC_FAIL;
}

aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size, const aclrtPhysicalMemProp *prop, uint64_t flags) {
    ENTER(aclrtMallocPhysical, handle, size, IN(prop), flags);
    if (!handle || !prop)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "%s is null", handle ? "prop" : "handle");
    if (!size || flags)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "size is %zu, flags is %llu and must be 0", size,
                           (unsigned long long)flags);
    table_lock();
    int code = malloc_physical(handle, size, prop);
    table_unlock();
    return code;
}

aclError aclrtFreePhysical(aclrtDrvMemHandle handle) {
    ENTER(aclrtFreePhysical, handle);
    if (!handle)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "handle is null");
    table_lock();
    struct physical *physical = physical_at(handle);
    bool freed = physical && physical_free(physical);
    table_unlock();
    if (freed)
        return ACL_SUCCESS;
    return error_raise(ERROR_DRIVER, ACL_ERROR_RT_PARAM_INVALID, "handle %p %s", handle,
                       physical ? "is held by mappings only; unmap them instead" : "is not alive");
}

aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop, aclrtMemGranularityOptions option,
                                          size_t *granularity) {
    ENTER(aclrtMemGetAllocationGranularity, IN(prop), option, granularity);
    if (!prop || !granularity)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "%s is null", prop ? "granularity" : "prop");
    struct property_wishes wishes;
    table_lock();
    int code = physical_property_read(prop, &wishes);
    table_unlock();
    if (code)
        return code;
    if ((uint32_t)option > ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "option %d is neither 0 nor 1", (int)option);
    *granularity = page_class_bytes(wishes.cls);
    return ACL_SUCCESS;
}

aclError aclrtMemGetAllocationPropertiesFromHandle(aclrtDrvMemHandle handle, aclrtPhysicalMemProp *prop) {
    ENTER(aclrtMemGetAllocationPropertiesFromHandle, handle, prop);
    if (!handle || !prop)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "%s is null", handle ? "prop" : "handle");
    table_lock();
    const struct physical *physical = physical_at(handle);
    if (physical)
        *prop = (aclrtPhysicalMemProp){.memAttr = physical->attr, .location = physical->location};
    table_unlock();
    if (physical)
        return ACL_SUCCESS;
    return error_raise(ERROR_DRIVER, ACL_ERROR_RT_INVALID_HANDLE, "handle %p is not alive", handle);
}

aclError aclrtMemRetainAllocationHandle(void *virPtr, aclrtDrvMemHandle *handle) {
    ENTER(aclrtMemRetainAllocationHandle, virPtr, handle);
    if (!virPtr || !handle)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "%s is null", virPtr ? "handle" : "virPtr");
    table_lock();
    const struct mapping *mapping = mapping_at((uint64_t)(uintptr_t)virPtr);
    bool found = mapping && mapping->region.range.start == (uint64_t)(uintptr_t)virPtr;
    if (found) {
        mapping->physical->references++;
        *handle = mapping->physical->handle;
    }
    table_unlock();
    if (found)
        return ACL_SUCCESS;
    return error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR, "%p is not the start of a mapping", virPtr);
}
