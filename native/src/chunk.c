/* Chunks: address range, pages and region made and ended together. Either all of it exists or nothing.
 *
 * Thread safety: callers hold the table lock; chunk_make gives it up where the host is asked for huge pages, chunk_end
 * while bytes go back to the kernel. The device is held meanwhile. */
#include "chunk.h"

#include <stdlib.h>

#include "device.h"
#include "host_view.h"

/* Gives the chunk its addresses and enters it; false when they are short. */
static bool place(struct chunk *chunk, const struct chunk_plan *plan) {
    uint64_t addr;
    if (!vspace_take(plan->window, chunk->taken_bytes, plan->align, plan->fresh_addresses, &addr))
        return false;
    chunk->region.range.start = addr;
    if (pagetable_add(&chunk->region)) {
        if (host_view_open(&chunk->region))
            return true;
        pagetable_remove(&chunk->region);
    }
    vspace_give(addr, chunk->taken_bytes);
    return false;
}

struct chunk *chunk_make(struct device *device, const struct chunk_plan *plan) {
    struct chunk *chunk = calloc(1, sizeof(*chunk));
    if (!chunk)
        return NULL;
    if (!device_take_pages(device, plan->cls, plan->bytes / page_class_bytes(plan->cls), &chunk->pages)) {
        free(chunk);
        return NULL;
    }
    chunk->taken_bytes = plan->bytes + plan->gap;
    chunk->region = (struct region){.range.len = plan->bytes,
                                    .limit = plan->limit,
                                    .device = device,
                                    .phys = &device->phys,
                                    .pages = &chunk->pages};
    if (place(chunk, plan))
        return chunk;
    device_give_pages(device, &chunk->pages);
    free(chunk);
    return NULL;
}

static void forget_addresses(struct chunk *chunk) {
    host_view_close(&chunk->region);
    pagetable_remove(&chunk->region);
    vspace_give(chunk->region.range.start, chunk->taken_bytes);
}

void chunk_end(struct chunk *chunk) {
    forget_addresses(chunk);
    device_give_pages(chunk->region.device, &chunk->pages);
    free(chunk);
}

void chunk_drop(struct chunk *chunk) {
    forget_addresses(chunk);
    phys_give(chunk->region.phys, &chunk->pages);
    free(chunk);
}
