/* Mappings. A mapping is a region of the page table over the pages of a physical memory handle, so several of them show
 * the same bytes, and the bytes stay with the handle when a mapping goes. It lies at whole pages inside one reservation
 * and covers the handle from its front.
 *
 * A mapping is taken away in this order: nobody finds it any more, accesses under way end, it leaves the page table.
 *
 * Thread safety: callers hold the table lock; mapping_end gives it up while it waits for accesses. */
#include "mapping.h"

#include <stdlib.h>

#include "access.h"
#include "device.h"
#include "host_memory.h"
#include "host_view.h"
#include "physical.h"
#include "reserve.h"
#include "stack.h"
#include "table.h"

static uint64_t count;

const char *mapping_refusal(const struct physical *physical, uint64_t addr, uint64_t len) {
    uint64_t page_bytes = page_class_bytes(physical->pages.cls);
    const struct reservation *reservation = reservation_at(addr);
    if (addr % page_bytes || len % page_bytes)
        return "address and size must be multiples of the page";
    if (len > physical->pages.bytes)
        return "the handle is smaller";
    if (!reservation || len > reservation->len - (addr - reservation->start))
        return "the place is not inside one reserved range";
    if (reservation->device && reservation->device != physical->device)
        return "the reserved range belongs to the device that was mapped into it first";
    if (reservation->maps && !pagetable_empty(addr, len))
        return "something is mapped there";
    return NULL;
}

static void link_to_physical(struct mapping *mapping) {
    struct physical *physical = mapping->physical;
    mapping->next = physical->mappings;
    if (mapping->next)
        mapping->next->previous = mapping;
    physical->mappings = mapping;
    physical->maps++;
    mapping->reservation->maps++;
    mapping->reservation->device = physical->device;
    count++;
}

static void grant_owner(struct mapping *mapping) {
    const struct device *device = mapping->physical->device;
    mapping->region.limit = mapping->region.range.len;
    if (device == host_memory())
        mapping->host = true;
    else
        mapping->devices = (uint64_t)1 << device->id;
}

struct mapping *mapping_make(struct physical *physical, uint64_t addr, uint64_t len, bool access) {
    struct mapping *mapping = calloc(1, sizeof(*mapping));
    if (!mapping)
        return NULL;
    mapping->physical = physical;
    mapping->reservation = reservation_at(addr);
    mapping->region = (struct region){.range = {.start = addr, .len = len},
                                      .device = physical->device,
                                      .phys = physical->phys,
                                      .pages = &physical->pages};
    if (access)
        grant_owner(mapping);
    if (!pagetable_add(&mapping->region)) {
        free(mapping);
        return NULL;
    }
    if (!host_view_open(&mapping->region)) {
        pagetable_remove(&mapping->region);
        free(mapping);
        return NULL;
    }
    link_to_physical(mapping);
    mapping->stack = stack_take();
    return mapping;
}

struct mapping *mapping_at(uint64_t addr) {
    return reservation_at(addr) ? (struct mapping *)pagetable_at(addr) : NULL;
}

/* The first right makes the memory accessible at all. */
static bool open_region(struct mapping *mapping) {
    if (mapping->region.limit)
        return true;
    mapping->region.limit = mapping->region.range.len;
    if (host_view_open(&mapping->region))
        return true;
    mapping->region.limit = 0;
    return false;
}

bool mapping_allow_device(struct mapping *mapping, const struct device *device) {
    if (!open_region(mapping))
        return false;
    mapping->devices |= (uint64_t)1 << device->id;
    return true;
}

bool mapping_allow_host(struct mapping *mapping) {
    if (!open_region(mapping))
        return false;
    mapping->host = true;
    return true;
}

bool mappings_let(uint64_t addr, uint64_t len, const struct device *device) {
    uint64_t done = 0;
    while (done < len) {
        const struct mapping *mapping = mapping_at(addr + done);
        if (!mapping || !(mapping->devices >> device->id & 1))
            return false;
        done = mapping->region.range.start + mapping->region.range.len - addr;
    }
    return true;
}

void mapping_drop(struct mapping *mapping) {
    host_view_close(&mapping->region);
    pagetable_remove(&mapping->region);
    mapping->reservation->maps--;
    if (mapping->previous)
        mapping->previous->next = mapping->next;
    else
        mapping->physical->mappings = mapping->next;
    if (mapping->next)
        mapping->next->previous = mapping->previous;
    count--;
    stack_free(mapping->stack);
    free(mapping);
}

void mapping_end(struct mapping *mapping) {
    struct physical *physical = mapping->physical;
    struct device *device = physical->device;
    const struct range *range = &mapping->region.range;
    mapping->region.closing = true;
    device_hold(device);
    while (access_overlaps(range->start, range->len))
        table_wait();
    mapping_drop(mapping);
    device_release(device);
    physical_unmapped(physical);
}

uint64_t mappings_count(void) {
    return count;
}
