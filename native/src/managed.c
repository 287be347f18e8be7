/* Managed memory. On a card pages move to whoever touches them; here host and devices are one, so a piece is host
 * memory that is mapped at its address, in a window of its own. It belongs to no device and outlives them.
 *
 * Thread safety: callers hold the table lock; managed_free gives it up while it waits for accesses and while bytes go
 * back to the kernel. */
#include "managed.h"

#include <stdlib.h>

#include "access.h"
#include "chunk.h"
#include "device.h"
#include "host_memory.h"
#include "table.h"

#define UNIT (2 * MIB)

/* One piece. */
struct managed {
    struct range range;         /* addresses */
    struct chunk *chunk;        /* its pages */
    struct managed_unit *units; /* what was said about each 2 MiB of it */
};

static struct range_tree pieces;
static uint64_t all_bytes;

static struct chunk *make_chunk(uint64_t len) {
    struct chunk_plan plan = {
        .cls = PAGE_2M, .window = VSPACE_MANAGED, .bytes = len, .limit = len, .align = UNIT, .fresh_addresses = true};
    return chunk_make(host_memory(), &plan);
}

bool managed_malloc(uint64_t bytes, uint64_t *addr) {
    uint64_t len = (bytes + UNIT - 1) & ~(UNIT - 1);
    struct managed *piece = len && host_memory_open() ? calloc(1, sizeof(*piece)) : NULL;
    if (!piece)
        return false;
    piece->units = calloc(len / UNIT, sizeof(*piece->units));
    host_memory()->handles++;
    piece->chunk = piece->units ? make_chunk(len) : NULL;
    if (!piece->chunk) {
        host_memory()->handles--;
        host_memory_close_if_idle();
        free(piece->units);
        free(piece);
        return false;
    }
    piece->range = (struct range){.start = piece->chunk->region.range.start, .len = len};
    range_tree_insert(&pieces, &piece->range);
    all_bytes += len;
    *addr = piece->range.start;
    return true;
}

static struct managed *piece_at(uint64_t addr) {
    struct managed *piece = (struct managed *)range_tree_at(&pieces, addr);
    return piece && !piece->chunk->region.closing ? piece : NULL;
}

bool managed_free(uint64_t addr) {
    struct managed *piece = piece_at(addr);
    if (!piece || piece->range.start != addr)
        return false;
    piece->chunk->region.closing = true;
    while (access_overlaps(addr, piece->range.len))
        table_wait();
    range_tree_remove(&pieces, &piece->range);
    all_bytes -= piece->range.len;
    chunk_end(piece->chunk);
    free(piece->units);
    free(piece);
    host_memory()->handles--;
    host_memory_close_if_idle();
    table_wake();
    return true;
}

const struct range *managed_at(uint64_t addr) {
    const struct managed *piece = piece_at(addr);
    return piece ? &piece->range : NULL;
}

const struct range *managed_from(uint64_t addr) {
    return range_tree_ceil(&pieces, addr);
}

struct managed_unit *managed_units(uint64_t addr, uint64_t len, size_t *count) {
    const struct managed *piece = piece_at(addr);
    uint64_t offset = piece ? addr - piece->range.start : 0;
    if (!piece || len > piece->range.len - offset)
        return NULL;
    *count = (offset + len - 1) / UNIT - offset / UNIT + 1;
    return piece->units + offset / UNIT;
}

void managed_free_all(void) {
    while (pieces.count > 0) {
        const struct range *range = managed_from(0);
        while (range && !piece_at(range->start))
            range = managed_from(range->start + 1);
        if (range)
            managed_free(range->start);
        else
            table_wait();
    }
}

uint64_t managed_count(void) {
    return pieces.count;
}

uint64_t managed_bytes(void) {
    return all_bytes;
}
