/* Blocks of device memory: what the aclrtMalloc family gives out; see blocks.c. */
#ifndef HOSTACL_BLOCKS_H
#define HOSTACL_BLOCKS_H

#include <stdbool.h>

#include "chunk.h"

struct share;
struct stack;

/* One live block. */
struct block {
    struct range range;     /* device addresses, whole pages */
    struct block *next;     /* list of all blocks, latest first */
    struct block *previous; /* list of all blocks */
    struct chunk *chunk;    /* where its pages are; its own or shared */
    uint64_t asked;         /* bytes the caller asked for */
    struct share *share;    /* offered to other processes, or null */
    uint64_t reach;         /* devices that may copy it without peer access, one bit each */
    bool pooled;            /* held by a memory pool */
    bool closing;           /* being freed: unknown to everybody else */
    struct stack *stack;    /* the calls that made it */
};

/* What a caller wants. */
struct block_request {
    enum page_class cls; /* page class to try first */
    bool fall_back;      /* take 4 KiB pages when that class is short */
    bool p2p;            /* memory other devices may reach */
    uint64_t asked;      /* bytes asked for */
    uint64_t rounded;    /* bytes after rounding and padding */
};

/* Gives out a block; false when memory is short. May give the table lock up (profile card). */
bool block_malloc(struct device *device, const struct block_request *request, uint64_t *addr);

/* Frees the block that starts at addr; false when there is none. Waits for copies that use it. */
bool block_free(uint64_t addr);

/* The live block that holds addr, or null. */
struct block *block_at(uint64_t addr);

/* A block of a memory pool is freed by the pool alone: aclrtFree does not know it until it left. */
void block_join_pool(uint64_t addr);
void block_leave_pool(uint64_t addr);

/* Lets a device copy from and to the block that holds the range; false when no block does. */
bool block_allow_device(uint64_t addr, uint64_t len, const struct device *device);

/* Whether the range lies in a block that lets the device. */
bool block_lets(uint64_t addr, uint64_t len, const struct device *device);

/* Whether another process uses the block that starts at addr; its offer ends in any case. */
bool block_used_elsewhere(uint64_t addr);

/* Ends the offer of a block with that token; false when there is none. */
bool block_end_share(uint64_t token);

/* The first of the list of all live blocks, or null. */
const struct block *blocks_first(void);

/* Live blocks and the bytes of their pages. */
uint64_t blocks_count(void);
uint64_t blocks_bytes(void);

/* Forgets all blocks of a device that is torn down, and the chunks behind them. */
void blocks_drop_device(struct device *device);

#endif
