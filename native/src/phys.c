/* Physical memory of a device: three page pools laid one after another into one memory file.
 *
 *   0 ......... 4 KiB pages ......... | ...... 2 MiB pages ...... | .... 1 GiB pages .... end
 *
 * The file is mapped once into a window only the runtime knows; every access of the simulated device goes through it.
 * The kernel commits a page of the file when it is first touched, so a device of 64 GiB costs nothing until used. Which
 * 4 KiB pages were touched is recorded: only those are punched out of the file when their block is freed, which keeps
 * the free of an untouched block cheap, and a copy can tell fresh pages from used ones.
 *
 * Pages of one allocation need not be neighbours. The first free run that is long enough is preferred, else the pieces
 * are taken as they come, so a pool can be filled to its last page.
 *
 * Thread safety: callers hold the table lock, except for phys_punch and phys_close on memory nobody else can reach. */
#include "phys.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bitmap.h"

#define SMALL_PAGE (4 * KIB)
#define RUNS_TO_TRY 64

static bool pool_open(struct page_pool *pool, uint64_t total, uint64_t base) {
    *pool = (struct page_pool){.total = total, .free = total, .base = base};
    pool->taken = calloc(bitmap_words(total) + 1, sizeof(uint64_t));
    return pool->taken;
}

static bool file_open(struct phys *phys) {
    phys->fd = memfd_create("hostacl-device", MFD_CLOEXEC);
    if (phys->fd < 0)
        return false;
    void *window = MAP_FAILED;
    if (!ftruncate(phys->fd, (off_t)phys->bytes))
        window = mmap(NULL, phys->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, phys->fd, 0);
    if (window == MAP_FAILED) {
        close(phys->fd);
        return false;
    }
    madvise(window, phys->bytes, MADV_DONTFORK);
    madvise(window, phys->bytes, MADV_DONTDUMP);
    phys->window = window;
    phys->open = true;
    return true;
}

bool phys_open(struct phys *phys, const struct pool_sizes *sizes) {
    bool good = true;
    *phys = (struct phys){.fd = -1};
    for (enum page_class cls = 0; cls < PAGE_CLASSES; cls++) {
        good = pool_open(&phys->pools[cls], sizes->pages[cls], phys->bytes) && good;
        phys->bytes += sizes->pages[cls] * page_class_bytes(cls);
    }
    phys->touched = calloc(bitmap_words(phys->bytes / SMALL_PAGE) + 1, sizeof(uint64_t));
    if (good && phys->touched && file_open(phys))
        return true;
    phys_close(phys);
    return false;
}

void phys_close(struct phys *phys) {
    for (enum page_class cls = 0; cls < PAGE_CLASSES; cls++)
        free(phys->pools[cls].taken);
    free(phys->touched);
    if (phys->open) {
        munmap(phys->window, phys->bytes);
        close(phys->fd);
    }
    *phys = (struct phys){.fd = -1};
}

/* First page of a free run of count pages among the first few runs; total when there is none. */
static uint64_t find_run(const struct page_pool *pool, uint64_t count) {
    uint64_t at = pool->hint;
    for (int tries = 0; tries < RUNS_TO_TRY && at < pool->total; tries++) {
        uint64_t start = bitmap_find(pool->taken, at, pool->total, false);
        uint64_t limit = pool->total - start < count ? pool->total : start + count;
        uint64_t end = bitmap_find(pool->taken, start, limit, true);
        if (end - start == count)
            return start;
        at = end;
    }
    return pool->total;
}

/* Appends an extent of the allocation; false when the host is out of memory. */
static bool add_extent(struct pages *pages, uint64_t phys, uint64_t len) {
    bool first = pages->count == 0;
    if (!first && (pages->count & (pages->count - 1)) == 0) {
        bool single = pages->extents == &pages->single;
        size_t wanted = (size_t)pages->count * 2 * sizeof(struct extent);
        struct extent *more = realloc(single ? NULL : pages->extents, wanted);
        if (!more)
            return false;
        if (single)
            more[0] = pages->single;
        pages->extents = more;
    }
    pages->extents[pages->count++] = (struct extent){.at = pages->bytes, .phys = phys, .len = len};
    pages->bytes += len;
    return true;
}

static bool take_run(struct page_pool *pool, struct pages *pages, uint64_t first, uint64_t count) {
    uint64_t page_bytes = page_class_bytes(pages->cls);
    if (!add_extent(pages, pool->base + first * page_bytes, count * page_bytes))
        return false;
    bitmap_fill(pool->taken, first, count, true);
    pool->free -= count;
    return true;
}

bool phys_take(struct phys *phys, enum page_class cls, uint64_t count, struct pages *pages) {
    struct page_pool *pool = &phys->pools[cls];
    if (pool->free < count)
        return false;
    *pages = (struct pages){.cls = cls};
    pages->extents = &pages->single;
    pool->hint = bitmap_find(pool->taken, pool->hint, pool->total, false);
    uint64_t run = find_run(pool, count);
    if (run < pool->total)
        return take_run(pool, pages, run, count);
    uint64_t at = pool->hint;
    while (count > 0) {
        uint64_t start = bitmap_find(pool->taken, at, pool->total, false);
        uint64_t limit = pool->total - start < count ? pool->total : start + count;
        at = bitmap_find(pool->taken, start, limit, true);
        if (!take_run(pool, pages, start, at - start)) {
            phys_give(phys, pages);
            return false;
        }
        count -= at - start;
    }
    return true;
}

bool phys_collect(struct phys *phys, struct pages *pages) {
    bool any = false;
    for (uint32_t i = 0; i < pages->count; i++) {
        struct extent *extent = &pages->extents[i];
        uint64_t first = extent->phys / SMALL_PAGE;
        uint64_t end = first + extent->len / SMALL_PAGE;
        uint64_t dirty = bitmap_find(phys->touched, first, end, true);
        extent->dirty = (dirty - first) * SMALL_PAGE;
        if (dirty < end) {
            bitmap_fill(phys->touched, dirty, end - dirty, false);
            any = true;
        }
    }
    return any;
}

void phys_punch(const struct phys *phys, const struct pages *pages) {
    for (uint32_t i = 0; i < pages->count; i++) {
        const struct extent *extent = &pages->extents[i];
        if (extent->dirty < extent->len)
            fallocate(phys->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(extent->phys + extent->dirty),
                      (off_t)(extent->len - extent->dirty));
    }
}

void phys_give(struct phys *phys, struct pages *pages) {
    struct page_pool *pool = &phys->pools[pages->cls];
    uint64_t page_bytes = page_class_bytes(pages->cls);
    for (uint32_t i = 0; i < pages->count; i++) {
        uint64_t first = (pages->extents[i].phys - pool->base) / page_bytes;
        uint64_t count = pages->extents[i].len / page_bytes;
        bitmap_fill(pool->taken, first, count, false);
        pool->free += count;
        if (first < pool->hint)
            pool->hint = first;
    }
    if (pages->extents != &pages->single)
        free(pages->extents);
    *pages = (struct pages){.count = 0};
}

const struct extent *pages_extent(const struct pages *pages, uint64_t offset) {
    uint32_t low = 0;
    uint32_t high = pages->count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (pages->extents[middle].at <= offset)
            low = middle;
        else
            high = middle;
    }
    return &pages->extents[low];
}

bool phys_fresh(const struct phys *phys, uint64_t offset, uint64_t *len) {
    uint64_t first = offset / SMALL_PAGE;
    uint64_t end = (offset + *len + SMALL_PAGE - 1) / SMALL_PAGE;
    bool fresh = bitmap_find(phys->touched, first, first + 1, true) > first;
    uint64_t until = bitmap_find(phys->touched, first, end, fresh);
    if (until < end)
        *len = until * SMALL_PAGE - offset;
    return fresh;
}

void phys_touch(struct phys *phys, uint64_t offset, uint64_t len) {
    uint64_t first = offset / SMALL_PAGE;
    bitmap_fill(phys->touched, first, (offset + len + SMALL_PAGE - 1) / SMALL_PAGE - first, true);
}

uint64_t phys_committed(const struct phys *phys) {
    struct stat stat;
    if (!phys->open || fstat(phys->fd, &stat))
        return 0;
    return (uint64_t)stat.st_blocks * 512;
}
