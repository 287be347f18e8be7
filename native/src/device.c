/* Devices.
 *
 * A device is open while it is set somewhere in the process or has an explicit context; opening makes its memory file,
 * the last reset or the end of the last explicit context of a device that is not set takes everything down: contexts on
 * every thread, streams, blocks, pages. A tear-down first takes the contexts away, so that nothing new starts, then
 * lets the streams come to an end, then bars accesses and waits for copies and frees under way.
 *
 * Thread safety: callers hold the table lock; device_close and device_open may give it up for a while. */
#include "device.h"

#include <string.h>

#include "access.h"
#include "acl/acl_base.h"
#include "blocks.h"
#include "context.h"
#include "errors.h"
#include "host_view.h"
#include "hostacl.h"
#include "ipc_memory.h"
#include "mem_pool.h"
#include "models.h"
#include "notify.h"
#include "physical.h"
#include "runtime.h"
#include "symbols.h"
#include "table.h"

static struct device devices[HOSTACL_MAX_DEVICES];

struct device *device_at(int32_t id) {
    if (id < 0 || (uint32_t)id >= runtime_config()->devices)
        return NULL;
    devices[id].id = id;
    return &devices[id];
}

int device_check_id(int64_t id, int code) {
    table_lock();
    uint32_t count = runtime_config()->devices;
    table_unlock();
    if (id >= 0 && id < count)
        return ACL_SUCCESS;
    return error_raise(ERROR_ARGUMENT, code, "device id %lld is not in 0..%u", (long long)id, count - 1);
}

/* The driver takes its own memory where the pools are large enough. */
static void take_driver_memory(struct device *device) {
    const struct profile *profile = runtime_config()->profile;
    for (enum page_class cls = 0; cls < PAGE_CLASSES; cls++) {
        uint64_t count = profile->driver_bytes[cls] / page_class_bytes(cls);
        if (count)
            phys_take(&device->phys, cls, count, &device->driver_own[cls]);
    }
    if (profile->driver_heap)
        driver_heap_warm_up(device);
}

bool device_open(struct device *device) {
    while (device->ending)
        table_wait();
    if (device->open)
        return true;
    struct pool_sizes sizes = config_pools(runtime_config());
    if (!phys_open(&device->phys, &sizes, runtime_config()->hugetlb))
        return false;
    device->open = true;
    take_driver_memory(device);
    return true;
}

static void return_driver_memory(struct device *device) {
    for (enum page_class cls = 0; cls < PAGE_CLASSES; cls++) {
        if (device->driver_own[cls].count)
            phys_give(&device->phys, &device->driver_own[cls]);
    }
}

static void forget_settings(struct device *device) {
    memset(device->core_limits, 0, sizeof(device->core_limits));
    device->sat_mode = 0;
}

void device_forget_settings(void) {
    for (int32_t id = 0; id < HOSTACL_MAX_DEVICES; id++)
        forget_settings(&devices[id]);
}

void device_close(struct device *device, bool force) {
    device->ending = true;
    device->set_count = 0;
    device->peers = 0;
    forget_settings(device);
    context_end_device(device, force);
    notifies_end(device);
    device->closing = true;
    while (device->busy || access_uses_device(device))
        table_wait();
    models_drop_device(device);
    mem_pools_drop_device(device);
    physicals_drop_device(device);
    ipc_blocks_drop_device(device);
    blocks_drop_device(device);
    symbols_drop_device(device);
    return_driver_memory(device);
    struct phys old = device->phys;
    device->phys = (struct phys){.fd = -1};
    table_unlock();
    phys_close(&old);
    table_lock();
    device->open = false;
    device->ending = device->closing = false;
    table_wake();
}

void device_close_if_idle(struct device *device) {
    if (device->open && !device->ending && !device->set_count && !device->contexts && !device->handles)
        device_close(device, false);
}

bool device_take_pages(struct device *device, enum page_class cls, uint64_t count, struct pages *pages) {
    if (!phys_take(&device->phys, cls, count, pages))
        return false;
    if (!device->phys.pools[cls].huge)
        return true;
    device_hold(device);
    table_unlock();
    bool good = phys_commit(&device->phys, pages);
    table_lock();
    good = good && !device->closing;
    if (!good)
        device_give_pages(device, pages);
    device_release(device);
    return good;
}

void device_give_pages(struct device *device, struct pages *pages) {
    if (phys_collect(&device->phys, pages)) {
        device_hold(device);
        table_unlock();
        phys_punch(&device->phys, pages);
        table_lock();
        device_release(device);
    }
    phys_give(&device->phys, pages);
}

bool device_make_room(struct device *device) {
    device_hold(device);
    bool lingered = physicals_sweep(device);
    bool pooled = mem_pools_trim(device);
    bool trimmed = driver_heap_trim(device);
    device_release(device);
    return (lingered || pooled || trimmed) && !device->closing;
}

int device_raise_short(const struct device *device, enum page_class cls, uint64_t asked, uint64_t rounded) {
    const struct page_pool *pool = &device->phys.pools[cls];
    unsigned long long bytes = asked;
    if (pool->free < (rounded + page_class_bytes(cls) - 1) / page_class_bytes(cls))
        return error_raise(ERROR_MEMORY, ACL_ERROR_RT_MEMORY_ALLOCATION,
                           "%llu bytes do not fit: device %d has %llu of %llu pages of %s free", bytes, device->id,
                           (unsigned long long)pool->free, (unsigned long long)pool->total, page_class_name(cls));
    if (host_view_full())
        return host_view_raise_full();
    return error_raise(ERROR_MEMORY, ACL_ERROR_RT_MEMORY_ALLOCATION, "%llu bytes do not fit: %s", bytes,
                       pool->huge ? "the host has no free huge pages left (see HugePages_Free in /proc/meminfo)"
                                  : "no device addresses or no host memory is left");
}

void device_hold(struct device *device) {
    device->busy++;
}

void device_release(struct device *device) {
    device->busy--;
    table_wake();
}

bool device_any_open(void) {
    for (int32_t id = 0; id < HOSTACL_MAX_DEVICES; id++) {
        if (devices[id].open)
            return true;
    }
    return false;
}

void device_close_all(void) {
    for (int32_t id = 0; id < HOSTACL_MAX_DEVICES; id++) {
        while (devices[id].ending)
            table_wait();
        if (devices[id].open)
            device_close(&devices[id], true);
    }
}
