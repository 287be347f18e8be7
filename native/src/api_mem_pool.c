/* Exported: stream-ordered memory pools. Only the Atlas A2 products have them. A block of a pool is freed through
 * aclrtMemPoolFreeAsync alone. The values of the attributes are 64-bit numbers, those of the reuse attributes 32-bit
 * ones. Thread safety: any thread, any time. */
#include <string.h>

#include "acl/acl.h"
#include "device.h"
#include "entry.h"
#include "errors.h"
#include "faults.h"
#include "mem_pool.h"
#include "runtime.h"
#include "stream.h"
#include "table.h"

static int null_argument(const char *name) {
    return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "%s is null", name);
}

/* Whether the product has pools, as a code. The table lock is held. */
static int need_feature(void) {
    if (runtime_config()->product->pools)
        return ACL_SUCCESS;
    return error_raise(ERROR_DRIVER, ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s has no stream-ordered memory pools",
                       runtime_config()->soc_name);
}

static int not_alive(const void *handle) {
    return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "%p is no live memory pool", handle);
}

static bool all_zero(const unsigned char *bytes, size_t count) {
    while (count > 0 && !bytes[count - 1])
        count--;
    return count == 0;
}

static int check_props(const aclrtMemPoolProps *props) {
    if (props->allocType != ACL_MEM_ALLOCATION_TYPE_PINNED || props->handleType != ACL_MEM_HANDLE_TYPE_NONE ||
        props->location.type != ACL_MEM_LOCATION_TYPE_DEVICE)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM,
                           "allocType is %d, handleType %d, location.type %d; 0, 0 and 1 are accepted",
                           (int)props->allocType, (int)props->handleType, (int)props->location.type);
    if (!all_zero(props->reserved, sizeof(props->reserved)))
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "poolProps->reserved is not all zero");
    return ACL_SUCCESS;
}

static int create(aclrtMemPool *out, const aclrtMemPoolProps *props) {
    struct device *device = device_at((int32_t)props->location.id);
    int code = need_feature();
    if (code)
        return code;
    if (!device)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_INVALID_DEVICEID, "device id %d is not in 0..%u",
                           (int)props->location.id, runtime_config()->devices - 1);
    const struct mem_pool *pool = device_open(device) ? mem_pool_make(device, props->maxSize) : NULL;
    if (!pool) {
        device_close_if_idle(device);
        return error_raise(ERROR_MEMORY, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "the host has no memory for a pool");
    }
    *out = pool->handle;
    return ACL_SUCCESS;
}

aclError aclrtMemPoolCreate(aclrtMemPool *memPool, const aclrtMemPoolProps *poolProps) {
    ENTER(aclrtMemPoolCreate, memPool, poolProps);
    if (!memPool || !poolProps)
        return null_argument(memPool ? "poolProps" : "memPool");
    int code = check_props(poolProps);
    if (code)
        return code;
    table_lock();
    code = create(memPool, poolProps);
    table_unlock();
    return code;
}

aclError aclrtMemPoolDestroy(const aclrtMemPool memPool) {
    ENTER(aclrtMemPoolDestroy, memPool);
    if (!memPool)
        return null_argument("memPool");
    table_lock();
    int code = need_feature();
    struct mem_pool *pool = code ? NULL : mem_pool_at(memPool);
    if (pool)
        mem_pool_end(pool);
    table_unlock();
    return code || pool ? code : not_alive(memPool);
}

static int malloc_async(void **ptr, size_t size, const void *handle, const void *stream_handle) {
    uint64_t addr;
    int code = need_feature();
    struct stream *stream = code ? NULL : stream_need(stream_handle, true, &code);
    struct mem_pool *pool = stream ? mem_pool_at(handle) : NULL;
    if (!stream)
        return code;
    if (!pool)
        return not_alive(handle);
    if (pool->device != stream->device)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "the pool is of device %d, the stream of %d",
                           pool->device->id, stream->device->id);
    code = fault_of_allocation(size);
    if (code)
        return code;
    if (!mem_pool_malloc(pool, size, stream, &addr))
        return error_raise(ERROR_MEMORY, ACL_ERROR_RT_MEMORY_ALLOCATION,
                           "%zu bytes do not fit into the memory pool or its device", size);
    *ptr = (void *)(uintptr_t)addr;
    return ACL_SUCCESS;
}

aclError aclrtMemPoolMallocAsync(void **ptr, size_t size, aclrtMemPool memPool, aclrtStream stream) {
    ENTER(aclrtMemPoolMallocAsync, ptr, size, memPool, stream);
    if (!size)
        return ACL_SUCCESS;
    if (!ptr || !memPool || !stream)
        return null_argument(!ptr ? "ptr" : memPool ? "stream" : "memPool");
    table_lock();
    int code = malloc_async(ptr, size, memPool, stream);
    table_unlock();
    return code;
}

aclError aclrtMemPoolFreeAsync(void *ptr, aclrtStream stream) {
    ENTER(aclrtMemPoolFreeAsync, ptr, stream);
    if (!ptr || !stream)
        return null_argument(ptr ? "stream" : "ptr");
    table_lock();
    int code = need_feature();
    struct stream *found = code ? NULL : stream_need(stream, true, &code);
    if (found)
        code = mem_pool_free((uint64_t)(uintptr_t)ptr, found);
    table_unlock();
    return code;
}

aclError aclrtMemPoolTrimTo(aclrtMemPool memPool, size_t minBytesToKeep) {
    ENTER(aclrtMemPoolTrimTo, memPool, minBytesToKeep);
    if (!memPool)
        return null_argument("memPool");
    table_lock();
    int code = need_feature();
    struct mem_pool *pool = code ? NULL : mem_pool_at(memPool);
    if (pool)
        mem_pool_trim(pool, minBytesToKeep);
    table_unlock();
    return code || pool ? code : not_alive(memPool);
}

/* The 64-bit number behind an attribute, or null. */
static uint64_t *figure(struct mem_pool *pool, int attr) {
    switch (attr) {
    case ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD:
        return &pool->threshold;
    case ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT:
        return &pool->reserved;
    case ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH:
        return &pool->reserved_high;
    case ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT:
        return &pool->used;
    case ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH:
        return &pool->used_high;
    default:
        return NULL;
    }
}

static bool is_reuse(int attr) {
    return attr >= ACL_RT_MEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
           attr <= ACL_RT_MEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

static int unknown_attribute(int attr) {
    return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "attribute %d is unknown or cannot be set", attr);
}

static int get_attribute(struct mem_pool *pool, int attr, void *value) {
    const uint64_t *number = figure(pool, attr);
    if (is_reuse(attr))
        memcpy(value, &pool->reuse[attr - 1], sizeof(int32_t));
    else if (number)
        memcpy(value, number, sizeof(*number));
    else
        return unknown_attribute(attr);
    return ACL_SUCCESS;
}

/* The highest figures can only be set back to the current ones, by 0. */
static int set_attribute(struct mem_pool *pool, int attr, const void *value) {
    uint64_t number = 0;
    bool high = attr == ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH || attr == ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH;
    memcpy(&number, value, is_reuse(attr) ? sizeof(int32_t) : sizeof(number));
    if (is_reuse(attr))
        pool->reuse[attr - 1] = number != 0;
    else if (attr == ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD)
        pool->threshold = number;
    else if (high && !number)
        *figure(pool, attr) = *figure(pool, attr - 1);
    else
        return unknown_attribute(attr);
    return ACL_SUCCESS;
}

/* Looks the pool up and applies; value is read or written. */
static int attribute(aclrtMemPool handle, int attr, void *value, bool set) {
    if (!handle || !value)
        return null_argument(handle ? "value" : "memPool");
    table_lock();
    int code = need_feature();
    struct mem_pool *pool = code ? NULL : mem_pool_at(handle);
    if (pool)
        code = set ? set_attribute(pool, attr, value) : get_attribute(pool, attr, value);
    table_unlock();
    return code || pool ? code : not_alive(handle);
}

aclError aclrtMemPoolSetAttr(aclrtMemPool memPool, aclrtMemPoolAttr attr, void *value) {
    ENTER(aclrtMemPoolSetAttr, memPool, attr, IN(value));
    return attribute(memPool, (int)attr, value, true);
}

aclError aclrtMemPoolGetAttr(aclrtMemPool memPool, aclrtMemPoolAttr attr, void *value) {
    ENTER(aclrtMemPoolGetAttr, memPool, attr, value);
    return attribute(memPool, (int)attr, value, false);
}
