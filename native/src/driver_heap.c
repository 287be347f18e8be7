/* The driver's heaps, as the card has them (profile card).
 *
 * Memory comes in chunks of a multiple of 2 MiB, also for small pages; blocks are cut from the lowest span that fits. A
 * freed block goes back to its heap with its pages: free memory does not rise and the address still answers, until
 * pages run short and chunks without blocks are given up. Blocks above 512 MiB never come here.
 *
 * Thread safety: callers hold the table lock; driver_heap_trim may give it up. */
#include "driver_heap.h"

#include <stdlib.h>

#include "access.h"
#include "chunk.h"
#include "device.h"

#define CHUNK_BYTES (2 * MIB)

/* A free piece of a chunk. */
struct span {
    struct range range;  /* where it is */
    struct chunk *chunk; /* what it is a piece of */
};

static struct driver_heap *heap_of(struct device *device, enum page_class cls, bool p2p) {
    int kind = cls == PAGE_2M ? HEAP_HUGE : HEAP_NORMAL;
    return &device->heaps[p2p ? kind + HEAP_NORMAL_P2P : kind];
}

static struct span *add_span(struct driver_heap *heap, struct chunk *chunk, uint64_t start, uint64_t len) {
    struct span *span = calloc(1, sizeof(*span));
    if (!span)
        return NULL;
    *span = (struct span){.range = {.start = start, .len = len}, .chunk = chunk};
    range_tree_insert(&heap->spans, &span->range);
    return span;
}

static void remove_span(struct driver_heap *heap, struct span *span) {
    range_tree_remove(&heap->spans, &span->range);
    free(span);
}

static void link_chunk(struct driver_heap *heap, struct chunk *chunk) {
    chunk->heap = heap;
    chunk->next = heap->chunks;
    if (chunk->next)
        chunk->next->previous = chunk;
    heap->chunks = chunk;
}

/* Takes a chunk and its spans out of its heap. */
static void unlink_chunk(struct chunk *chunk) {
    struct driver_heap *heap = chunk->heap;
    const struct range *range = &chunk->region.range;
    struct span *span;
    while ((span = (struct span *)range_tree_ceil(&heap->spans, range->start)) && span->chunk == chunk)
        remove_span(heap, span);
    if (chunk->previous)
        chunk->previous->next = chunk->next;
    else
        heap->chunks = chunk->next;
    if (chunk->next)
        chunk->next->previous = chunk->previous;
}

static struct span *add_chunk(struct driver_heap *heap, struct device *device, enum page_class cls, uint64_t len) {
    uint64_t bytes = (len + CHUNK_BYTES - 1) & ~(CHUNK_BYTES - 1);
    struct chunk *chunk =
        chunk_make(device, &(struct chunk_plan){.cls = cls, .bytes = bytes, .limit = bytes, .align = CHUNK_BYTES});
    if (!chunk)
        return NULL;
    link_chunk(heap, chunk);
    struct span *span = add_span(heap, chunk, chunk->region.range.start, bytes);
    if (!span) {
        unlink_chunk(chunk);
        chunk_drop(chunk);
    }
    return span;
}

struct chunk *driver_heap_take(struct device *device, enum page_class cls, bool p2p, uint64_t len, uint64_t *addr) {
    struct driver_heap *heap = heap_of(device, cls, p2p);
    struct span *span = (struct span *)range_tree_fit(&heap->spans, 0, len, 1, addr);
    if (!span)
        span = add_chunk(heap, device, cls, len);
    if (!span)
        return NULL;
    struct chunk *chunk = span->chunk;
    *addr = span->range.start;
    range_tree_remove(&heap->spans, &span->range);
    span->range.start += len;
    span->range.len -= len;
    if (span->range.len)
        range_tree_insert(&heap->spans, &span->range);
    else
        free(span);
    chunk->blocks++;
    return chunk;
}

void driver_heap_give(struct chunk *chunk, uint64_t addr, uint64_t len) {
    struct driver_heap *heap = chunk->heap;
    struct span *below = (struct span *)range_tree_floor(&heap->spans, addr);
    struct span *above = (struct span *)range_tree_ceil(&heap->spans, addr);
    chunk->blocks--;
    if (below && below->chunk == chunk && below->range.start + below->range.len == addr) {
        addr = below->range.start;
        len += below->range.len;
        remove_span(heap, below);
    }
    if (above && above->chunk == chunk && addr + len == above->range.start) {
        len += above->range.len;
        remove_span(heap, above);
    }
    /* Without host memory for the span the piece stays unused until its chunk goes. */
    add_span(heap, chunk, addr, len);
}

/* A chunk that holds no block and that nothing accesses, or null. */
static struct chunk *idle_chunk(const struct driver_heap *heap) {
    for (struct chunk *chunk = heap->chunks; chunk; chunk = chunk->next) {
        if (!chunk->blocks && !access_overlaps(chunk->region.range.start, chunk->region.range.len))
            return chunk;
    }
    return NULL;
}

bool driver_heap_trim(struct device *device) {
    bool any = false;
    for (int kind = 0; kind < DRIVER_HEAPS; kind++) {
        for (struct chunk *chunk; (chunk = idle_chunk(&device->heaps[kind]));) {
            unlink_chunk(chunk);
            chunk_end(chunk);
            any = true;
        }
    }
    return any;
}

void driver_heap_warm_up(struct device *device) {
    add_chunk(&device->heaps[HEAP_NORMAL], device, PAGE_4K, CHUNK_BYTES);
}

void driver_heap_drop(struct device *device) {
    for (int kind = 0; kind < DRIVER_HEAPS; kind++) {
        for (struct chunk *chunk; (chunk = device->heaps[kind].chunks);) {
            unlink_chunk(chunk);
            chunk_drop(chunk);
        }
    }
}
