/* Times calls of the host runtime in loops, and the plain calls they are compared with.
 *
 * Nothing but the measured calls stands in a loop. Memory that is copied was written before, on both sides. One thread;
 * the device is set at the first use and stays set. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "runtime_costs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "acl/acl.h"
#include "hostacl.h"

#define PAGE_2M (UINT64_C(2) << 20)
#define BLOCK_BYTES 4096

static void **held_blocks;
static uint32_t held_block_count;
static char *held_range;
static uint32_t held_mapping_count;
static aclrtDrvMemHandle held_handle;

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int use_device(void) {
    static bool set;
    int code = set ? 0 : aclrtSetDevice(0);
    set = set || code == 0;
    return code;
}

double bench_malloc_free(uint64_t size, uint32_t rounds) {
    int code = use_device();
    double start = now_ns();
    for (uint32_t i = 0; i < rounds && !code; i++) {
        void *block;
        code = aclrtMalloc(&block, size, ACL_MEM_MALLOC_HUGE_FIRST);
        if (!code)
            code = aclrtFree(block);
    }
    return code ? -code : (now_ns() - start) / rounds;
}

double bench_mmap_munmap(uint64_t size, uint32_t rounds) {
    double start = now_ns();
    for (uint32_t i = 0; i < rounds; i++) {
        void *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (block == MAP_FAILED || munmap(block, size))
            return -errno;
    }
    return (now_ns() - start) / rounds;
}

static int make_handle(aclrtDrvMemHandle *handle) {
    aclrtPhysicalMemProp prop = {.handleType = ACL_MEM_HANDLE_TYPE_NONE,
                                 .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
                                 .memAttr = ACL_HBM_MEM_HUGE,
                                 .location = {.id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE}};
    return aclrtMallocPhysical(handle, PAGE_2M, &prop, 0);
}

double bench_map_unmap(uint32_t rounds) {
    void *range = NULL;
    aclrtDrvMemHandle handle = NULL;
    int code = use_device();
    if (code || (code = aclrtReserveMemAddress(&range, PAGE_2M, 0, NULL, 1)))
        return -code;
    if ((code = make_handle(&handle))) {
        (void)aclrtReleaseMemAddress(range);
        return -code;
    }
    double start = now_ns();
    for (uint32_t i = 0; i < rounds && !code; i++) {
        code = aclrtMapMem(range, PAGE_2M, 0, handle, 0);
        if (!code)
            code = aclrtUnmapMem(range);
    }
    double took = (now_ns() - start) / rounds;
    int freed = aclrtFreePhysical(handle), released = aclrtReleaseMemAddress(range);
    code = code ? code : freed ? freed : released;
    return code ? -code : took;
}

double bench_device_copy(uint64_t size, uint32_t rounds) {
    void *from = NULL, *to = NULL;
    int code = use_device();
    if (code || (code = aclrtMalloc(&from, size, ACL_MEM_MALLOC_HUGE_FIRST)))
        return -code;
    if ((code = aclrtMalloc(&to, size, ACL_MEM_MALLOC_HUGE_FIRST))) {
        (void)aclrtFree(from);
        return -code;
    }
    if (!(code = aclrtMemset(from, size, 1, size)))
        code = aclrtMemset(to, size, 2, size);
    double start = now_ns();
    for (uint32_t i = 0; i < rounds && !code; i++)
        code = aclrtMemcpy(to, size, from, size, ACL_MEMCPY_DEVICE_TO_DEVICE);
    double took = (now_ns() - start) / rounds;
    int freed = aclrtFree(from), freed_too = aclrtFree(to);
    code = code ? code : freed ? freed : freed_too;
    return code ? -code : took;
}

static char *memory_file(uint64_t size) {
    int file = memfd_create("gevar-bench", MFD_CLOEXEC);
    if (file < 0)
        return NULL;
    char *bytes =
        ftruncate(file, (off_t)size) ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return bytes == MAP_FAILED ? NULL : bytes;
}

double bench_memcpy(uint64_t size, uint32_t rounds) {
    char *from = memory_file(size), *to = memory_file(size);
    if (!from || !to)
        return -ENOMEM;
    memset(from, 1, size);
    memset(to, 2, size);
    double start = now_ns();
    for (uint32_t i = 0; i < rounds; i++) {
        memcpy(to, from, size);
        __asm__ volatile("" : : "r"(to) : "memory");
    }
    double took = (now_ns() - start) / rounds;
    munmap(from, size);
    munmap(to, size);
    return took;
}

double bench_get_device(uint32_t rounds) {
    int32_t device;
    int code = use_device();
    double start = now_ns();
    for (uint32_t i = 0; i < rounds && !code; i++)
        code = aclrtGetDevice(&device);
    return code ? -code : (now_ns() - start) / rounds;
}

double bench_small_copy(uint64_t size, uint32_t rounds) {
    static char bytes[4096];
    void *block = NULL;
    int code = size > sizeof(bytes) ? ACL_ERROR_INVALID_PARAM : use_device();
    if (code || (code = aclrtMalloc(&block, size, ACL_MEM_MALLOC_HUGE_FIRST)))
        return -code;
    double start = now_ns();
    for (uint32_t i = 0; i < rounds && !code; i++)
        code = aclrtMemcpy(block, size, bytes, size, ACL_MEMCPY_HOST_TO_DEVICE);
    double took = (now_ns() - start) / rounds;
    int freed = aclrtFree(block);
    code = code ? code : freed;
    return code ? -code : took;
}

double bench_pointer_query(uint32_t rounds) {
    void *block = NULL;
    int code = use_device();
    if (code || (code = aclrtMalloc(&block, BLOCK_BYTES, ACL_MEM_MALLOC_HUGE_FIRST)))
        return -code;
    double start = now_ns();
    for (uint32_t i = 0; i < rounds && !code; i++) {
        aclrtPtrAttributes attributes;
        code = aclrtPointerGetAttributes(block, &attributes);
    }
    double took = (now_ns() - start) / rounds;
    int freed = aclrtFree(block);
    code = code ? code : freed;
    return code ? -code : took;
}

int bench_hold_blocks(uint32_t count) {
    int code = use_device();
    held_blocks = calloc(count, sizeof(*held_blocks));
    if (!held_blocks)
        return -ENOMEM;
    for (held_block_count = 0; !code && held_block_count < count; held_block_count += code == 0)
        code = aclrtMalloc(&held_blocks[held_block_count], BLOCK_BYTES, ACL_MEM_MALLOC_NORMAL_ONLY);
    return -code;
}

int bench_hold_mappings(uint32_t count) {
    void *range = NULL;
    int code = use_device();
    if (code || (code = make_handle(&held_handle)) ||
        (code = aclrtReserveMemAddress(&range, count * PAGE_2M, 0, NULL, 1)))
        return -code;
    held_range = range;
    for (held_mapping_count = 0; !code && held_mapping_count < count; held_mapping_count += code == 0)
        code = aclrtMapMem(held_range + held_mapping_count * PAGE_2M, PAGE_2M, 0, held_handle, 0);
    return -code;
}

int bench_drop_all(void) {
    int code = 0, got;
    while (held_block_count)
        if ((got = aclrtFree(held_blocks[--held_block_count])))
            code = got;
    free(held_blocks);
    held_blocks = NULL;
    while (held_mapping_count)
        if ((got = aclrtUnmapMem(held_range + --held_mapping_count * PAGE_2M)))
            code = got;
    if (held_range && (got = aclrtReleaseMemAddress(held_range)))
        code = got;
    if (held_handle && (got = aclrtFreePhysical(held_handle)))
        code = got;
    held_range = NULL;
    held_handle = NULL;
    return -code;
}

double bench_set_context(uint32_t rounds) {
    aclrtContext context;
    int code = use_device();
    if (code || (code = aclrtGetCurrentContext(&context)))
        return -code;
    double start = now_ns();
    for (uint32_t i = 0; i < rounds && !code; i++)
        code = aclrtSetCurrentContext(context);
    return code ? -code : (now_ns() - start) / rounds;
}

double bench_mem_info(uint32_t rounds) {
    size_t left, total;
    int code = use_device();
    double start = now_ns();
    for (uint32_t i = 0; i < rounds && !code; i++)
        code = aclrtGetMemInfo(ACL_HBM_MEM, &left, &total);
    return code ? -code : (now_ns() - start) / rounds;
}

double bench_stream_query(uint32_t rounds) {
    aclrtStreamStatus status;
    int code = use_device();
    double start = now_ns();
    for (uint32_t i = 0; i < rounds && !code; i++)
        code = aclrtStreamQuery(NULL, &status);
    return code ? -code : (now_ns() - start) / rounds;
}

/* Makes an event, times a call on it by the default stream, and destroys it; the time or a negative code. */
static double time_event(uint32_t rounds, int (*call)(aclrtEvent event)) {
    aclrtEvent event = NULL;
    int code = use_device();
    if (code || (code = aclrtCreateEvent(&event)))
        return -code;
    double start = now_ns();
    for (uint32_t i = 0; i < rounds && !code; i++)
        code = call(event);
    double took = (now_ns() - start) / rounds;
    int destroyed = aclrtDestroyEvent(event);
    code = code ? code : destroyed;
    return code ? -code : took;
}

static int query(aclrtEvent event) {
    aclrtEventRecordedStatus status;
    return aclrtQueryEventStatus(event, &status);
}

static int record(aclrtEvent event) {
    return aclrtRecordEvent(event, NULL);
}

double bench_event_query(uint32_t rounds) {
    return time_event(rounds, query);
}

/* The worker of the stream would take part in the time. */
double bench_event_record(uint32_t rounds) {
    int code = use_device();
    if (code || (code = hostacl_hold(-1)))
        return -code;
    double took = time_event(rounds, record);
    code = hostacl_release(-1);
    if (!code)
        code = aclrtSynchronizeStream(NULL);
    return code ? -code : took;
}
