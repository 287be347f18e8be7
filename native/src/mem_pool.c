/* Stream-ordered pools: a store of device blocks between a program and the allocator.
 *
 *   USED --free call--> PENDING --the stream comes to the free--> FREE --malloc--> USED
 *
 * A block is usable from the call that gave it out. Freeing takes effect in the order of the stream: until the stream
 * comes to it the block is pending and only tasks given later to the same stream may have it, which is safe as they run
 * later. A free block serves anybody, or only the stream that freed it when the pool's attribute says so. When a stream
 * has come to a free, free blocks above the pool's threshold go back to the device; all of them do when the device runs
 * short.
 *
 * A task that frees names its block by address and a count of its lives, so a block that was handed out again or is
 * gone is left alone.
 *
 * Thread safety: callers hold the table lock; it is given up while blocks are made and ended. */
#include "mem_pool.h"

#include <stdlib.h>

#include "acl/acl_base.h"
#include "acl/acl_rt.h"
#include "blocks.h"
#include "device.h"
#include "errors.h"
#include "handles.h"
#include "stream.h"
#include "stream_queue.h"
#include "task.h"

#define ROUNDING 32
#define HUGE_ABOVE MIB
#define OPPORTUNISTIC (ACL_RT_MEM_POOL_REUSE_ALLOW_OPPORTUNISTIC - 1)

enum block_state { USED, PENDING, FREE };

struct pool_block {
    struct range range;          /* addresses */
    struct mem_pool *pool;       /* whose it is */
    enum block_state state;      /* as above */
    const void *stream;          /* handle of the stream that freed it */
    uint64_t life;               /* how often it was given out */
    struct pool_block *next;     /* blocks of the pool */
    struct pool_block *previous; /* blocks of the pool */
};

struct free_task {
    struct task task;
    uint64_t addr; /* of the block */
    uint64_t life; /* the one that ends */
};

static struct range_tree all_blocks;
static uint64_t pools;

struct mem_pool *mem_pool_make(struct device *device, uint64_t max_bytes) {
    struct mem_pool *pool = calloc(1, sizeof(*pool));
    void *handle = pool ? handle_new(HANDLE_POOL, pool) : NULL;
    if (!handle) {
        free(pool);
        return NULL;
    }
    *pool = (struct mem_pool){.handle = handle, .device = device, .max_bytes = max_bytes, .reuse = {1, 1, 1}};
    device->handles++;
    pools++;
    return pool;
}

struct mem_pool *mem_pool_at(const void *handle) {
    struct mem_pool *pool = handle_object(HANDLE_POOL, handle);
    return pool && !pool->device->closing ? pool : NULL;
}

static struct pool_block *block_of(uint64_t addr) {
    struct pool_block *block = (struct pool_block *)range_tree_at(&all_blocks, addr);
    return block && block->range.start == addr ? block : NULL;
}

static void link_block(struct mem_pool *pool, struct pool_block *block) {
    block->pool = pool;
    block->next = pool->blocks;
    if (block->next)
        block->next->previous = block;
    pool->blocks = block;
    range_tree_insert(&all_blocks, &block->range);
    pool->reserved += block->range.len;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
}

static void unlink_block(struct pool_block *block) {
    struct mem_pool *pool = block->pool;
    if (block->previous)
        block->previous->next = block->next;
    else
        pool->blocks = block->next;
    if (block->next)
        block->next->previous = block->previous;
    range_tree_remove(&all_blocks, &block->range);
    pool->reserved -= block->range.len;
    free(block);
}

/* Gives one free block back to the device; false when there is none. */
static bool give_one(struct mem_pool *pool) {
    struct pool_block *block = pool->blocks;
    while (block && block->state != FREE)
        block = block->next;
    if (!block)
        return false;
    uint64_t addr = block->range.start;
    unlink_block(block);
    block_leave_pool(addr);
    block_free(addr);
    return true;
}

/* The pool may end while a block is being given back, so it is looked up again each time. */
bool mem_pool_trim(struct mem_pool *pool, uint64_t keep) {
    bool any = false;
    struct device *device = pool->device;
    const void *handle = pool->handle;
    device_hold(device);
    while (mem_pool_at(handle) == pool && pool->reserved > keep && give_one(pool))
        any = true;
    device_release(device);
    return any;
}

bool mem_pools_trim(const struct device *device) {
    bool any = false;
    size_t position = 0;
    for (void *handle; (handle = handle_next(HANDLE_POOL, &position));) {
        struct mem_pool *pool = mem_pool_at(handle);
        if (pool && pool->device == device)
            any = mem_pool_trim(pool, 0) || any;
    }
    return any;
}

void mem_pool_end(struct mem_pool *pool) {
    struct device *device = pool->device;
    const void *handle = pool->handle;
    mem_pool_trim(pool, 0);
    if (mem_pool_at(handle) != pool)
        return;
    handle_end(handle);
    pool->handle = NULL;
    pools--;
    if (pool->blocks)
        return;
    free(pool);
    device->handles--;
    device_close_if_idle(device);
}

/* Whether the block may serve a request of the stream. */
static bool fits(const struct mem_pool *pool, const struct pool_block *block, uint64_t bytes, const void *stream) {
    bool same_stream = block->stream == stream;
    bool ready =
        block->state == FREE ? same_stream || pool->reuse[OPPORTUNISTIC] : block->state == PENDING && same_stream;
    return ready && block->range.len >= bytes && block->range.len / 2 <= bytes;
}

/* The smallest block of the pool that may serve the request, or null. */
static struct pool_block *find(const struct mem_pool *pool, uint64_t bytes, const void *stream) {
    struct pool_block *best = NULL;
    for (struct pool_block *block = pool->blocks; block; block = block->next) {
        if (fits(pool, block, bytes, stream) && (!best || block->range.len < best->range.len))
            best = block;
    }
    return best;
}

static void use(struct pool_block *block) {
    struct mem_pool *pool = block->pool;
    if (block->state == FREE)
        pool->used += block->range.len;
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    block->state = USED;
    block->life++;
}

/* Makes a block of the pool; null when memory is short or the pool ended meanwhile. */
static struct pool_block *make(struct mem_pool *pool, uint64_t bytes) {
    uint64_t addr;
    const void *handle = pool->handle;
    struct block_request request = {.asked = bytes, .rounded = (bytes + ROUNDING - 1) & ~(uint64_t)(ROUNDING - 1)};
    request.cls = request.rounded > HUGE_ABOVE ? PAGE_2M : PAGE_4K;
    request.fall_back = true;
    struct pool_block *block = calloc(1, sizeof(*block));
    if (!block || !block_malloc(pool->device, &request, &addr)) {
        free(block);
        return NULL;
    }
    block->range = (struct range){.start = addr, .len = block_at(addr)->range.len};
    block->state = FREE;
    if (mem_pool_at(handle) != pool || (pool->max_bytes && pool->reserved + block->range.len > pool->max_bytes)) {
        block_free(addr);
        free(block);
        return NULL;
    }
    block_join_pool(addr);
    link_block(pool, block);
    return block;
}

bool mem_pool_malloc(struct mem_pool *pool, uint64_t bytes, const struct stream *stream, uint64_t *addr) {
    struct pool_block *block = bytes <= UINT64_MAX - ROUNDING ? find(pool, bytes, stream->handle) : NULL;
    if (!block && pool->max_bytes && pool->reserved + bytes > pool->max_bytes) {
        const void *handle = pool->handle;
        mem_pool_trim(pool, 0);
        if (mem_pool_at(handle) != pool)
            return false;
    }
    if (!block && bytes <= UINT64_MAX - ROUNDING)
        block = make(pool, bytes);
    if (!block)
        return false;
    use(block);
    *addr = block->range.start;
    return true;
}

/* The block of a task when it still waits for that task, or null. */
static struct pool_block *pending(const struct task *task) {
    const struct free_task *wanted = (const struct free_task *)task;
    struct pool_block *block = block_of(wanted->addr);
    return block && block->state == PENDING && block->life == wanted->life ? block : NULL;
}

static void become_free(struct pool_block *block) {
    block->state = FREE;
    block->pool->used -= block->range.len;
}

/* Gives a block of a pool that was destroyed back; the pool goes with the last one. */
static void give_last(struct pool_block *block) {
    struct mem_pool *pool = block->pool;
    struct device *device = pool->device;
    uint64_t addr = block->range.start;
    unlink_block(block);
    block_leave_pool(addr);
    bool empty = !pool->blocks;
    if (empty)
        free(pool);
    block_free(addr);
    if (!empty)
        return;
    device->handles--;
    device_close_if_idle(device);
}

static int run(struct task *task) {
    struct pool_block *block = pending(task);
    if (!block)
        return ACL_SUCCESS;
    become_free(block);
    if (block->pool->handle)
        mem_pool_trim(block->pool, block->pool->threshold);
    else
        give_last(block);
    return ACL_SUCCESS;
}

/* A task that was dropped frees too; what was destroyed meanwhile goes with its device. */
static void end(struct task *task) {
    struct pool_block *block = pending(task);
    if (block)
        become_free(block);
}

int mem_pool_free(uint64_t addr, struct stream *stream) {
    static const struct task_kind kind = {.run = run, .end = end};
    struct pool_block *block = block_of(addr);
    if (!block || block->state != USED)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "0x%llx is no block of a pool that is in use",
                           (unsigned long long)addr);
    struct free_task *task = task_new(sizeof(*task), &kind, FUNCTION_aclrtMemPoolFreeAsync);
    if (!task)
        return ACL_ERROR_RT_RESOURCE_ALLOC_FAIL;
    task->addr = addr;
    task->life = block->life;
    block->state = PENDING;
    block->stream = stream->handle;
    return stream_submit(stream, &task->task);
}

void mem_pools_drop_device(struct device *device) {
    for (struct range *range = range_tree_ceil(&all_blocks, 0); range;) {
        struct pool_block *block = (struct pool_block *)range;
        struct mem_pool *pool = block->pool;
        range = range_tree_ceil(&all_blocks, range->start + range->len);
        if (pool->device != device)
            continue;
        unlink_block(block);
        if (!pool->handle && !pool->blocks) {
            free(pool);
            device->handles--;
        }
    }
    size_t position = 0;
    for (void *handle; (handle = handle_next(HANDLE_POOL, &position));) {
        struct mem_pool *pool = handle_object(HANDLE_POOL, handle);
        if (pool->device != device)
            continue;
        handle_end(handle);
        pools--;
        free(pool);
        device->handles--;
    }
}

uint64_t mem_pools_count(void) {
    return pools;
}

const struct mem_pool *mem_pools_next(size_t *position) {
    const void *handle = handle_next(HANDLE_POOL, position);
    return handle ? handle_object(HANDLE_POOL, handle) : NULL;
}
