/* Expandable segments, as a caching allocator makes them: one range larger than the device, physical memory of one size
 * mapped at start + index x size. Whole segments are unmapped when they are empty; their handles are kept in a list and
 * mapped again at another index later, with what they held. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition);                                   \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define ACL(call) CHECK((call) == ACL_SUCCESS)

enum { SEGMENTS = 32 };

struct expandable {
    char *start;                        /* reserved range */
    size_t segment_bytes;               /* size of every segment */
    aclrtDrvMemHandle mapped[SEGMENTS]; /* by index, null where nothing is mapped */
    aclrtDrvMemHandle kept[SEGMENTS];   /* unmapped handles, used first */
    size_t kept_count;                  /* how many */
};

/* Support is asked for with a tiny range. */
static int supported(void) {
    void *probe = NULL;
    if (aclrtReserveMemAddress(&probe, 512, 0, NULL, 1))
        return 0;
    ACL(aclrtReleaseMemAddress(probe));
    return 1;
}

static void open_range(struct expandable *range, size_t segment_bytes) {
    size_t free_now = 0, total = 0;
    *range = (struct expandable){.segment_bytes = segment_bytes};
    ACL(aclrtGetMemInfo(ACL_HBM_MEM, &free_now, &total));
    size_t bytes = (total + total / 8) / segment_bytes * segment_bytes;
    ACL(aclrtReserveMemAddress((void **)&range->start, bytes, 0, NULL, 1));
}

static char *map_segment(struct expandable *range, size_t index) {
    aclrtDrvMemHandle handle = NULL;
    aclrtPhysicalMemProp prop = {.memAttr = ACL_HBM_MEM_HUGE, .location = {.type = ACL_MEM_LOCATION_TYPE_DEVICE}};
    CHECK(!range->mapped[index]);
    if (range->kept_count)
        handle = range->kept[--range->kept_count];
    else
        ACL(aclrtMallocPhysical(&handle, range->segment_bytes, &prop, 0));
    char *at = range->start + index * range->segment_bytes;
    ACL(aclrtMapMem(at, range->segment_bytes, 0, handle, 0));
    range->mapped[index] = handle;
    return at;
}

static void unmap_segment(struct expandable *range, size_t index) {
    ACL(aclrtSynchronizeDevice());
    ACL(aclrtUnmapMem(range->start + index * range->segment_bytes));
    range->kept[range->kept_count++] = range->mapped[index];
    range->mapped[index] = NULL;
}

static void close_range(struct expandable *range) {
    for (size_t index = 0; index < SEGMENTS; index++) {
        if (range->mapped[index])
            unmap_segment(range, index);
    }
    while (range->kept_count)
        ACL(aclrtFreePhysical(range->kept[--range->kept_count]));
    ACL(aclrtReleaseMemAddress(range->start));
}

static void write_mark(char *at, size_t bytes, int mark) {
    ACL(aclrtMemset(at, bytes, mark, bytes));
}

static int read_mark(const char *at, size_t bytes) {
    unsigned char first = 0, last = 0;
    ACL(aclrtMemcpy(&first, 1, at, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    ACL(aclrtMemcpy(&last, 1, at + bytes - 1, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(first == last);
    return first;
}

static void run(size_t segment_bytes) {
    struct expandable range;
    open_range(&range, segment_bytes);
    for (size_t index = 0; index < 8; index++)
        write_mark(map_segment(&range, index), segment_bytes, 10 + (int)index);
    unmap_segment(&range, 2);
    unmap_segment(&range, 5);
    char unused = 0;
    CHECK(aclrtMemcpy(&unused, 1, range.start + 2 * segment_bytes, 1, ACL_MEMCPY_DEVICE_TO_HOST) != ACL_SUCCESS);
    CHECK(read_mark(map_segment(&range, 20), segment_bytes) == 15);
    CHECK(read_mark(map_segment(&range, 5), segment_bytes) == 12);
    for (size_t index = 0; index < 8; index++) {
        if (index != 2 && index != 5)
            CHECK(read_mark(range.start + index * segment_bytes, segment_bytes) == 10 + (int)index);
    }
    close_range(&range);
    printf("segments of %zu MiB: kept handles came back at other places with their bytes\n", segment_bytes >> 20);
}

int main(void) {
    ACL(aclInit(NULL));
    ACL(aclrtSetDevice(0));
    CHECK(supported());
    run((size_t)2 << 20);
    run((size_t)20 << 20);
    ACL(aclrtResetDevice(0));
    return aclFinalize();
}
