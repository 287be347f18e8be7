/* The driver's heaps of the card profile: backed memory that blocks are cut from; see driver_heap.c. */
#ifndef HOSTACL_DRIVER_HEAP_H
#define HOSTACL_DRIVER_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"
#include "range_tree.h"

struct chunk;
struct device;

/* One heap per device, page class and kind of memory. */
enum { HEAP_NORMAL, HEAP_HUGE, HEAP_NORMAL_P2P, HEAP_HUGE_P2P, DRIVER_HEAPS };

struct driver_heap {
    struct range_tree spans; /* free backed pieces; never across two chunks */
    struct chunk *chunks;    /* all chunks, newest first */
};

/* Takes len bytes (whole pages) from the heap of that class, making a chunk when no span is long enough. Null when the
 * pages are short; else the chunk and the address. */
struct chunk *driver_heap_take(struct device *device, enum page_class cls, bool p2p, uint64_t len, uint64_t *addr);

/* Gives a piece back to the heap of its chunk; the bytes stay and go on answering. */
void driver_heap_give(struct chunk *chunk, uint64_t addr, uint64_t len);

/* Ends chunks of the device that hold no block and are not in use; true when it ended any. May give the table lock up.
 */
bool driver_heap_trim(struct device *device);

/* The driver has one chunk of small pages from the start. */
void driver_heap_warm_up(struct device *device);

/* Ends every chunk of a device that is torn down; its blocks are gone already. */
void driver_heap_drop(struct device *device);

#endif
