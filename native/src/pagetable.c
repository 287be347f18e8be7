/* The software MMU: an ordered tree of regions, each with the pages behind it.
 *
 * A look-up takes O(log n) whatever the page class; a range is translated region by region and extent by extent, so 64
 * MiB in one extent is one step, and a range of many small mappings costs one step each. A region need not own its
 * pages: regions over the same pages alias. Which bytes of a region may be touched is its limit: the size asked for in
 * the strict profile, whole pages otherwise.
 *
 * Thread safety: callers hold the table lock. A range that was announced (access.h) keeps its regions, so translation
 * may go on in several steps with the lock given up between them. */
#include "pagetable.h"

#include "device.h"

static struct range_tree regions;

void pagetable_add(struct region *region) {
    range_tree_insert(&regions, &region->range);
}

void pagetable_remove(struct region *region) {
    range_tree_remove(&regions, &region->range);
}

static struct region *region_at(uint64_t addr) {
    return (struct region *)range_tree_at(&regions, addr);
}

struct region *pagetable_at(uint64_t addr) {
    struct region *region = region_at(addr);
    return region && !region->closing && !region->device->closing ? region : NULL;
}

bool pagetable_covers(uint64_t addr, uint64_t len) {
    const struct device *device = NULL;
    while (len > 0) {
        const struct region *region = pagetable_at(addr);
        uint64_t offset = region ? addr - region->range.start : 0;
        if (!region || offset >= region->limit || (device && region->device != device))
            return false;
        uint64_t room = region->limit - offset;
        device = region->device;
        addr += room;
        len -= room < len ? room : len;
    }
    return true;
}

/* The segment at the front of a range. */
static struct segment front(uint64_t addr, uint64_t len, enum access_effect effect) {
    const struct region *region = region_at(addr);
    uint64_t offset = addr - region->range.start;
    const struct extent *extent = pages_extent(region->pages, offset);
    uint64_t room = extent->at + extent->len - offset;
    if (region->limit - offset < room)
        room = region->limit - offset;
    if (len < room)
        room = len;
    struct phys *phys = &region->device->phys;
    uint64_t place = extent->phys + (offset - extent->at);
    bool fresh = phys_fresh(phys, place, &room);
    if (fresh && effect == ACCESS_WRITES)
        phys_touch(phys, place, room);
    return (struct segment){.bytes = phys->window + place, .len = room, .device = region->device, .fresh = fresh};
}

size_t pagetable_translate(uint64_t addr, uint64_t len, enum access_effect effect, struct segment *segments, size_t max,
                           uint64_t *done) {
    size_t count = 0;
    *done = 0;
    while (*done < len && count < max) {
        segments[count] = front(addr + *done, len - *done, effect);
        *done += segments[count++].len;
    }
    return count;
}
