/* Blocks of device memory.
 *
 * In the strict profile a block is a chunk of its own: exactly its pages, a gap of one page behind it so that a range
 * that runs out of the block runs into nothing, addresses that were not used before, and nothing left after the free.
 * In the card profile blocks up to 512 MiB are cut from the driver's heaps and go back to them.
 *
 * A block that is its own chunk is found through the page table, so many of them cost one ordered tree, not two; those
 * inside a heap have a tree of their own.
 *
 * A block is taken away in this order: nobody finds it any more, accesses under way end, its addresses and pages go.
 *
 * Thread safety: callers hold the table lock; block_free gives it up while it waits for accesses and while bytes go
 * back to the kernel. */
#include "blocks.h"

#include <stdlib.h>

#include "access.h"
#include "device.h"
#include "poison.h"
#include "runtime.h"
#include "share.h"
#include "stack.h"
#include "table.h"

#define LARGEST_BLOCK (128 * GIB)
#define LARGEST_HEAP_BLOCK (512 * MIB)
#define GAP_BYTES (4 * KIB)

static struct range_tree heap_blocks;
static struct block *all_blocks;
static uint64_t all_count;
static uint64_t all_bytes;

static struct chunk *own_chunk(struct device *device, enum page_class cls, uint64_t len, uint64_t asked) {
    bool whole_pages = runtime_config()->profile->whole_pages;
    struct chunk_plan plan = {.cls = cls, .bytes = len, .align = page_class_bytes(cls)};
    plan.limit = whole_pages ? len : asked;
    plan.gap = whole_pages ? 0 : GAP_BYTES;
    plan.fresh_addresses = !whole_pages;
    return chunk_make(device, &plan);
}

/* Fills in where the block is; false when memory of that class is short. */
static bool place(struct device *device, const struct block_request *request, enum page_class cls,
                  struct block *block) {
    uint64_t page_bytes = page_class_bytes(cls);
    uint64_t len = (request->rounded + page_bytes - 1) & ~(page_bytes - 1);
    if (runtime_config()->profile->driver_heap && len <= LARGEST_HEAP_BLOCK && cls != PAGE_1G) {
        block->chunk = driver_heap_take(device, cls, request->p2p, len, &block->range.start);
    } else {
        block->chunk = own_chunk(device, cls, len, request->asked);
        block->range.start = block->chunk ? block->chunk->region.range.start : 0;
    }
    block->range.len = len;
    return block->chunk;
}

static bool place_somewhere(struct device *device, const struct block_request *request, struct block *block) {
    return place(device, request, request->cls, block) ||
           (request->fall_back && request->cls != PAGE_4K && place(device, request, PAGE_4K, block));
}

/* Tries to place the block, again after the driver gave up what it keeps. */
static bool place_or_trim(struct device *device, const struct block_request *request, struct block *block) {
    if (place_somewhere(device, request, block))
        return true;
    return device_make_room(device) && place_somewhere(device, request, block);
}

/* Makes a placed block known. */
static void enter(struct block *block) {
    if (block->chunk->heap)
        range_tree_insert(&heap_blocks, &block->range);
    else
        block->chunk->region.block = block;
    block->next = all_blocks;
    if (all_blocks)
        all_blocks->previous = block;
    all_blocks = block;
    all_count++;
    all_bytes += block->range.len;
}

bool block_malloc(struct device *device, const struct block_request *request, uint64_t *addr) {
    if (request->rounded > LARGEST_BLOCK)
        return false;
    struct block *block = calloc(1, sizeof(*block));
    if (!block)
        return false;
    block->asked = request->asked;
    if (!place_or_trim(device, request, block)) {
        free(block);
        return false;
    }
    enter(block);
    block->stack = stack_take();
    *addr = block->range.start;
    return true;
}

static void forget(struct block *block) {
    if (block->share)
        share_drop(block->share);
    if (block->chunk->heap)
        range_tree_remove(&heap_blocks, &block->range);
    else
        block->chunk->region.block = NULL;
    *(block->previous ? &block->previous->next : &all_blocks) = block->next;
    if (block->next)
        block->next->previous = block->previous;
    all_count--;
    all_bytes -= block->range.len;
    stack_free(block->stack);
    free(block);
}

/* Frees a block that has its chunk for itself. */
static void free_own(struct block *block) {
    struct chunk *chunk = block->chunk;
    struct device *device = chunk->region.device;
    block->closing = chunk->region.closing = true;
    device_hold(device);
    while (access_overlaps(block->range.start, block->range.len))
        table_wait();
    forget(block);
    chunk_end(chunk);
    device_release(device);
}

struct block *block_at(uint64_t addr) {
    const struct region *region = pagetable_any(addr);
    struct block *block = region ? region->block : NULL;
    if (!block)
        block = (struct block *)range_tree_at(&heap_blocks, addr);
    return block && !block->closing && !block->chunk->region.device->closing ? block : NULL;
}

/* Ends the offer of a block; false when another process uses it, the offer then stays. */
static bool end_share(struct block *block) {
    if (block->share && !share_end(block->share))
        return false;
    block->share = NULL;
    return true;
}

bool block_used_elsewhere(uint64_t addr) {
    struct block *block = block_at(addr);
    return block && block->range.start == addr && !end_share(block);
}

bool block_end_share(uint64_t token) {
    const struct share *share = share_find(token);
    struct block *block = share ? block_at(share_owner(share)) : NULL;
    if (block)
        end_share(block);
    return block;
}

void block_join_pool(uint64_t addr) {
    block_at(addr)->pooled = true;
}

void block_leave_pool(uint64_t addr) {
    struct block *block = block_at(addr);
    if (block)
        block->pooled = false;
}

/* The block that holds all of a range, or null. */
static struct block *block_around(uint64_t addr, uint64_t len) {
    struct block *block = block_at(addr);
    return block && len <= block->range.len - (addr - block->range.start) ? block : NULL;
}

bool block_allow_device(uint64_t addr, uint64_t len, const struct device *device) {
    struct block *block = block_around(addr, len);
    if (block)
        block->reach |= (uint64_t)1 << device->id;
    return block;
}

bool block_lets(uint64_t addr, uint64_t len, const struct device *device) {
    const struct block *block = block_around(addr, len);
    return block && block->reach >> device->id & 1;
}

bool block_free(uint64_t addr) {
    struct block *block = block_at(addr);
    if (!block || block->range.start != addr || block->pooled)
        return false;
    if (block->chunk->heap) {
        block->closing = true;
        poison_freed_bytes(block->chunk->region.device, addr, block->range.len);
        driver_heap_give(block->chunk, addr, block->range.len);
        forget(block);
    } else {
        free_own(block);
    }
    return true;
}

const struct block *blocks_first(void) {
    return all_blocks;
}

uint64_t blocks_count(void) {
    return all_count;
}

uint64_t blocks_bytes(void) {
    return all_bytes;
}

void blocks_drop_device(struct device *device) {
    for (struct block *block = all_blocks, *next; block; block = next) {
        struct chunk *chunk = block->chunk;
        next = block->next;
        if (chunk->region.device == device) {
            bool own = !chunk->heap;
            forget(block);
            if (own)
                chunk_drop(chunk);
        }
    }
    driver_heap_drop(device);
}
