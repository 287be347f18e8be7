/* Physical memory of a device: three page pools laid one after another into one window, each from a multiple of its
 * page size.
 *
 *   0 ......... 4 KiB pages ......... | ...... 2 MiB pages ...... | .... 1 GiB pages .... end
 *
 * A memory file stands behind the window; every access of the simulated device goes through the window, which only the
 * runtime knows. A pool may have a file of its own with huge pages of the host: those are taken from the host when
 * pages are taken from the pool, so that a host without huge pages refuses the allocation and never a later access.
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
#include <linux/memfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bitmap.h"

#define SMALL_PAGE (4 * KIB)
#define RUNS_TO_TRY 64

static bool pool_open(struct page_pool *pool, uint64_t total, uint64_t base) {
    *pool = (struct page_pool){.total = total, .free = total, .base = base, .fd = -1};
    pool->taken = calloc(bitmap_words(total) + 1, sizeof(uint64_t));
    return pool->taken;
}

/* A memory file of huge pages for the pool; stays without one when the host has no pages of that size. */
static void open_huge_file(struct page_pool *pool, enum page_class cls) {
    char path[80];
    unsigned long long pages = 0;
    unsigned size = cls == PAGE_2M ? MFD_HUGE_2MB : MFD_HUGE_1GB;
    snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-%llukB/nr_hugepages",
             (unsigned long long)(page_class_bytes(cls) / KIB));
    FILE *file = fopen(path, "re");
    bool known = file && fscanf(file, "%llu", &pages) == 1;
    if (file)
        fclose(file);
    int fd = known && pages && pool->total ? memfd_create("hostacl-huge", MFD_CLOEXEC | MFD_HUGETLB | size) : -1;
    if (fd >= 0 && ftruncate(fd, (off_t)(pool->total * page_class_bytes(cls)))) {
        close(fd);
        fd = -1;
    }
    pool->huge = fd >= 0;
    pool->fd = fd;
    pool->origin = pool->huge ? pool->base : 0;
}

/* Maps a file over a piece of the window. */
static bool map_file(const struct phys *phys, uint64_t at, uint64_t bytes, int fd, uint64_t from) {
    void *wanted = phys->window + at;
    return !bytes || mmap(wanted, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd,
                          (off_t)from) == wanted;
}

/* Reserves the window at a multiple of the largest page. */
static bool window_open(struct phys *phys) {
    char *at = mmap(NULL, phys->bytes + GIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return false;
    uint64_t below = -(uintptr_t)at & (GIB - 1);
    if (below)
        munmap(at, below);
    munmap(at + below + phys->bytes, GIB - below);
    phys->window = at + below;
    phys->open = phys->host_view = true;
    return true;
}

static bool files_open(struct phys *phys, bool huge) {
    phys->fd = memfd_create("hostacl-device", MFD_CLOEXEC);
    if (phys->fd < 0 || !window_open(phys) || ftruncate(phys->fd, (off_t)phys->bytes) ||
        !map_file(phys, 0, phys->bytes, phys->fd, 0))
        return false;
    for (enum page_class cls = 0; cls < PAGE_CLASSES; cls++) {
        struct page_pool *pool = &phys->pools[cls];
        if (huge && cls != PAGE_4K)
            open_huge_file(pool, cls);
        if (!pool->huge)
            pool->fd = phys->fd;
        else if (!map_file(phys, pool->base, pool->total * page_class_bytes(cls), pool->fd, 0))
            return false;
    }
    madvise(phys->window, phys->bytes, MADV_DONTFORK);
    madvise(phys->window, phys->bytes, MADV_DONTDUMP);
    return true;
}

bool phys_open(struct phys *phys, const struct pool_sizes *sizes, bool huge) {
    bool good = true;
    *phys = (struct phys){.fd = -1};
    for (enum page_class cls = 0; cls < PAGE_CLASSES; cls++) {
        uint64_t page_bytes = page_class_bytes(cls);
        if (sizes->pages[cls])
            phys->bytes = (phys->bytes + page_bytes - 1) & ~(page_bytes - 1);
        good = pool_open(&phys->pools[cls], sizes->pages[cls], phys->bytes) && good;
        phys->bytes += sizes->pages[cls] * page_bytes;
    }
    phys->touched = calloc(bitmap_words(phys->bytes / SMALL_PAGE) + 1, sizeof(uint64_t));
    if (good && phys->touched && files_open(phys, huge))
        return true;
    phys_close(phys);
    return false;
}

void phys_close(struct phys *phys) {
    for (enum page_class cls = 0; cls < PAGE_CLASSES; cls++) {
        free(phys->pools[cls].taken);
        if (phys->pools[cls].huge)
            close(phys->pools[cls].fd);
    }
    free(phys->touched);
    if (phys->open)
        munmap(phys->window, phys->bytes);
    if (phys->fd >= 0)
        close(phys->fd);
    *phys = (struct phys){.fd = -1};
}

struct phys phys_foreign(void *window, uint64_t bytes, bool host_view) {
    return (struct phys){.open = true, .fd = -1, .window = window, .bytes = bytes, .host_view = host_view};
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

/* Huge pages count as touched from the start: their file cannot be written to, and they are committed anyway. */
static bool take_run(struct phys *phys, struct pages *pages, uint64_t first, uint64_t count) {
    struct page_pool *pool = &phys->pools[pages->cls];
    uint64_t page_bytes = page_class_bytes(pages->cls);
    if (!add_extent(pages, pool->base + first * page_bytes, count * page_bytes))
        return false;
    if (pool->huge)
        phys_touch(phys, pool->base + first * page_bytes, count * page_bytes);
    bitmap_fill(pool->taken, first, count, true);
    pool->free -= count;
    return true;
}

static bool take(struct phys *phys, enum page_class cls, uint64_t count, struct pages *pages) {
    struct page_pool *pool = &phys->pools[cls];
    if (pool->free < count)
        return false;
    *pages = (struct pages){.cls = cls};
    pages->extents = &pages->single;
    pool->hint = bitmap_find(pool->taken, pool->hint, pool->total, false);
    uint64_t run = find_run(pool, count);
    if (run < pool->total)
        return take_run(phys, pages, run, count);
    uint64_t at = pool->hint;
    while (count > 0) {
        uint64_t start = bitmap_find(pool->taken, at, pool->total, false);
        uint64_t limit = pool->total - start < count ? pool->total : start + count;
        at = bitmap_find(pool->taken, start, limit, true);
        if (!take_run(phys, pages, start, at - start)) {
            phys_give(phys, pages);
            return false;
        }
        count -= at - start;
    }
    return true;
}

bool phys_take(struct phys *phys, enum page_class cls, uint64_t count, struct pages *pages) {
    uint64_t used = 0;
    if (!take(phys, cls, count, pages))
        return false;
    for (enum page_class each = 0; each < PAGE_CLASSES; each++)
        used += (phys->pools[each].total - phys->pools[each].free) * page_class_bytes(each);
    if (used > phys->peak_bytes)
        phys->peak_bytes = used;
    return true;
}

static const struct page_pool *pool_at(const struct phys *phys, uint64_t offset) {
    enum page_class cls = PAGE_CLASSES - 1;
    while (cls > 0 && (!phys->pools[cls].total || offset < phys->pools[cls].base))
        cls--;
    return &phys->pools[cls];
}

struct file_place phys_file_place(const struct phys *phys, uint64_t offset) {
    const struct page_pool *pool = pool_at(phys, offset);
    return (struct file_place){.fd = pool->fd, .at = offset - pool->origin};
}

static void punch(const struct phys *phys, uint64_t offset, uint64_t len) {
    struct file_place place = phys_file_place(phys, offset);
    fallocate(place.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)place.at, (off_t)len);
}

/* A window without a file of its own is shown by duplicating its mappings. */
bool phys_view(const struct phys *phys, uint64_t offset, uint64_t len, uint64_t addr) {
    void *at = (void *)(uintptr_t)addr;
    void *got;
    if (phys->fd < 0) {
        got = mremap(phys->window + offset, 0, len, MREMAP_MAYMOVE | MREMAP_FIXED, at);
    } else {
        struct file_place place = phys_file_place(phys, offset);
        got = mmap(at, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, place.fd, (off_t)place.at);
        if (got == at)
            madvise(at, len, MADV_DONTFORK);
    }
    return got == at;
}

bool phys_commit(const struct phys *phys, const struct pages *pages) {
    if (!phys->pools[pages->cls].huge)
        return true;
    for (uint32_t i = 0; i < pages->count; i++) {
        struct file_place place = phys_file_place(phys, pages->extents[i].phys);
        if (!fallocate(place.fd, FALLOC_FL_KEEP_SIZE, (off_t)place.at, (off_t)pages->extents[i].len))
            continue;
        for (uint32_t k = 0; k <= i; k++)
            punch(phys, pages->extents[k].phys, pages->extents[k].len);
        return false;
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
            punch(phys, extent->phys + extent->dirty, extent->len - extent->dirty);
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
    if (!phys->touched)
        return false;
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
    if (phys->touched)
        bitmap_fill(phys->touched, first, (offset + len + SMALL_PAGE - 1) / SMALL_PAGE - first, true);
}

void phys_touch_all(struct phys *phys, const struct pages *pages) {
    for (uint32_t i = 0; i < pages->count; i++)
        phys_touch(phys, pages->extents[i].phys, pages->extents[i].len);
}

uint64_t phys_committed(const struct phys *phys) {
    struct stat stat;
    uint64_t bytes = phys->open && !fstat(phys->fd, &stat) ? (uint64_t)stat.st_blocks * 512 : 0;
    for (enum page_class cls = 0; phys->open && cls < PAGE_CLASSES; cls++) {
        if (phys->pools[cls].huge && !fstat(phys->pools[cls].fd, &stat))
            bytes += (uint64_t)stat.st_blocks * 512;
    }
    return bytes;
}
