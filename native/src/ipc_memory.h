/* Blocks of other processes, imported by a key; see ipc_memory.c. */
#ifndef HOSTACL_IPC_MEMORY_H
#define HOSTACL_IPC_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "pagetable.h"

struct import;
struct stack;

/* One imported block. */
struct ipc_block {
    struct region region;   /* device addresses, whole pages */
    struct import *import;  /* whose bytes they are */
    struct ipc_block *next; /* list of all */
    struct stack *stack;    /* the calls that made it */
};

/* Gives an import an address on a device; the import then belongs to it. Null when addresses or host memory are short.
 */
struct ipc_block *ipc_block_make(struct device *device, struct import *import);

/* The block imported with that token, or null. */
struct ipc_block *ipc_block_find(uint64_t token);

/* First of the list of all, or null. */
const struct ipc_block *ipc_blocks_first(void);

/* Takes a block away; waits for copies that use it. May give the table lock up. */
void ipc_block_end(struct ipc_block *block);

/* Takes the blocks of a device that is torn down. */
void ipc_blocks_drop_device(struct device *device);

/* Imported blocks. */
uint64_t ipc_blocks_count(void);

#endif
