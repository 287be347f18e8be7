/* Physical memory of the host side: what aclrtMallocPhysical gives for a host location, and what stands behind managed
 * memory. It has pools like a device, one of 2 MiB and one of 1 GiB pages, each as large as the memory of the machine;
 * nothing is committed before it is used. It belongs to no device and outlives them all.
 *
 * Thread safety: callers hold the table lock. */
#include "host_memory.h"

#include <unistd.h>

#include "device.h"
#include "runtime.h"

static struct device host_side;

struct device *host_memory(void) {
    return &host_side;
}

bool host_memory_open(void) {
    if (host_side.open)
        return true;
    uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    struct pool_sizes sizes = {{0, bytes / (2 * MIB), bytes / GIB}};
    host_side.open = phys_open(&host_side.phys, &sizes, runtime_config()->hugetlb);
    return host_side.open;
}

void host_memory_close_if_idle(void) {
    if (!host_side.open || host_side.handles)
        return;
    phys_close(&host_side.phys);
    host_side.open = false;
}
