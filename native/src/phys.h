/* Physical memory of one device: page pools over one memory file; see phys.c. */
#ifndef HOSTACL_PHYS_H
#define HOSTACL_PHYS_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"

/* A run of bytes of the memory file. */
struct extent {
    uint64_t at;    /* offset inside the allocation */
    uint64_t phys;  /* offset inside the memory file */
    uint64_t len;   /* bytes */
    uint64_t dirty; /* offset inside the extent of the first page that holds bytes; len: none (set by phys_collect) */
};

/* Pages taken from a pool, as one allocation. */
struct pages {
    enum page_class cls;    /* pool they came from */
    uint64_t bytes;         /* all of them */
    uint32_t count;         /* extents */
    struct extent single;   /* the extent when there is one */
    struct extent *extents; /* extents in the order of the allocation */
};

struct page_pool {
    uint64_t total;  /* pages there are */
    uint64_t free;   /* pages not taken */
    uint64_t base;   /* offset of the first page in the memory file */
    uint64_t *taken; /* one bit per page */
    uint64_t hint;   /* no page below this one is free */
};

struct phys {
    bool open;         /* the memory file exists */
    int fd;            /* memory file */
    char *window;      /* the whole file, mapped for the runtime alone */
    uint64_t bytes;    /* size of file and window */
    uint64_t *touched; /* one bit per 4 KiB of the file: holds bytes of the host */
    struct page_pool pools[PAGE_CLASSES];
};

/* Makes the memory file and its pools, all free, nothing committed. False when the host refuses. */
bool phys_open(struct phys *phys, const struct pool_sizes *sizes);

/* Gives the file and the window back; may take long for much touched memory. */
void phys_close(struct phys *phys);

/* Takes count pages of a class; false when the pool or the host's memory is short, then nothing is taken. */
bool phys_take(struct phys *phys, enum page_class cls, uint64_t count, struct pages *pages);

/* Marks what of the pages holds bytes in the extents and forgets it; true when there is any. */
bool phys_collect(struct phys *phys, struct pages *pages);

/* Returns the collected bytes to the host's kernel. Needs no lock: the pages belong to the caller. */
void phys_punch(const struct phys *phys, const struct pages *pages);

/* Puts the pages back into their pool. */
void phys_give(struct phys *phys, struct pages *pages);

/* The extent that holds an offset of the allocation. */
const struct extent *pages_extent(const struct pages *pages, uint64_t offset);

/* Whether the first byte at phys was never touched; *len is cut to the bytes for which that answer holds. */
bool phys_fresh(const struct phys *phys, uint64_t offset, uint64_t *len);

/* Marks a range of the memory file as holding bytes. */
void phys_touch(struct phys *phys, uint64_t offset, uint64_t len);

/* Bytes of host memory behind the file now. */
uint64_t phys_committed(const struct phys *phys);

#endif
