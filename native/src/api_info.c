/* Exported: memory information and what an address is. Thread safety: any thread, any time. */
#include "acl/acl.h"
#include "context.h"
#include "device.h"
#include "entry.h"
#include "errors.h"
#include "host_blocks.h"
#include "host_memory.h"
#include "host_register.h"
#include "managed.h"
#include "pagetable.h"
#include "physical.h"
#include "reserve.h"
#include "runtime.h"
#include "table.h"
#include "vspace.h"

#define SMALL 1u /* 4 KiB pages count */
#define HUGE 2u  /* 2 MiB pages count */
#define GIANT 4u /* 1 GiB pages count */

enum memory { MEMORY_DDR, MEMORY_HBM, MEMORY_ANY };

/* What each attribute counts. P2P memory comes from the same pools, so its attributes show the same numbers. */
static const struct {
    enum memory memory; /* type the attribute names */
    unsigned classes;   /* page classes it counts */
} counted[] = {
    [ACL_DDR_MEM] = {MEMORY_DDR, HUGE | SMALL},  [ACL_HBM_MEM] = {MEMORY_HBM, HUGE | SMALL},
    [ACL_DDR_MEM_HUGE] = {MEMORY_DDR, HUGE},     [ACL_DDR_MEM_NORMAL] = {MEMORY_DDR, SMALL},
    [ACL_HBM_MEM_HUGE] = {MEMORY_HBM, HUGE},     [ACL_HBM_MEM_NORMAL] = {MEMORY_HBM, SMALL},
    [ACL_DDR_MEM_P2P_HUGE] = {MEMORY_DDR, HUGE}, [ACL_DDR_MEM_P2P_NORMAL] = {MEMORY_DDR, SMALL},
    [ACL_HBM_MEM_P2P_HUGE] = {MEMORY_HBM, HUGE}, [ACL_HBM_MEM_P2P_NORMAL] = {MEMORY_HBM, SMALL},
    [ACL_HBM_MEM_HUGE1G] = {MEMORY_HBM, GIANT},  [ACL_HBM_MEM_P2P_HUGE1G] = {MEMORY_HBM, GIANT},
    [ACL_MEM_NORMAL] = {MEMORY_ANY, SMALL},      [ACL_MEM_HUGE] = {MEMORY_ANY, HUGE},
    [ACL_MEM_HUGE1G] = {MEMORY_ANY, GIANT},      [ACL_MEM_P2P_NORMAL] = {MEMORY_ANY, SMALL},
    [ACL_MEM_P2P_HUGE] = {MEMORY_ANY, HUGE},     [ACL_MEM_P2P_HUGE1G] = {MEMORY_ANY, GIANT},
};

/* Sums the pools an attribute counts; the other type of memory has none. On a product with DDR every attribute means
 * DDR. */
static void count_pools(const struct device *device, uint32_t attr, size_t *free, size_t *total) {
    *free = *total = 0;
    if (counted[attr].memory == MEMORY_DDR && runtime_config()->product->hbm)
        return;
    for (enum page_class cls = 0; cls < PAGE_CLASSES; cls++) {
        if (counted[attr].classes >> cls & 1) {
            *free += device->phys.pools[cls].free * page_class_bytes(cls);
            *total += device->phys.pools[cls].total * page_class_bytes(cls);
        }
    }
}

static int memory_info(uint32_t attr, size_t *free, size_t *total) {
    const struct context *context = context_need();
    if (!context)
        return ACL_ERROR_RT_CONTEXT_NULL;
    if (counted[attr].classes == GIANT && !runtime_config()->product->giant_pages)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s has no 1 GiB pages",
                           runtime_config()->soc_name);
    count_pools(context->device, attr, free, total);
    return ACL_SUCCESS;
}

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total) {
    ENTER(aclrtGetMemInfo, attr, free, total);
    if (!free || !total)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "%s is null", free ? "total" : "free");
    if ((uint32_t)attr > ACL_MEM_P2P_HUGE1G)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_INVALID_MEMORY_TYPE, "attr %d is not in 0..17", (int)attr);
    table_lock();
    physicals_sweep(NULL);
    int code = memory_info((uint32_t)attr, free, total);
    table_unlock();
    return code;
}

/* Memory of a device, or of the host; null: a range into which nothing was ever mapped, which shows as host memory. */
static void show_owner(aclrtPtrAttributes *out, const struct device *device, enum page_class cls) {
    bool on_device = device && device != host_memory();
    out->location.type = on_device ? ACL_MEM_LOCATION_TYPE_DEVICE : ACL_MEM_LOCATION_TYPE_HOST;
    out->location.id = on_device ? (uint32_t)device->id : 0;
    if (on_device && cls != PAGE_4K)
        out->pageSize = (uint32_t)page_class_bytes(PAGE_2M);
}

/* What is at addr; false when it is a device address that belongs to nothing. The 1 GiB class shows as 2 MiB pages, a
 * reserved range as a whole as what was mapped into it first. */
static bool describe(uint64_t addr, aclrtPtrAttributes *out) {
    *out = (aclrtPtrAttributes){.pageSize = (uint32_t)page_class_bytes(PAGE_4K)};
    const struct reservation *reservation = reservation_at(addr);
    const struct region *region = reservation ? NULL : pagetable_at(addr);
    if (reservation) {
        show_owner(out, reservation->device, PAGE_2M);
        return true;
    }
    if (region) {
        show_owner(out, region->device, region->pages->cls);
        if (managed_at(addr))
            *out = (aclrtPtrAttributes){.location.type = ACL_MEM_LOCATION_TYPE_MANAGED,
                                        .pageSize = (uint32_t)page_class_bytes(PAGE_2M)};
        return true;
    }
    bool pinned = host_block_holds(addr) || host_register_at(addr);
    out->location.type = pinned ? ACL_MEM_LOCATION_TYPE_HOST : ACL_MEM_LOCATION_TYPE_UNREGISTERED;
    return !vspace_holds(addr);
}

aclError aclrtPointerGetAttributes(const void *ptr, aclrtPtrAttributes *attributes) {
    ENTER(aclrtPointerGetAttributes, ptr, attributes);
    if (!ptr || !attributes)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "%s is null", ptr ? "attributes" : "ptr");
    aclrtPtrAttributes found;
    table_lock();
    bool known = describe((uint64_t)(uintptr_t)ptr, &found);
    table_unlock();
    if (!known)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_PARAM_INVALID, "%p is a device address that belongs to no block",
                           ptr);
    *attributes = found;
    return ACL_SUCCESS;
}
