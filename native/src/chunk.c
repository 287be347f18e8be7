/* Chunks: address range, pages and region made and ended together. Either all of it exists or nothing.
 *
 * Thread safety: callers hold the table lock; chunk_end gives it up while bytes go back to the kernel and holds the
 * device meanwhile. */
#include "chunk.h"

#include <stdlib.h>

#include "device.h"
#include "table.h"
#include "vspace.h"

struct chunk *chunk_make(struct device *device, const struct chunk_plan *plan) {
    uint64_t addr;
    uint64_t taken = plan->bytes + plan->gap;
    struct chunk *chunk = calloc(1, sizeof(*chunk));
    if (!chunk)
        return NULL;
    if (!phys_take(&device->phys, plan->cls, plan->bytes / page_class_bytes(plan->cls), &chunk->pages)) {
        free(chunk);
        return NULL;
    }
    if (!vspace_take(taken, plan->align, plan->fresh_addresses, &addr)) {
        phys_give(&device->phys, &chunk->pages);
        free(chunk);
        return NULL;
    }
    chunk->taken_bytes = taken;
    chunk->region = (struct region){
        .range = {.start = addr, .len = plan->bytes}, .limit = plan->limit, .device = device, .pages = &chunk->pages};
    pagetable_add(&chunk->region);
    return chunk;
}

static void give_back(struct chunk *chunk) {
    phys_give(&chunk->region.device->phys, &chunk->pages);
    free(chunk);
}

static void forget_addresses(struct chunk *chunk) {
    pagetable_remove(&chunk->region);
    vspace_give(chunk->region.range.start, chunk->taken_bytes);
}

void chunk_end(struct chunk *chunk) {
    struct device *device = chunk->region.device;
    forget_addresses(chunk);
    if (phys_collect(&device->phys, &chunk->pages)) {
        device_hold(device);
        table_unlock();
        phys_punch(&device->phys, &chunk->pages);
        table_lock();
        device_release(device);
    }
    give_back(chunk);
}

void chunk_drop(struct chunk *chunk) {
    forget_addresses(chunk);
    give_back(chunk);
}
