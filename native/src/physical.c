/* Physical memory handles. A handle is pages of a device (or of the host's memory) without an address, with two counts:
 * references, which callers hold and give up one by one, and mappings. It lives while either is above 0, so memory that
 * was freed while mapped stays usable through the mapping, and returns to its pool when the last mapping goes. What a
 * caller holds is a token, so a stale or foreign value is told from a live one. Memory that another process imported
 * lingers after its handle ended, with its pages taken, until that process has let go of it.
 *
 * Thread safety: callers hold the table lock; it is given up while bytes go back to the kernel. */
#include "physical.h"

#include <stdlib.h>

#include "device.h"
#include "handles.h"
#include "host_memory.h"
#include "mapping.h"
#include "poison.h"
#include "share.h"

static struct physical *lingering; /* ended, but in use by another process */
static uint64_t count;
static uint64_t all_bytes;

static bool take_pages(const struct physical_request *request, struct pages *pages) {
    uint64_t wanted = request->bytes / page_class_bytes(request->cls);
    return device_take_pages(request->device, request->cls, wanted, pages) ||
           (device_make_room(request->device) && device_take_pages(request->device, request->cls, wanted, pages));
}

/* Enters a handle whose pages are there; false when the table cannot grow. */
static bool enter(struct physical *physical) {
    physical->handle = handle_new(HANDLE_PHYSICAL, physical);
    if (!physical->handle)
        return false;
    physical->references = 1;
    count++;
    all_bytes += physical->pages.bytes;
    return true;
}

/* A handle whose owner stays open meanwhile; null when memory is short. */
static struct physical *make(const struct physical_request *request) {
    struct physical *physical = calloc(1, sizeof(*physical));
    if (!physical)
        return NULL;
    if (!take_pages(request, &physical->pages)) {
        free(physical);
        return NULL;
    }
    poison_new_pages(request->device, &physical->pages);
    physical->device = request->device;
    physical->phys = &request->device->phys;
    physical->attr = request->attr;
    physical->location = request->location;
    if (enter(physical))
        return physical;
    device_give_pages(request->device, &physical->pages);
    free(physical);
    return NULL;
}

struct physical *physical_malloc(const struct physical_request *request) {
    request->device->handles++;
    struct physical *physical = make(request);
    if (!physical)
        request->device->handles--;
    return physical;
}

struct physical *physical_adopt(struct device *device, const aclrtMemLocation *location, struct import *import) {
    struct physical *physical = calloc(1, sizeof(*physical));
    if (!physical)
        return NULL;
    physical->device = device;
    physical->phys = &import->phys;
    physical->pages = import->pages;
    physical->attr = import->attr;
    physical->location = *location;
    physical->import = import;
    if (import->pages.count == 1)
        physical->pages.extents = &physical->pages.single;
    if (!enter(physical)) {
        free(physical);
        return NULL;
    }
    device->handles++;
    return physical;
}

struct physical *physical_at(const void *handle) {
    struct physical *physical = handle_object(HANDLE_PHYSICAL, handle);
    return physical && !physical->device->closing ? physical : NULL;
}

/* Takes the handle from callers; what it stands for is left. */
static void leave(struct physical *physical) {
    handle_end(physical->handle);
    count--;
    all_bytes -= physical->pages.bytes;
}

static void close_owner_if_idle(struct device *device) {
    if (device == host_memory())
        host_memory_close_if_idle();
    else
        device_close_if_idle(device);
}

/* Gives back what is behind an ended handle. */
static void dispose(struct physical *physical) {
    struct device *device = physical->device;
    if (physical->import)
        import_close(physical->import);
    else
        device_give_pages(device, &physical->pages);
    device->handles--;
    free(physical);
    close_owner_if_idle(device);
}

/* Ends a handle that nobody refers to or maps. */
static void end(struct physical *physical) {
    leave(physical);
    if (!physical->share || share_end(physical->share)) {
        dispose(physical);
        return;
    }
    physical->next = lingering;
    lingering = physical;
}

bool physical_free(struct physical *physical) {
    if (!physical->references)
        return false;
    if (--physical->references == 0 && !physical->maps)
        end(physical);
    return true;
}

void physical_unmapped(struct physical *physical) {
    if (--physical->maps == 0 && !physical->references)
        end(physical);
}

/* The same for a device that is torn down. */
static void drop(struct physical *physical) {
    if (physical->share)
        share_drop(physical->share);
    if (physical->import)
        import_close(physical->import);
    else
        phys_give(physical->phys, &physical->pages);
    physical->device->handles--;
    free(physical);
}

bool physicals_sweep(const struct device *device) {
    bool any = false;
    struct physical **link = &lingering;
    while (*link) {
        struct physical *physical = *link;
        if (!share_end(physical->share)) {
            link = &physical->next;
            continue;
        }
        *link = physical->next;
        any = any || physical->device == device;
        dispose(physical);
        link = &lingering;
    }
    return any;
}

/* Ends what lingers of a device that is torn down; other processes keep the bytes, the device's pages are gone. */
static void drop_lingering(const struct device *device) {
    for (struct physical **link = &lingering; *link;) {
        struct physical *physical = *link;
        if (physical->device != device) {
            link = &physical->next;
            continue;
        }
        *link = physical->next;
        drop(physical);
    }
}

void physicals_drop_device(struct device *device) {
    size_t position = 0;
    drop_lingering(device);
    for (void *handle; (handle = handle_next(HANDLE_PHYSICAL, &position));) {
        struct physical *physical = handle_object(HANDLE_PHYSICAL, handle);
        if (physical->device != device)
            continue;
        while (physical->mappings)
            mapping_drop(physical->mappings);
        leave(physical);
        drop(physical);
    }
}

uint64_t physicals_count(void) {
    return count;
}

uint64_t physicals_bytes(void) {
    return all_bytes;
}

const struct physical *physicals_next(size_t *position) {
    const void *handle = handle_next(HANDLE_PHYSICAL, position);
    return handle ? handle_object(HANDLE_PHYSICAL, handle) : NULL;
}
