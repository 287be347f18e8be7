/* Custom allocators of a program, by stream; see allocator.c. */
#ifndef HOSTACL_ALLOCATOR_H
#define HOSTACL_ALLOCATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "acl/acl_rt_allocator.h"

/* What a description holds; the functions are called by nobody here. */
struct allocator {
    aclrtAllocatorDesc handle;                        /* handle of the description */
    aclrtAllocator object;                            /* first argument of the functions */
    aclrtAllocatorAllocFunc alloc;                    /* makes a block */
    aclrtAllocatorFreeFunc free;                      /* frees one */
    aclrtAllocatorAllocAdviseFunc alloc_advise;       /* makes one at an address */
    aclrtAllocatorGetAddrFromBlockFunc block_address; /* address of a block */
};

/* A new empty description, or null when the host is out of memory. */
struct allocator *allocator_make(void);

/* The live description of that handle, or null. Any value may be asked. */
struct allocator *allocator_at(const void *handle);

/* Ends a description; streams it was registered for keep what it held. */
void allocator_end(struct allocator *allocator);

/* Keeps what the description holds now for a stream, in place of what was kept. False when the host is out of memory.
 */
bool allocator_register(const void *stream, const struct allocator *allocator);

/* What is kept for a stream, or null. */
const struct allocator *allocator_of(const void *stream);

/* Forgets what is kept for a stream. */
void allocator_unregister(const void *stream);

/* Descriptions there are. */
uint64_t allocators_count(void);

/* Ends all descriptions and forgets all streams. */
void allocators_drop_all(void);

#endif
