/* A piece of device address space with pages of its own behind it; see chunk.c. */
#ifndef HOSTACL_CHUNK_H
#define HOSTACL_CHUNK_H

#include "pagetable.h"
#include "vspace.h"

struct device;
struct driver_heap;

struct chunk {
    struct region region;     /* place in the page table */
    struct pages pages;       /* what backs it */
    uint64_t taken_bytes;     /* device addresses taken, the gap behind included */
    struct driver_heap *heap; /* heap it serves (profile card), or null: it is one block */
    struct chunk *next;       /* chunks of the heap */
    struct chunk *previous;   /* chunks of the heap */
    uint32_t blocks;          /* live blocks cut from it */
};

/* How a chunk is made. */
struct chunk_plan {
    enum page_class cls;       /* pages behind it */
    enum vspace_window window; /* where its addresses come from */
    uint64_t bytes;            /* whole pages */
    uint64_t limit;            /* bytes that may be touched */
    uint64_t align;            /* of the address */
    uint64_t gap;              /* addresses behind it that stay unused */
    bool fresh_addresses;      /* prefer addresses not used before */
};

/* Makes a chunk; null when the pages or the addresses are short. May give the table lock up. */
struct chunk *chunk_make(struct device *device, const struct chunk_plan *plan);

/* Takes a chunk away: addresses at once, pages when the host's kernel has the bytes back. Gives the table lock up while
 * that lasts. Nothing may access the chunk any more. */
void chunk_end(struct chunk *chunk);

/* The same for a device that is torn down: its bytes go with its memory file. */
void chunk_drop(struct chunk *chunk);

#endif
