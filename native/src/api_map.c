/* Exported: mappings, who may access them, and what block or mapping an address belongs to. None of the calls needs a
 * context. Thread safety: any thread, any time; an unmap waits for copies that use the mapping. */
#include "acl/acl.h"
#include "blocks.h"
#include "device.h"
#include "entry.h"
#include "errors.h"
#include "host_memory.h"
#include "host_view.h"
#include "managed.h"
#include "mapping.h"
#include "physical.h"
#include "reserve.h"
#include "runtime.h"
#include "table.h"

static int not_there(void) {
    if (host_view_full())
        return host_view_raise_full();
    return error_raise(ERROR_MEMORY, ACL_ERROR_RT_MEMORY_ALLOCATION, "the host is out of memory");
}

static int not_alive(const void *handle) {
    return error_raise(ERROR_DRIVER, ACL_ERROR_RT_INVALID_HANDLE, "handle %p is not alive", handle);
}

/* Shows the front of a physical memory at a place; returns a code. */
static int show(struct physical *physical, uint64_t addr, uint64_t size, bool access) {
    const char *why = mapping_refusal(physical, addr, size);
    if (!why && size < physical->pages.bytes && !runtime_config()->profile->front_maps)
        why = "the handle is larger; map its whole size";
    if (why)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR,
                           "%llu bytes of a handle of %llu bytes cannot be mapped at 0x%llx: %s",
                           (unsigned long long)size, (unsigned long long)physical->pages.bytes,
                           (unsigned long long)addr, why);
    return mapping_make(physical, addr, size, access) ? ACL_SUCCESS : not_there();
}

/* Everything after the checks of the entry layer. */
static int map(uint64_t addr, uint64_t size, const void *handle, bool access) {
    struct physical *physical = physical_at(handle);
    int code = reserve_need_feature();
    if (code)
        return code;
    return physical ? show(physical, addr, size, access) : not_alive(handle);
}

static int check_and_map(void *virPtr, size_t size, size_t offset, const void *handle, uint64_t flags, bool access) {
    if (!virPtr || !handle)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "%s is null", virPtr ? "handle" : "virPtr");
    if (!size || flags)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "size is %zu, flags is %llu and must be 0", size,
                           (unsigned long long)flags);
    if (offset)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_PARAM_INVALID, "offset is %zu and must be 0", offset);
    table_lock();
    int code = map((uint64_t)(uintptr_t)virPtr, size, handle, access);
    table_unlock();
    return code;
}

aclError aclrtMapMem(void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags) {
    ENTER(aclrtMapMem, virPtr, size, offset, handle, flags);
    return check_and_map(virPtr, size, offset, handle, flags, true);
}

aclError aclrtMemMapNoAccess(void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags) {
    ENTER(aclrtMemMapNoAccess, virPtr, size, offset, handle, flags);
    return check_and_map(virPtr, size, offset, handle, flags, false);
}

/* Everything after the checks of the entry layer. */
static int map_again(uint64_t to, uint64_t size, uint64_t from) {
    const struct mapping *mapping = mapping_at(from);
    int code = reserve_need_feature();
    if (code)
        return code;
    if (mapping && mapping->region.range.start == from)
        return show(mapping->physical, to, size, true);
    return error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR, "0x%llx is not the start of a mapping",
                       (unsigned long long)from);
}

/* There is one way to all memory, so the number of the link only has to exist. */
aclError aclrtMemMapSelectedLink(void *virPtrDst, size_t size, void *virPtrSrc, uint32_t linkIdx) {
    ENTER(aclrtMemMapSelectedLink, virPtrDst, size, virPtrSrc, linkIdx);
    if (!virPtrDst || !virPtrSrc)
        return error_null(virPtrDst ? "virPtrSrc" : "virPtrDst");
    if (!size)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "size is 0");
    if (linkIdx > ACL_RT_MEM_LINK_IDX_1)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "linkIdx %u is neither 0 nor 1", linkIdx);
    table_lock();
    int code = map_again((uint64_t)(uintptr_t)virPtrDst, size, (uint64_t)(uintptr_t)virPtrSrc);
    table_unlock();
    return code;
}

aclError aclrtMemMapSetLink(aclrtDrvMemHandle handle, aclrtMemLinkType adviceLink) {
    ENTER(aclrtMemMapSetLink, handle, adviceLink);
    if (!handle)
        return error_null("handle");
    if ((uint32_t)adviceLink > ACL_RT_MEM_ACCESS_UB_MULTI_PORT_PATH)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "adviceLink %d is not in 0..3", (int)adviceLink);
    table_lock();
    bool alive = physical_at(handle);
    table_unlock();
    return alive ? ACL_SUCCESS : not_alive(handle);
}

static int unmap(uint64_t addr) {
    struct mapping *mapping = mapping_at(addr);
    int code = reserve_need_feature();
    if (code)
        return code;
    if (mapping && mapping->region.range.start == addr) {
        mapping_end(mapping);
        return ACL_SUCCESS;
    }
    bool early = runtime_config()->product->driver_v3 && addr % (2 * MIB);
    return error_raise(ERROR_DRIVER, early ? ACL_ERROR_RT_PARAM_INVALID : ACL_ERROR_RT_DRV_INTERNAL_ERROR,
                       "0x%llx is not the start of a mapping", (unsigned long long)addr);
}

aclError aclrtUnmapMem(void *virPtr) {
    ENTER(aclrtUnmapMem, virPtr);
    if (!virPtr)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "virPtr is null");
    table_lock();
    int code = unmap((uint64_t)(uintptr_t)virPtr);
    table_unlock();
    return code;
}

static bool is_host(const aclrtMemLocation *location) {
    return location->type == ACL_MEM_LOCATION_TYPE_HOST || location->type == ACL_MEM_LOCATION_TYPE_HOST_NUMA;
}

/* Whether a location names a device or the host; if not, the refusal is recorded. */
static bool check_location(const aclrtMemLocation *location) {
    if (is_host(location) || (location->type == ACL_MEM_LOCATION_TYPE_DEVICE && device_at((int32_t)location->id)))
        return true;
    error_raise(ERROR_DRIVER, ACL_ERROR_RT_PARAM_INVALID, "location type %d, id %u names no device and not the host",
                (int)location->type, location->id);
    return false;
}

static int check_wish(const aclrtMemAccessDesc *desc) {
    if (!check_location(&desc->location))
        return ACL_ERROR_RT_PARAM_INVALID;
    if (desc->flags != ACL_RT_MEM_ACCESS_FLAGS_READWRITE)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "flags %d: only READWRITE (3) is supported",
                           (int)desc->flags);
    return ACL_SUCCESS;
}

/* Grants what the descriptions say; all of them were checked. */
static int grant(struct mapping *mapping, const aclrtMemAccessDesc *desc, size_t count) {
    for (size_t i = 0; i < count; i++) {
        bool good = is_host(&desc[i].location) ? mapping_allow_host(mapping)
                                               : mapping_allow_device(mapping, device_at((int32_t)desc[i].location.id));
        if (!good)
            return not_there();
    }
    return ACL_SUCCESS;
}

static int set_access(uint64_t addr, uint64_t size, const aclrtMemAccessDesc *desc, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int code = check_wish(&desc[i]);
        if (code)
            return code;
    }
    struct mapping *mapping = mapping_at(addr);
    if (!mapping || mapping->region.range.start != addr || mapping->region.range.len != size)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR, "0x%llx + %llu bytes is not one mapping",
                           (unsigned long long)addr, (unsigned long long)size);
    for (size_t i = 0; i < count; i++) {
        if (is_host(&desc[i].location) && mapping->physical->device != host_memory())
            return error_raise(ERROR_DRIVER, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                               "the host cannot access device memory; copy it");
    }
    return grant(mapping, desc, count);
}

aclError aclrtMemSetAccess(void *virPtr, size_t size, aclrtMemAccessDesc *desc, size_t count) {
    ENTER(aclrtMemSetAccess, virPtr, size, IN(desc), count);
    if (!virPtr || !desc)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "%s is null", virPtr ? "desc" : "virPtr");
    if (!count)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_PARAM_INVALID, "count is 0");
    table_lock();
    int code = set_access((uint64_t)(uintptr_t)virPtr, size, desc, count);
    table_unlock();
    return code;
}

static int get_access(uint64_t addr, const aclrtMemLocation *location, uint64_t *flag) {
    if (!check_location(location))
        return ACL_ERROR_RT_PARAM_INVALID;
    const struct mapping *mapping = mapping_at(addr);
    if (!mapping)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR, "0x%llx is not in a mapping",
                           (unsigned long long)addr);
    bool allowed = is_host(location) ? mapping->host : mapping->devices >> location->id & 1;
    *flag = allowed ? ACL_RT_MEM_ACCESS_FLAGS_READWRITE : ACL_RT_MEM_ACCESS_FLAGS_NONE;
    return ACL_SUCCESS;
}

aclError aclrtMemGetAccess(void *virPtr, aclrtMemLocation *location, uint64_t *flag) {
    ENTER(aclrtMemGetAccess, virPtr, IN(location), flag);
    if (!virPtr || !location || !flag)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "%s is null",
                           !virPtr    ? "virPtr"
                           : location ? "flag"
                                      : "location");
    table_lock();
    int code = get_access((uint64_t)(uintptr_t)virPtr, location, flag);
    table_unlock();
    return code;
}

/* The block, mapping or managed memory that holds addr. */
static const struct range *range_of(uint64_t addr) {
    const struct block *block = block_at(addr);
    const struct mapping *mapping = block ? NULL : mapping_at(addr);
    if (block)
        return &block->range;
    return mapping ? &mapping->region.range : managed_at(addr);
}

aclError aclrtMemGetAddressRange(void *ptr, void **pbase, size_t *psize) {
    ENTER(aclrtMemGetAddressRange, ptr, pbase, psize);
    if (!ptr)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "ptr is null");
    if (!pbase && !psize)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "pbase and psize are both null");
    struct range found = {0};
    table_lock();
    const struct range *range = range_of((uint64_t)(uintptr_t)ptr);
    if (range)
        found = *range;
    table_unlock();
    if (pbase)
        *pbase = (void *)(uintptr_t)found.start;
    if (!range)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_PARAM_INVALID, "%p is in no block and no mapping", ptr);
    if (psize)
        *psize = found.len;
    return ACL_SUCCESS;
}
