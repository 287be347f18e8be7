/* A pool that grows: the largest size is reserved once at first use, each growth is one physical handle mapped directly
 * behind the one before, so that the pool stays one range. At the end every piece is unmapped by its own start, then
 * the handles are freed, then the range is released. */
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

enum { MAX_PIECES = 64 };

struct pool {
    char *start;                          /* reserved range, null before the first use */
    size_t mapped;                        /* bytes mapped so far */
    size_t used;                          /* bytes handed out, from the front */
    size_t granularity;                   /* unit of physical memory */
    size_t pieces;                        /* growths so far */
    aclrtDrvMemHandle handle[MAX_PIECES]; /* physical memory of each growth */
    char *at[MAX_PIECES];                 /* where each is mapped */
};

static const size_t max_bytes = (size_t)32 << 30;

static aclrtPhysicalMemProp property(void) {
    aclrtPhysicalMemProp prop = {.memAttr = ACL_HBM_MEM_HUGE};
    prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    return prop;
}

static void grow(struct pool *pool, size_t missing) {
    aclrtPhysicalMemProp prop = property();
    if (!pool->start) {
        ACL(aclrtReserveMemAddress((void **)&pool->start, max_bytes, 0, NULL, 1));
        ACL(aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED, &pool->granularity));
    }
    size_t bytes = (missing + pool->granularity - 1) / pool->granularity * pool->granularity;
    size_t piece = pool->pieces++;
    CHECK(piece < MAX_PIECES && pool->mapped + bytes <= max_bytes);
    pool->at[piece] = pool->start + pool->mapped;
    ACL(aclrtMallocPhysical(&pool->handle[piece], bytes, &prop, 0));
    ACL(aclrtMapMem(pool->at[piece], bytes, 0, pool->handle[piece], 0));
    pool->mapped += bytes;
}

static void *take(struct pool *pool, size_t bytes) {
    if (pool->used + bytes > pool->mapped)
        grow(pool, pool->used + bytes - pool->mapped);
    char *block = pool->start + pool->used;
    pool->used += (bytes + 127) & ~(size_t)127;
    return block;
}

static void give_back(struct pool *pool) {
    for (size_t piece = 0; piece < pool->pieces; piece++)
        ACL(aclrtUnmapMem(pool->at[piece]));
    for (size_t piece = 0; piece < pool->pieces; piece++)
        ACL(aclrtFreePhysical(pool->handle[piece]));
    ACL(aclrtReleaseMemAddress(pool->start));
}

static size_t free_bytes(void) {
    size_t free_now = 0, total = 0;
    ACL(aclrtGetMemInfo(ACL_HBM_MEM_HUGE, &free_now, &total));
    return free_now;
}

/* A block that lies across two growths is copied as one. */
static void check_across(struct pool *pool) {
    static unsigned char bytes[300000], back[300000];
    char *middle = pool->at[1] - sizeof(bytes) / 2;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(i % 251);
    ACL(aclrtMemcpy(middle, sizeof(bytes), bytes, sizeof(bytes), ACL_MEMCPY_HOST_TO_DEVICE));
    ACL(aclrtMemcpy(back, sizeof(back), middle, sizeof(back), ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(!memcmp(bytes, back, sizeof(back)));
    void *base = NULL;
    size_t size = 0;
    ACL(aclrtMemGetAddressRange(middle, &base, &size));
    CHECK(base == pool->at[0] && (char *)base + size == pool->at[1]);
}

int main(void) {
    struct pool pool = {0};
    ACL(aclInit(NULL));
    ACL(aclrtSetDevice(0));
    size_t before = free_bytes();
    char *end = NULL;
    for (size_t i = 1; i <= 40; i++) {
        size_t bytes = i * 77777;
        char *block = take(&pool, bytes);
        CHECK(!end || block == end);
        end = block + ((bytes + 127) & ~(size_t)127);
        ACL(aclrtMemset(block, bytes, (int)i, bytes));
    }
    CHECK(before - free_bytes() == pool.mapped);
    CHECK(aclrtMemset(pool.start + pool.mapped, 1, 0, 1) == ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    check_across(&pool);
    printf("%zu growths, %zu of %zu bytes mapped in one range of %zu bytes\n", pool.pieces, pool.used, pool.mapped,
           max_bytes);
    give_back(&pool);
    CHECK(free_bytes() == before);
    ACL(aclrtResetDevice(0));
    return aclFinalize();
}
