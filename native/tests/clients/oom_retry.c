/* Out of memory is an answer, not the end: a caching allocator keeps freed blocks, and only code 207001 makes it give
 * them back and ask once more. Every other code is an error. */
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

enum { MAX_CACHED = 256 };

struct cached {
    void *block;  /* device memory */
    size_t bytes; /* its size */
};

static struct cached cache[MAX_CACHED];
static size_t cached_count;
static size_t retries;

static void empty_cache(void) {
    ACL(aclrtSynchronizeDevice());
    while (cached_count)
        ACL(aclrtFree(cache[--cached_count].block));
}

/* The block, or null when the device is full even without the cache. */
static void *allocate(size_t bytes) {
    void *block = NULL;
    for (size_t i = 0; i < cached_count; i++) {
        if (cache[i].bytes == bytes) {
            block = cache[i].block;
            cache[i] = cache[--cached_count];
            return block;
        }
    }
    int code = aclrtMallocAlign32(&block, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    if (code == ACL_ERROR_RT_MEMORY_ALLOCATION && cached_count) {
        retries++;
        empty_cache();
        code = aclrtMallocAlign32(&block, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    }
    CHECK(code == ACL_SUCCESS || code == ACL_ERROR_RT_MEMORY_ALLOCATION);
    return code ? NULL : block;
}

static void release(void *block, size_t bytes) {
    CHECK(cached_count < MAX_CACHED);
    cache[cached_count++] = (struct cached){block, bytes};
}

int main(void) {
    void *blocks[MAX_CACHED];
    const size_t large = (size_t)1 << 30, larger = (size_t)3 << 30;
    size_t count = 0;
    ACL(aclInit(NULL));
    ACL(aclrtSetDevice(0));
    while (count < MAX_CACHED && (blocks[count] = allocate(large)))
        count++;
    CHECK(count > 8 && count < MAX_CACHED);
    CHECK(retries == 0);
    const char *message = aclGetRecentErrMsg();
    CHECK(message && aclGetRecentErrMsg() == NULL);
    for (size_t i = 0; i < count; i++)
        release(blocks[i], large);
    void *again = allocate(large);
    CHECK(again && retries == 0);
    void *other = allocate(larger);
    CHECK(other && retries == 1 && cached_count == 0);
    CHECK(aclrtMalloc(&blocks[0], 0, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_ERROR_INVALID_PARAM);
    printf("the device took %zu blocks of 1 GiB; one of 3 GiB came after the cache was emptied\n", count);
    ACL(aclrtFree(again));
    ACL(aclrtFree(other));
    ACL(aclrtResetDevice(0));
    return aclFinalize();
}
