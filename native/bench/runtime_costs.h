/* What calls of the host runtime cost, beside plain calls of the kernel and the C library; see runtime_costs.c. */
#ifndef GEVAR_BENCH_RUNTIME_COSTS_H
#define GEVAR_BENCH_RUNTIME_COSTS_H

#include <stdint.h>

#define BENCH_API __attribute__((visibility("default")))

/* Every function returns nanoseconds for one round of what it measures, or a negative aclError or errno. */

/* aclrtMalloc and aclrtFree of a block that nobody touches; and mmap and munmap of the same size. */
BENCH_API double bench_malloc_free(uint64_t size, uint32_t rounds);
BENCH_API double bench_mmap_munmap(uint64_t size, uint32_t rounds);

/* aclrtMapMem and aclrtUnmapMem of one 2 MiB handle inside a reservation. */
BENCH_API double bench_map_unmap(uint32_t rounds);

/* aclrtMemcpy between two touched blocks of a device; and memcpy between two touched mappings of a memory file. */
BENCH_API double bench_device_copy(uint64_t size, uint32_t rounds);
BENCH_API double bench_memcpy(uint64_t size, uint32_t rounds);

/* Calls that the table of the binding is compared with. */
BENCH_API double bench_get_device(uint32_t rounds);
BENCH_API double bench_small_copy(uint64_t size, uint32_t rounds);

/* Calls that the checked face is compared with: the current context set again, figures of memory, a stream and an event
 * asked, an event recorded in a held stream. */
BENCH_API double bench_set_context(uint32_t rounds);
BENCH_API double bench_mem_info(uint32_t rounds);
BENCH_API double bench_stream_query(uint32_t rounds);
BENCH_API double bench_event_query(uint32_t rounds);
BENCH_API double bench_event_record(uint32_t rounds);

/* Makes or drops many live objects: blocks of 4 KiB, or mappings of one handle. 0 or a negative code. */
BENCH_API int bench_hold_blocks(uint32_t count);
BENCH_API int bench_hold_mappings(uint32_t count);
BENCH_API int bench_drop_all(void);

/* The calls that must not get slower beside many live objects. */
BENCH_API double bench_pointer_query(uint32_t rounds);

#endif
