/* Exported: combining numbers of two ranges of device memory in stream order. Thread safety: any thread, any time. */
#include "acl/acl.h"
#include "async_copy.h"
#include "entry.h"
#include "errors.h"
#include "place.h"
#include "reduce.h"
#include "stream.h"
#include "table.h"

static int check_request(const void *dst, const void *src, aclrtReduceKind kind, const void *reserve) {
    if (!dst || !src)
        return error_null(dst ? "src" : "dst");
    if (reserve)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "reserve is not null");
    if (kind < ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM || kind > ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "kind %d is not in 10..13", (int)kind);
    return ACL_SUCCESS;
}

/* Both ranges hold whole numbers. */
static int check_ranges(const struct copy *copy, size_t bytes) {
    if (copy->width % bytes || copy->to.addr % bytes || copy->from.addr % bytes)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID,
                           "addresses and count must be multiples of %zu bytes", bytes);
    return ACL_SUCCESS;
}

static int give(const struct copy *copy, const void *handle) {
    int code;
    table_lock();
    struct stream *stream = stream_need(handle, true, &code);
    if (stream && (place_of(copy->to.addr).kind != PLACE_DEVICE || place_of(copy->from.addr).kind != PLACE_DEVICE))
        code = error_raise(ERROR_DRIVER, ACL_ERROR_RT_PARAM_INVALID, "dst and src must be device memory");
    if (!code)
        code = async_copy_submit(stream, copy, NULL, FUNCTION_aclrtReduceAsync);
    table_unlock();
    return code;
}

aclError aclrtReduceAsync(void *dst, const void *src, uint64_t count, aclrtReduceKind kind, aclDataType type,
                          aclrtStream stream, void *reserve) {
    ENTER(aclrtReduceAsync, dst, src, count, kind, type, stream, reserve);
    struct copy copy = {
        .to.addr = (uint64_t)(uintptr_t)dst, .from.addr = (uint64_t)(uintptr_t)src, .width = count, .rows = 1};
    size_t bytes = 0;
    int code = check_request(dst, src, kind, reserve);
    if (code)
        return code;
    if (!count)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "count is 0");
    copy.combine = reduce_find(kind, type, &bytes);
    if (!copy.combine)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                           "numbers of type %d cannot be combined by kind %d", (int)type, (int)kind);
    code = check_ranges(&copy, bytes);
    return code ? code : give(&copy, stream);
}
