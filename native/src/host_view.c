/* Memory at its device address. In mode unified every region is mapped there, so that host code which plays a kernel
 * reads and writes through device pointers; in mode isolated only memory that the host may touch on a card too: host
 * physical memory and managed memory. The bytes are those of the window, so copies and host code see the same.
 *
 * A view costs one mapping of the process per extent, and the reserved range around it is cut into pieces. The kernel
 * limits mappings (vm.max_map_count); some of them are left to the program. Who writes through a view asks nobody, so
 * its pages count as touched from the start.
 *
 * Thread safety: callers hold the table lock. */
#include "host_view.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "acl/acl_base.h"
#include "device.h"
#include "errors.h"
#include "host_memory.h"
#include "runtime.h"
#include "vspace.h"

#define USUAL_LIMIT 65530
#define LEFT_TO_PROGRAM 2000

static uint64_t extents; /* mapped extents */
static uint64_t runs;    /* groups of mapped regions that touch */

static uint64_t read_limit(void) {
    unsigned long long limit = USUAL_LIMIT;
    FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
    if (file && fscanf(file, "%llu", &limit) != 1)
        limit = USUAL_LIMIT;
    if (file)
        fclose(file);
    return limit;
}

static uint64_t map_limit(void) {
    static uint64_t limit;
    if (!limit)
        limit = read_limit();
    return limit;
}

bool host_view_full(void) {
    return extents + runs + LEFT_TO_PROGRAM >= map_limit();
}

int host_view_raise_full(void) {
    return error_raise(
        ERROR_MEMORY, ACL_ERROR_RT_MEMORY_ALLOCATION,
        "%llu pieces of memory are mapped at their device address; vm.max_map_count is %llu, raise it or "
        "use fewer mappings",
        (unsigned long long)extents, (unsigned long long)map_limit());
}

static bool wanted(const struct region *region) {
    return region->limit && region->phys->host_view && (runtime_config()->unified || region->device == host_memory());
}

/* Regions with a view directly below and above. */
static uint64_t neighbours(const struct region *region) {
    const struct region *below = pagetable_any(region->range.start - 1);
    const struct region *above = pagetable_any(region->range.start + region->range.len);
    return (uint64_t)(below && below->viewed) + (uint64_t)(above && above->viewed);
}

static void block_access(const struct region *region, uint64_t len) {
    mmap((void *)(uintptr_t)region->range.start, len, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

bool host_view_open(struct region *region) {
    if (!wanted(region))
        return true;
    if (!vspace_mappable(region->range.start))
        return !runtime_config()->unified;
    if (extents + runs + region->pages->count + LEFT_TO_PROGRAM >= map_limit())
        return false;
    uint64_t done = 0;
    for (uint32_t i = 0; i < region->pages->count && done < region->range.len; i++) {
        struct extent extent = region->pages->extents[i];
        uint64_t len = region->range.len - done < extent.len ? region->range.len - done : extent.len;
        if (!phys_view(region->phys, extent.phys, len, region->range.start + done)) {
            block_access(region, done);
            return false;
        }
        done += len;
    }
    phys_touch_all(region->phys, region->pages);
    extents += region->pages->count;
    runs += 1 - neighbours(region);
    region->viewed = true;
    return true;
}

void host_view_close(struct region *region) {
    if (!region->viewed)
        return;
    block_access(region, region->range.len);
    extents -= region->pages->count;
    runs -= 1 - neighbours(region);
    region->viewed = false;
}
