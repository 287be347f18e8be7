/* Registered host memory. The memory stays the caller's; registering makes it known to pointer queries and, where it
 * is mapped, gives it a device address. That address is another number than the host pointer, so that the two are not
 * mistaken for each other; copies through it reach the caller's bytes. In mode unified it is the host pointer: private
 * memory cannot be shown at a second address. Registrations belong to the process and outlive devices.
 *
 * Thread safety: callers hold the table lock; host_unregister gives it up while it waits for accesses. */
#include "host_register.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "access.h"
#include "host_blocks.h"
#include "host_memory.h"
#include "runtime.h"
#include "stack.h"
#include "table.h"
#include "vspace.h"

#define SMALL_PAGE (4 * KIB)
#define PAGES_AT_ONCE 65536

static struct range_tree ranges;
static uint64_t all_bytes;

static uint64_t page_end(uint64_t addr) {
    return (addr + SMALL_PAGE - 1) & ~(SMALL_PAGE - 1);
}

/* Whether the host has memory mapped at every page of the range. */
static bool host_has(uint64_t addr, uint64_t bytes) {
    unsigned char *seen = malloc(PAGES_AT_ONCE);
    bool good = seen && addr + bytes >= addr;
    uint64_t end = page_end(addr + bytes);
    for (uint64_t at = addr; good && at < end; at += PAGES_AT_ONCE * SMALL_PAGE) {
        uint64_t len = end - at < PAGES_AT_ONCE * SMALL_PAGE ? end - at : PAGES_AT_ONCE * SMALL_PAGE;
        good = !mincore((void *)(uintptr_t)at, len, seen);
    }
    free(seen);
    return good;
}

/* Whether a byte of the range is registered or pinned already. */
static bool known(uint64_t addr, uint64_t bytes) {
    const struct range *above = range_tree_ceil(&ranges, addr);
    const struct host_block *block = host_block_from(addr);
    return range_tree_at(&ranges, addr) || (above && above->start - addr < bytes) || host_block_holds(addr) ||
           (block && block->range.start - addr < bytes);
}

/* Gives the memory a device address; false when addresses or host memory are short. */
static bool map(struct registration *registration, bool read_only) {
    uint64_t bytes = registration->range.len;
    uint64_t addr;
    registration->device_addr = registration->range.start;
    if (runtime_config()->unified)
        return true;
    if (!vspace_take(VSPACE_DEVICE, page_end(bytes), SMALL_PAGE, true, &addr))
        return false;
    registration->device_addr = addr;
    registration->phys = phys_foreign((void *)(uintptr_t)registration->range.start, bytes, false);
    registration->pages = (struct pages){.bytes = bytes, .count = 1, .single = {.len = bytes}};
    registration->pages.extents = &registration->pages.single;
    registration->region = (struct region){.range = {.start = addr, .len = page_end(bytes)},
                                           .limit = bytes,
                                           .device = host_memory(),
                                           .phys = &registration->phys,
                                           .pages = &registration->pages,
                                           .read_only = read_only};
    if (pagetable_add(&registration->region))
        return true;
    vspace_give(addr, page_end(bytes));
    return false;
}

enum register_result host_register(uint64_t addr, uint64_t bytes, bool mapped, bool read_only) {
    if (addr + bytes >= addr && known(addr, bytes))
        return REGISTER_TWICE;
    if (vspace_holds(addr) || !host_has(addr, bytes))
        return REGISTER_NO_MEMORY;
    struct registration *registration = calloc(1, sizeof(*registration));
    if (!registration)
        return REGISTER_SHORT;
    registration->range = (struct range){.start = addr, .len = bytes};
    registration->serial = host_block_new_serial();
    if (mapped && !map(registration, read_only)) {
        free(registration);
        return REGISTER_SHORT;
    }
    range_tree_insert(&ranges, &registration->range);
    all_bytes += bytes;
    registration->stack = stack_take();
    return REGISTER_DONE;
}

const struct registration *host_register_at(uint64_t addr) {
    const struct registration *registration = (const struct registration *)range_tree_at(&ranges, addr);
    return registration && !registration->region.closing ? registration : NULL;
}

bool host_unregister(uint64_t addr) {
    struct registration *registration = (struct registration *)host_register_at(addr);
    if (!registration || registration->range.start != addr)
        return false;
    const struct range *region = &registration->region.range;
    registration->region.closing = true;
    while (access_overlaps(region->start, region->len) ||
           access_overlaps(registration->range.start, registration->range.len))
        table_wait();
    range_tree_remove(&ranges, &registration->range);
    all_bytes -= registration->range.len;
    if (region->len) {
        pagetable_remove(&registration->region);
        vspace_give(region->start, region->len);
    }
    stack_free(registration->stack);
    free(registration);
    table_wake();
    return true;
}

void host_unregister_all(void) {
    while (ranges.count > 0) {
        const struct registration *range = host_register_from(0);
        while (range && range->region.closing)
            range = host_register_from(range->range.start + 1);
        if (range)
            host_unregister(range->range.start);
        else
            table_wait();
    }
}

const struct registration *host_register_from(uint64_t addr) {
    return (const struct registration *)range_tree_ceil(&ranges, addr);
}

uint64_t host_register_count(void) {
    return ranges.count;
}

uint64_t host_register_bytes(void) {
    return all_bytes;
}
