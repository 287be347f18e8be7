/* Exported: what a program says about managed memory, and what it said. Host and devices reach managed memory where it
 * is, so advice and prefetches move nothing; they are kept and read back. Prefetches take their place in the stream.
 * Thread safety: any thread, any time. */
#include <string.h>

#include "acl/acl.h"
#include "device.h"
#include "entry.h"
#include "errors.h"
#include "managed.h"
#include "managed_advice.h"
#include "stream.h"
#include "stream_queue.h"
#include "table.h"
#include "task.h"

/* A prefetch in a stream. */
struct prefetch {
    struct task task;
    uint64_t addr;                    /* first byte */
    uint64_t len;                     /* bytes */
    aclrtMemManagedLocation location; /* where to */
};

/* Whether a range lies in one piece of managed memory; returns a code. The table lock is held. */
static int check_range(uint64_t addr, uint64_t len) {
    size_t count;
    if (managed_units(addr, len, &count))
        return ACL_SUCCESS;
    return error_raise(ERROR_DRIVER, ACL_ERROR_RT_PARAM_INVALID,
                       "0x%llx + %llu bytes is not inside one piece of managed memory", (unsigned long long)addr,
                       (unsigned long long)len);
}

static int check_location(const aclrtMemManagedLocation *location) {
    if (location->type == ACL_MEM_LOCATIONTYPE_DEVICE)
        return device_check_id(location->id, ACL_ERROR_RT_INVALID_DEVICEID);
    if ((uint32_t)location->type > ACL_MEM_LOCATIONTYPE_HOST_NUMA_CURRENT || !location->type)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "location type %d is no place",
                           (int)location->type);
    return ACL_SUCCESS;
}

static bool names_place(aclrtMemManagedAdviseType advise) {
    return advise == ACL_MEM_ADVISE_SET_PREFERRED_LOCATION || advise == ACL_MEM_ADVISE_SET_ACCESSED_BY ||
           advise == ACL_MEM_ADVISE_UNSET_ACCESSED_BY;
}

aclError aclrtMemManagedAdvise(const void *const ptr, uint64_t size, aclrtMemManagedAdviseType advise,
                               aclrtMemManagedLocation location) {
    ENTER(aclrtMemManagedAdvise, ptr, size, advise, location);
    if (!ptr)
        return error_null("ptr");
    if (!size || (uint32_t)advise > ACL_MEM_ADVISE_UNSET_ACCESSED_BY)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "size is %llu, advise is %d and must be 0 to 5",
                           (unsigned long long)size, (int)advise);
    int code = names_place(advise) ? check_location(&location) : ACL_SUCCESS;
    if (code)
        return code;
    uint64_t addr = (uint64_t)(uintptr_t)ptr;
    table_lock();
    code = check_range(addr, size);
    if (!code)
        advice_note(addr, size, advise, &location);
    table_unlock();
    return code;
}

static int run(struct task *task) {
    const struct prefetch *prefetch = (const struct prefetch *)task;
    int code = check_range(prefetch->addr, prefetch->len);
    if (!code)
        advice_prefetched(prefetch->addr, prefetch->len, &prefetch->location);
    return code;
}

/* Puts a prefetch into a stream; returns a code. The table lock is held. */
static int submit(struct stream *stream, const struct prefetch *wanted, enum function_id function) {
    static const struct task_kind kind = {.run = run};
    int code = check_range(wanted->addr, wanted->len);
    return code ? code : stream_submit_copy(stream, &wanted->task, sizeof(*wanted), &kind, function);
}

/* The checks of the entry layer for one range; returns a code. */
static int check_request(const void *ptr, size_t size, uint64_t flags) {
    if (!ptr)
        return error_null("ptr");
    if (!size || flags)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "size is %zu, flags is %llu and must be 0", size,
                           (unsigned long long)flags);
    return ACL_SUCCESS;
}

aclError aclrtMemManagedPrefetchAsync(const void *ptr, size_t size, aclrtMemManagedLocation location, uint32_t flags,
                                      aclrtStream stream) {
    ENTER(aclrtMemManagedPrefetchAsync, ptr, size, location, flags, stream);
    int code = check_request(ptr, size, flags);
    if (!code)
        code = check_location(&location);
    if (code)
        return code;
    struct prefetch wanted = {.addr = (uint64_t)(uintptr_t)ptr, .len = size, .location = location};
    table_lock();
    struct stream *found = stream_need(stream, true, &code);
    if (found)
        code = submit(found, &wanted, FUNCTION_aclrtMemManagedPrefetchAsync);
    table_unlock();
    return code;
}

/* Whether the places of a batch follow each other from range 0; returns a code. */
static int check_places(const aclrtMemManagedLocation *places, const size_t *indexes, size_t num, size_t count) {
    for (size_t i = 0; i < num; i++) {
        if (i ? indexes[i] <= indexes[i - 1] || indexes[i] >= count : indexes[0] != 0)
            return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID,
                               "prefetchLocIdxs[%zu] is %zu; they rise from 0 to below %zu", i, indexes[i], count);
        int code = check_location(&places[i]);
        if (code)
            return code;
    }
    return ACL_SUCCESS;
}

aclError aclrtMemManagedPrefetchBatchAsync(const void **ptrs, size_t *sizes, size_t count,
                                           aclrtMemManagedLocation *prefetchLocs, size_t *prefetchLocIdxs,
                                           size_t numPrefetchLocs, uint64_t flags, aclrtStream stream) {
    ENTER(aclrtMemManagedPrefetchBatchAsync, ptrs, IN(sizes), count, IN(prefetchLocs), IN(prefetchLocIdxs),
          numPrefetchLocs, flags, stream);
    if (!ptrs || !sizes || !prefetchLocs || !prefetchLocIdxs)
        return error_null(!ptrs ? "ptrs" : !sizes ? "sizes" : prefetchLocs ? "prefetchLocIdxs" : "prefetchLocs");
    if (!count || !numPrefetchLocs)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "count is %zu, numPrefetchLocs is %zu", count,
                           numPrefetchLocs);
    int code = check_places(prefetchLocs, prefetchLocIdxs, numPrefetchLocs, count);
    for (size_t i = 0; i < count && !code; i++)
        code = check_request(ptrs[i], sizes[i], flags);
    if (code)
        return code;
    table_lock();
    struct stream *found = stream_need(stream, true, &code);
    for (size_t i = 0, place = 0; i < count && !code; i++) {
        if (place + 1 < numPrefetchLocs && prefetchLocIdxs[place + 1] == i)
            place++;
        struct prefetch wanted = {
            .addr = (uint64_t)(uintptr_t)ptrs[i], .len = sizes[i], .location = prefetchLocs[place]};
        code = submit(found, &wanted, FUNCTION_aclrtMemManagedPrefetchBatchAsync);
    }
    table_unlock();
    return code;
}

/* Whether an attribute can be written to so many bytes; returns a code. */
static int check_attribute(aclrtMemManagedRangeAttribute attribute, const void *data, size_t bytes) {
    if (!data)
        return error_null("data");
    if (attribute < ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY ||
        attribute > ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "attribute %d is not in 1..8", (int)attribute);
    bool list = attribute == ACL_MEM_RANGE_ATTRIBUTE_ACCESSED_BY;
    if (!bytes || bytes % sizeof(int32_t) || (!list && bytes != sizeof(int32_t)))
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "attribute %d is not written to %zu bytes",
                           (int)attribute, bytes);
    return ACL_SUCCESS;
}

/* Writes checked attributes; returns a code. */
static int read_attributes(const aclrtMemManagedRangeAttribute *attributes, size_t count, const void *ptr, size_t size,
                           void *const *data, const size_t *bytes) {
    uint64_t addr = (uint64_t)(uintptr_t)ptr;
    int code = check_request(ptr, size, 0);
    for (size_t i = 0; i < count && !code; i++)
        code = check_attribute(attributes[i], data[i], bytes[i]);
    if (code)
        return code;
    table_lock();
    code = check_range(addr, size);
    for (size_t i = 0; i < count && !code; i++)
        advice_read(addr, size, attributes[i], data[i], bytes[i] / sizeof(int32_t));
    table_unlock();
    return code;
}

aclError aclrtMemManagedGetAttr(aclrtMemManagedRangeAttribute attribute, const void *ptr, size_t size, void *data,
                                size_t dataSize) {
    ENTER(aclrtMemManagedGetAttr, attribute, ptr, size, data, dataSize);
    return read_attributes(&attribute, 1, ptr, size, &data, &dataSize);
}

aclError aclrtMemManagedGetAttrs(aclrtMemManagedRangeAttribute *attributes, size_t numAttributes, const void *ptr,
                                 size_t size, void **data, size_t *dataSizes) {
    ENTER(aclrtMemManagedGetAttrs, IN(attributes), numAttributes, ptr, size, IN(data), IN(dataSizes));
    if (!attributes || !data || !dataSizes)
        return error_null(!attributes ? "attributes" : data ? "dataSizes" : "data");
    if (!numAttributes)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "numAttributes is 0");
    return read_attributes(attributes, numAttributes, ptr, size, data, dataSizes);
}
