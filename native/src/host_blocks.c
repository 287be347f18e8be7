/* Pinned host memory. Each block is a mapping of its own: it starts on a page, costs nothing until it is touched and is
 * gone after the free, so a late access faults. The memory is not locked; pinning decides how copies behave, not where
 * pages are. Blocks outlive devices.
 *
 * Thread safety: callers hold the table lock; freeing gives it up while it waits for copies and unmaps. */
#include "host_blocks.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "access.h"
#include "config.h"
#include "runtime.h"
#include "stack.h"
#include "table.h"

#define LARGEST_BLOCK TIB

static struct range_tree blocks;
static uint64_t all_bytes;
static uint64_t last_serial;

uint64_t host_block_new_serial(void) {
    return ++last_serial;
}

void *host_block_malloc(uint64_t bytes) {
    uint64_t len = (bytes + 4 * KIB - 1) & ~(4 * KIB - 1);
    struct host_block *block = bytes <= LARGEST_BLOCK ? calloc(1, sizeof(*block)) : NULL;
    if (!block)
        return NULL;
    void *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        free(block);
        return NULL;
    }
    block->range.start = (uint64_t)(uintptr_t)at;
    block->range.len = len;
    block->asked = bytes;
    block->serial = host_block_new_serial();
    range_tree_insert(&blocks, &block->range);
    all_bytes += len;
    block->stack = stack_take();
    return at;
}

static void end(struct host_block *block) {
    block->closing = true;
    while (access_overlaps(block->range.start, block->range.len))
        table_wait();
    range_tree_remove(&blocks, &block->range);
    all_bytes -= block->range.len;
    table_wake();
    table_unlock();
    munmap((void *)(uintptr_t)block->range.start, block->range.len);
    table_lock();
    stack_free(block->stack);
    free(block);
}

bool host_block_free(uint64_t addr) {
    struct host_block *block = (struct host_block *)range_tree_floor(&blocks, addr);
    if (!block || block->range.start != addr || block->closing)
        return false;
    end(block);
    return true;
}

static const struct host_block *live_at(uint64_t addr) {
    const struct host_block *block = (const struct host_block *)range_tree_at(&blocks, addr);
    return block && !block->closing ? block : NULL;
}

bool host_block_holds(uint64_t addr) {
    return live_at(addr);
}

uint64_t host_block_serial(uint64_t addr) {
    const struct host_block *block = live_at(addr);
    return block ? block->serial : 0;
}

bool host_block_covers(uint64_t addr, uint64_t len, uint64_t serial) {
    const struct host_block *block = live_at(addr);
    if (!block || block->serial != serial)
        return false;
    uint64_t limit = runtime_config()->profile->whole_pages ? block->range.len : block->asked;
    uint64_t offset = addr - block->range.start;
    return offset <= limit && len <= limit - offset;
}

const struct host_block *host_block_from(uint64_t addr) {
    return (const struct host_block *)range_tree_ceil(&blocks, addr);
}

uint64_t host_blocks_count(void) {
    return blocks.count;
}

uint64_t host_blocks_bytes(void) {
    return all_bytes;
}

void host_blocks_free_all(void) {
    struct host_block *block;
    while ((block = (struct host_block *)range_tree_ceil(&blocks, 0))) {
        while (block && block->closing)
            block = (struct host_block *)range_tree_ceil(&blocks, block->range.start + 1);
        if (block)
            end(block);
        else
            table_wait();
    }
}
