/* Imported blocks: memory of another process at a device address of this one. The pages stay those of the exporter and
 * count there; here only addresses are taken.
 *
 * Thread safety: callers hold the table lock; ipc_block_end gives it up while it waits for accesses. */
#include "ipc_memory.h"

#include <stdlib.h>

#include "access.h"
#include "device.h"
#include "host_view.h"
#include "share.h"
#include "stack.h"
#include "table.h"
#include "vspace.h"

static struct ipc_block *all;
static uint64_t count;

struct ipc_block *ipc_block_make(struct device *device, struct import *import) {
    uint64_t addr;
    struct ipc_block *block = calloc(1, sizeof(*block));
    uint64_t bytes = import->pages.bytes;
    if (!block || !vspace_take(VSPACE_DEVICE, bytes, page_class_bytes(import->pages.cls), false, &addr)) {
        free(block);
        return NULL;
    }
    block->import = import;
    block->region = (struct region){.range = {.start = addr, .len = bytes},
                                    .limit = bytes,
                                    .device = device,
                                    .phys = &import->phys,
                                    .pages = &import->pages};
    bool entered = pagetable_add(&block->region);
    if (!entered || !host_view_open(&block->region)) {
        if (entered)
            pagetable_remove(&block->region);
        vspace_give(addr, bytes);
        free(block);
        return NULL;
    }
    block->next = all;
    all = block;
    count++;
    device->handles++;
    block->stack = stack_take();
    return block;
}

struct ipc_block *ipc_block_find(uint64_t token) {
    struct ipc_block *block = all;
    while (block && (block->import->token != token || block->region.closing))
        block = block->next;
    return block;
}

const struct ipc_block *ipc_blocks_first(void) {
    return all;
}

static void drop(struct ipc_block *block) {
    struct ipc_block **link = &all;
    while (*link != block)
        link = &(*link)->next;
    *link = block->next;
    count--;
    block->region.device->handles--;
    host_view_close(&block->region);
    pagetable_remove(&block->region);
    vspace_give(block->region.range.start, block->region.range.len);
    import_close(block->import);
    stack_free(block->stack);
    free(block);
}

void ipc_block_end(struct ipc_block *block) {
    struct device *device = block->region.device;
    block->region.closing = true;
    device_hold(device);
    while (access_overlaps(block->region.range.start, block->region.range.len))
        table_wait();
    drop(block);
    device_release(device);
    device_close_if_idle(device);
}

void ipc_blocks_drop_device(struct device *device) {
    for (struct ipc_block *block = all, *next; block; block = next) {
        next = block->next;
        if (block->region.device == device)
            drop(block);
    }
}

uint64_t ipc_blocks_count(void) {
    return count;
}
