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
    uint64_t serial;     /* tells it from later blocks at the same place, from 1 */
    bool closing;        /* being freed: unknown to everybody else */
    struct stack *stack; /* the calls that made it */
};

/* Gives out host memory; null when the host has none. */
void *host_block_malloc(uint64_t bytes);

/* Frees the block that starts at addr; false when there is none. Waits for copies that use it. */
bool host_block_free(uint64_t addr);

/* Whether addr is inside a block. */
bool host_block_holds(uint64_t addr);

/* A serial number that no pinned memory has had. */
uint64_t host_block_new_serial(void);

/* Serial number of the block that holds addr; 0 when there is none. */
uint64_t host_block_serial(uint64_t addr);

/* Whether every byte of the range is inside the block of that serial number and may be touched. */
bool host_block_covers(uint64_t addr, uint64_t len, uint64_t serial);

/* The live block that starts at or above addr, or null; for walks over all blocks. */
const struct host_block *host_block_from(uint64_t addr);

/* Live blocks and the bytes of their pages. */
uint64_t host_blocks_count(void);
uint64_t host_blocks_bytes(void);

/* Frees every block; waits for copies. */
void host_blocks_free_all(void);

#endif
