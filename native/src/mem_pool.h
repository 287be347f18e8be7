/* Memory pools whose blocks are given and taken in the order of a stream; see mem_pool.c. */
#ifndef HOSTACL_MEM_POOL_H
#define HOSTACL_MEM_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct device;
struct pool_block;
struct stream;

struct mem_pool {
    void *handle;              /* what callers hold; null once it is destroyed */
    struct device *device;     /* whose memory it gives out */
    uint64_t max_bytes;        /* most it may hold; 0: no limit */
    uint64_t threshold;        /* bytes that free blocks need not give back */
    uint64_t reserved;         /* bytes of all its blocks */
    uint64_t reserved_high;    /* most of them so far */
    uint64_t used;             /* bytes of the blocks that are not free */
    uint64_t used_high;        /* most of them so far */
    int32_t reuse[3];          /* attributes 1 to 3 */
    struct pool_block *blocks; /* all of them */
};

/* Makes an empty pool on an open device; null when the host is out of memory. */
struct mem_pool *mem_pool_make(struct device *device, uint64_t max_bytes);

/* The live pool of that handle, or null. Any value may be asked. */
struct mem_pool *mem_pool_at(const void *handle);

/* Ends a pool; blocks in use stay until they are freed. May give the table lock up. */
void mem_pool_end(struct mem_pool *pool);

/* Gives out bytes (above 0) for a stream. False when memory or the pool's limit is short. May give the table lock up.
 */
bool mem_pool_malloc(struct mem_pool *pool, uint64_t bytes, const struct stream *stream, uint64_t *addr);

/* Takes a block back when the stream comes to it. Returns a code. */
int mem_pool_free(uint64_t addr, struct stream *stream);

/* Gives free blocks back until the pool holds no more than so many bytes, or has no free block. True when it gave any.
 * May give the table lock up. */
bool mem_pool_trim(struct mem_pool *pool, uint64_t keep);

/* The same for all pools of a device, down to nothing. */
bool mem_pools_trim(const struct device *device);

/* Forgets the pools of a device that is torn down; its blocks go with it. */
void mem_pools_drop_device(struct device *device);

/* Pools there are. */
uint64_t mem_pools_count(void);

/* The next pool in the table of handles after *position, or null; *position starts at 0. */
const struct mem_pool *mem_pools_next(size_t *position);

#endif
