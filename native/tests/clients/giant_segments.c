/* Segments of 1 GiB with fall-back: 1 GiB pages are asked for first; on any failure the same size is asked for in 2 MiB
 * pages. A failed attempt must leave no trace in the free memory. The plain way does the same with two policies. */
#include <stdio.h>
#include <stdlib.h>

#include "acl/acl.h"

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition);                                   \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define ACL(call) CHECK((call) == ACL_SUCCESS)

enum { SEGMENTS = 6 };

static const size_t segment_bytes = (size_t)1 << 30;

static size_t free_bytes(aclrtMemAttr attr) {
    size_t free_now = 0, total = 0;
    int code = aclrtGetMemInfo(attr, &free_now, &total);
    CHECK(!code || (attr == ACL_HBM_MEM_HUGE1G && code == ACL_ERROR_RT_FEATURE_NOT_SUPPORT));
    return code ? 0 : free_now;
}

/* Physical memory of one segment; returns whether it consists of 1 GiB pages. */
static int make_segment(aclrtDrvMemHandle *handle) {
    aclrtPhysicalMemProp prop = {.memAttr = ACL_HBM_MEM_HUGE1G, .location = {.type = ACL_MEM_LOCATION_TYPE_DEVICE}};
    size_t giant = free_bytes(ACL_HBM_MEM_HUGE1G), huge = free_bytes(ACL_HBM_MEM_HUGE);
    int code = aclrtMallocPhysical(handle, segment_bytes, &prop, 0);
    if (!code) {
        CHECK(giant - free_bytes(ACL_HBM_MEM_HUGE1G) == segment_bytes);
        return 1;
    }
    CHECK(code == ACL_ERROR_RT_MEMORY_ALLOCATION || code == ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK(free_bytes(ACL_HBM_MEM_HUGE1G) == giant && free_bytes(ACL_HBM_MEM_HUGE) == huge);
    prop.memAttr = ACL_HBM_MEM_HUGE;
    ACL(aclrtMallocPhysical(handle, segment_bytes, &prop, 0));
    CHECK(huge - free_bytes(ACL_HBM_MEM_HUGE) == segment_bytes);
    return 0;
}

static void mapped_segments(void) {
    aclrtDrvMemHandle handles[SEGMENTS] = {0};
    char *start = NULL;
    int giant = 0, value = 0, mark = 0;
    ACL(aclrtReserveMemAddress((void **)&start, SEGMENTS * segment_bytes, 0, NULL, 1));
    CHECK((uintptr_t)start % segment_bytes == 0);
    for (int i = 0; i < SEGMENTS; i++) {
        giant += make_segment(&handles[i]);
        ACL(aclrtMapMem(start + (size_t)i * segment_bytes, segment_bytes, 0, handles[i], 0));
        mark = 1000 + i;
        ACL(aclrtMemcpy(start + (size_t)i * segment_bytes, 4, &mark, 4, ACL_MEMCPY_HOST_TO_DEVICE));
    }
    for (int i = 0; i < SEGMENTS; i++) {
        ACL(aclrtMemcpy(&value, 4, start + (size_t)i * segment_bytes, 4, ACL_MEMCPY_DEVICE_TO_HOST));
        CHECK(value == 1000 + i);
        ACL(aclrtUnmapMem(start + (size_t)i * segment_bytes));
        ACL(aclrtFreePhysical(handles[i]));
    }
    ACL(aclrtReleaseMemAddress(start));
    printf("%d segments of 1 GiB, %d of them in 1 GiB pages\n", SEGMENTS, giant);
}

static void plain_blocks(void) {
    void *blocks[SEGMENTS] = {0};
    int giant = 0;
    for (int i = 0; i < SEGMENTS; i++) {
        if (!aclrtMallocAlign32(&blocks[i], segment_bytes, ACL_MEM_MALLOC_HUGE1G_ONLY))
            giant++;
        else
            ACL(aclrtMallocAlign32(&blocks[i], segment_bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    }
    for (int i = 0; i < SEGMENTS; i++)
        ACL(aclrtFree(blocks[i]));
    printf("%d blocks of 1 GiB, %d of them in 1 GiB pages\n", SEGMENTS, giant);
}

int main(void) {
    ACL(aclInit(NULL));
    ACL(aclrtSetDevice(0));
    size_t giant = free_bytes(ACL_HBM_MEM_HUGE1G), huge = free_bytes(ACL_HBM_MEM_HUGE);
    mapped_segments();
    CHECK(free_bytes(ACL_HBM_MEM_HUGE1G) == giant && free_bytes(ACL_HBM_MEM_HUGE) == huge);
    plain_blocks();
    CHECK(free_bytes(ACL_HBM_MEM_HUGE1G) == giant);
    ACL(aclrtResetDevice(0));
    return aclFinalize();
}
