/* Physical memory: page pools over memory files, and windows over memory of somebody else; see phys.c. */
#ifndef HOSTACL_PHYS_H
#define HOSTACL_PHYS_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"

/* A run of neighbouring bytes. */
struct extent {
    uint64_t at;    /* offset inside the allocation */
    uint64_t phys;  /* offset inside the window */
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
    uint64_t base;   /* offset of the first page in the window */
    uint64_t *taken; /* one bit per page */
    uint64_t hint;   /* no page below this one is free */
    int fd;          /* memory file of its pages */
    uint64_t origin; /* offset in the window of the first byte of that file */
    bool huge;       /* the pages are huge pages of the host */
};

struct phys {
    bool open;           /* the window exists */
    int fd;              /* memory file of the pools without huge pages */
    char *window;        /* all pools, mapped for the runtime alone */
    uint64_t bytes;      /* size of the window */
    uint64_t *touched;   /* one bit per 4 KiB of the window: holds bytes of the host; null: all of it does */
    uint64_t peak_bytes; /* most bytes of pages that were taken at once */
    bool host_view;      /* its bytes can be shown at another address */
    struct page_pool pools[PAGE_CLASSES];
};

/* A place in a memory file. */
struct file_place {
    int fd;      /* memory file */
    uint64_t at; /* offset in it */
};

/* Makes the memory files and their pools, all free, nothing committed. With huge set, pools whose page size the host
 * has huge pages of consist of those. False when the host refuses. */
bool phys_open(struct phys *phys, const struct pool_sizes *sizes, bool huge);

/* Gives the files and the window back; may take long for much touched memory. */
void phys_close(struct phys *phys);

/* A window over memory that is somebody else's; there is nothing to close. With host_view it consists of shared
 * mappings of ordinary memory. */
struct phys phys_foreign(void *window, uint64_t bytes, bool host_view);

/* Shows len bytes of the window at another address too, in place of what is mapped there. False when the host refuses;
 * then the address is as before. */
bool phys_view(const struct phys *phys, uint64_t offset, uint64_t len, uint64_t addr);

/* Takes count pages of a class; false when the pool or the host's memory is short, then nothing is taken. */
bool phys_take(struct phys *phys, enum page_class cls, uint64_t count, struct pages *pages);

/* Makes sure that the host has its huge pages for taken pages, so that a later access cannot fail. False when it has
 * not; true at once for pages of ordinary memory. Needs no lock: the pages belong to the caller. */
bool phys_commit(const struct phys *phys, const struct pages *pages);

/* Where in a memory file an offset of the window is. */
struct file_place phys_file_place(const struct phys *phys, uint64_t offset);

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

/* Marks a range of the window as holding bytes. */
void phys_touch(struct phys *phys, uint64_t offset, uint64_t len);

/* The same for all of an allocation: somebody writes it without asking. */
void phys_touch_all(struct phys *phys, const struct pages *pages);

/* Bytes of host memory behind the files now. */
uint64_t phys_committed(const struct phys *phys);

#endif
