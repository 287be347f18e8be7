/* The software MMU: regions, each with the pages behind it.
 *
 * A region of whole 2 MiB units is entered in a table by unit and found in two loads, however many there are; others,
 * such as blocks of 4 KiB pages, are in an ordered tree. A range is translated region by region and extent by extent,
 * so 64 MiB in one extent is one step, and a range of many small mappings costs one step each. A region need not own
 * its pages: regions over the same pages alias. Which bytes of a region may be touched is its limit: the size asked for
 * in the strict profile, whole pages otherwise.
 *
 * Thread safety: callers hold the table lock. A range that was announced (access.h) keeps its regions, so translation
 * may go on in several steps with the lock given up between them. */
#include "pagetable.h"

#include "device.h"
#include "unit_table.h"
#include "value_task.h"
#include "vspace.h"

static struct unit_table units;
static struct range_tree regions;

/* The units a region fills; false when it is not made of whole units. */
static bool whole_units(const struct region *region, uint64_t *first, uint64_t *count) {
    *count = region->range.len / UNIT_BYTES;
    return region->range.start % UNIT_BYTES == 0 && region->range.len % UNIT_BYTES == 0 &&
           vspace_unit(region->range.start, first);
}

bool pagetable_add(struct region *region) {
    uint64_t first, count;
    if (whole_units(region, &first, &count))
        return unit_table_set(&units, first, count, region);
    range_tree_insert(&regions, &region->range);
    return true;
}

void pagetable_remove(struct region *region) {
    uint64_t first, count;
    if (whole_units(region, &first, &count))
        unit_table_clear(&units, first, count);
    else
        range_tree_remove(&regions, &region->range);
    value_memory_changed();
}

struct region *pagetable_any(uint64_t addr) {
    uint64_t unit;
    struct region *region = vspace_unit(addr, &unit) ? unit_table_get(&units, unit) : NULL;
    return region ? region : (struct region *)range_tree_at(&regions, addr);
}

struct region *pagetable_at(uint64_t addr) {
    struct region *region = pagetable_any(addr);
    return region && !region->closing && !region->device->closing ? region : NULL;
}

bool pagetable_empty(uint64_t addr, uint64_t len) {
    uint64_t first;
    return !vspace_unit(addr, &first) || unit_table_empty(&units, first, len / UNIT_BYTES);
}

bool pagetable_covers(uint64_t addr, uint64_t len, enum access_effect effect) {
    const struct device *device = NULL;
    while (len > 0) {
        const struct region *region = pagetable_at(addr);
        uint64_t offset = region ? addr - region->range.start : 0;
        if (!region || offset >= region->limit || (device && region->device != device) ||
            (region->read_only && effect != ACCESS_READS))
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
    const struct region *region = pagetable_any(addr);
    uint64_t offset = addr - region->range.start;
    const struct extent *extent = pages_extent(region->pages, offset);
    uint64_t room = extent->at + extent->len - offset;
    if (region->limit - offset < room)
        room = region->limit - offset;
    if (len < room)
        room = len;
    struct phys *phys = region->phys;
    uint64_t place = extent->phys + (offset - extent->at);
    bool fresh = phys_fresh(phys, place, &room);
    if (fresh && effect == ACCESS_WRITES)
        phys_touch(phys, place, room);
    return (struct segment){.bytes = phys->window + place, .len = room, .phys = phys, .fresh = fresh};
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

char *pagetable_bytes(uint64_t addr, uint64_t len, enum access_effect effect) {
    static char zeros[PAGETABLE_FEW];
    if (!pagetable_covers(addr, len, effect))
        return NULL;
    struct segment segment = front(addr, len, effect);
    return segment.fresh && effect == ACCESS_READS ? zeros : segment.bytes;
}

void pagetable_close(void) {
    unit_table_close(&units);
}
