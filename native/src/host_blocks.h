/* Pinned host memory; see host_blocks.c. */
#ifndef HOSTACL_HOST_BLOCKS_H
#define HOSTACL_HOST_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "range_tree.h"

struct stack;

/* One live block of host memory. */
struct host_block {
    struct range range;  /* host addresses, whole pages */
    uint64_t asked;      /* bytes the caller asked for */
    bool closing;        /* being freed: unknown to everybody else */
    struct stack *stack; /* the calls that made it */
};

/* Gives out host memory; null when the host has none. */
void *host_block_malloc(uint64_t bytes);

/* Frees the block that starts at addr; false when there is none. Waits for copies that use it. */
bool host_block_free(uint64_t addr);

/* Whether addr is inside a block. */
bool host_block_holds(uint64_t addr);

/* The live block that starts at or above addr, or null; for walks over all blocks. */
const struct host_block *host_block_from(uint64_t addr);

/* Live blocks and the bytes of their pages. */
uint64_t host_blocks_count(void);
uint64_t host_blocks_bytes(void);

/* Frees every block; waits for copies. */
void host_blocks_free_all(void);

#endif
