/* Devices.
 *
 * A device is open while it is set somewhere in the process or has an explicit context; opening makes its memory file,
 * the last reset or the end of the last explicit context of a device that is not set takes everything down: contexts on
 * every thread, blocks, pages. A tear-down first marks the device, so that nothing new starts, then waits for copies
 * and frees under way.
 *
 * Thread safety: callers hold the table lock; device_close and device_open may give it up for a while. */
#include "device.h"

#include "access.h"
#include "blocks.h"
#include "context.h"
#include "hostacl.h"
#include "runtime.h"
#include "table.h"

static struct device devices[HOSTACL_MAX_DEVICES];

struct device *device_at(int32_t id) {
    if (id < 0 || (uint32_t)id >= runtime_config()->devices)
        return NULL;
    devices[id].id = id;
    return &devices[id];
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
    while (device->closing)
        table_wait();
    if (device->open)
        return true;
    struct pool_sizes sizes = config_pools(runtime_config());
    if (!phys_open(&device->phys, &sizes))
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

void device_close(struct device *device) {
    device->closing = true;
    device->set_count = 0;
    context_end_device(device);
    while (device->busy || access_uses_device(device))
        table_wait();
    blocks_drop_device(device);
    return_driver_memory(device);
    struct phys old = device->phys;
    device->phys = (struct phys){.fd = -1};
    table_unlock();
    phys_close(&old);
    table_lock();
    device->open = false;
    device->closing = false;
    table_wake();
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
        while (devices[id].closing)
            table_wait();
        if (devices[id].open)
            device_close(&devices[id]);
    }
}
