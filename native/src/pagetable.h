/* The software MMU: device address -> device and place in its memory file; see pagetable.c. */
#ifndef HOSTACL_PAGETABLE_H
#define HOSTACL_PAGETABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phys.h"
#include "range_tree.h"

struct block;
struct device;

/* A backed piece of device address space. Several regions may share pages: they show the same bytes. */
struct region {
    struct range range;    /* device addresses, whole pages */
    uint64_t limit;        /* bytes from the start that may be touched */
    struct device *device; /* whose memory it is */
    struct phys *phys;     /* where its bytes are; the device's own, or memory of another process or of the caller */
    const struct pages *pages; /* what backs it, from offset 0 */
    struct block *block;       /* the block it is; null for others and for a heap of blocks */
    bool read_only;            /* may only be read */
    bool viewed;               /* the host sees it at its address */
    bool closing;              /* being taken away: no new access */
};

/* A translated piece that is contiguous in the host's view. */
struct segment {
    char *bytes;             /* place in the window */
    uint64_t len;            /* bytes */
    const struct phys *phys; /* whose window it is; null: host memory of the caller */
    bool fresh;              /* was never touched before: reads as zero, nothing is committed */
};

/* What an access does to the memory; decides whether fresh pages count as touched from now on. */
enum access_effect { ACCESS_READS, ACCESS_WRITES, ACCESS_CLEARS };

/* Enters a region; false when the host is out of memory. */
bool pagetable_add(struct region *region);
void pagetable_remove(struct region *region);

/* The region that holds addr and is not being taken away, or null. */
struct region *pagetable_at(uint64_t addr);

/* The same, also one that is being taken away. */
struct region *pagetable_any(uint64_t addr);

/* Whether no region of whole 2 MiB units touches a range of such units. */
bool pagetable_empty(uint64_t addr, uint64_t len);

/* Whether every byte of the range may be touched in that way and belongs to one device. */
bool pagetable_covers(uint64_t addr, uint64_t len, enum access_effect effect);

/* Translates the front of a covered range into at most max segments; *done is the number of bytes they hold. */
size_t pagetable_translate(uint64_t addr, uint64_t len, enum access_effect effect, struct segment *segments, size_t max,
                           uint64_t *done);

/* The host's view of at most PAGETABLE_FEW bytes that lie in one page; null when they are not in live memory. */
#define PAGETABLE_FEW 64
char *pagetable_bytes(uint64_t addr, uint64_t len, enum access_effect effect);

/* Gives the table's own memory back; no region is left in it. */
void pagetable_close(void);

#endif
