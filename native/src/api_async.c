/* Exported: copies and sets in stream order.
 *
 * The kind of a copy is compared with what the addresses are: between device and pinned memory the addresses decide,
 * where unregistered memory takes part the kind must fit. Thread safety: any thread, any time. */
#include "acl/acl.h"
#include "async_copy.h"
#include "context.h"
#include "entry.h"
#include "errors.h"
#include "place.h"
#include "table.h"

static uint64_t number(const void *ptr) {
    return (uint64_t)(uintptr_t)ptr;
}

static int copy_in_order(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind,
                         aclrtStream stream, enum function_id function) {
    if (!count)
        return ACL_SUCCESS;
    if (!dst || !src)
        return error_null(dst ? "src" : "dst");
    if ((uint32_t)kind > ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "kind %d is not in 0..5", (int)kind);
    if (count > destMax)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "count %zu is above destMax %zu", count,
                           destMax);
    struct copy copy = {.to.addr = number(dst), .from.addr = number(src), .width = count, .rows = 1};
    return async_copy(&copy, kind, stream, function);
}

aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind,
                          aclrtStream stream) {
    ENTER(aclrtMemcpyAsync, dst, destMax, src, count, kind, stream);
    return copy_in_order(dst, destMax, src, count, kind, stream, FUNCTION_aclrtMemcpyAsync);
}

/* Its condition, that unregistered memory makes the copy synchronous, holds for every copy here. */
aclError aclrtMemcpyAsyncWithCondition(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind,
                                       aclrtStream stream) {
    ENTER(aclrtMemcpyAsyncWithCondition, dst, destMax, src, count, kind, stream);
    return copy_in_order(dst, destMax, src, count, kind, stream, FUNCTION_aclrtMemcpyAsyncWithCondition);
}

aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream) {
    ENTER(aclrtMemsetAsync, devPtr, maxCount, value, count, stream);
    if (!count)
        return ACL_SUCCESS;
    if (!devPtr)
        return error_null("devPtr");
    if (count > maxCount)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "count %zu is above maxCount %zu", count,
                           maxCount);
    struct fill fill = fill_of_bytes(number(devPtr), (uint8_t)value, count);
    return async_fill(&fill, false, stream, FUNCTION_aclrtMemsetAsync);
}

/* The checks that both forms of a set by words share. */
static int check_words(const void *ptr, size_t size_bytes, size_t words) {
    if (!ptr)
        return error_null("ptr");
    if (number(ptr) % sizeof(uint32_t))
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "ptr %p is not at a multiple of 4 bytes", ptr);
    if (words > size_bytes / sizeof(uint32_t))
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "%zu words do not fit %zu bytes", words, size_bytes);
    return ACL_SUCCESS;
}

static struct fill fill_of_words(void *ptr, uint32_t value, size_t words) {
    return (struct fill){.addr = number(ptr), .bytes = words * sizeof(uint32_t), .pattern = value};
}

aclError aclrtMemsetD32(void *ptr, size_t memSize, uint32_t value, size_t N) {
    ENTER(aclrtMemsetD32, ptr, memSize, value, N);
    int code = check_words(ptr, memSize, N);
    if (code || !N)
        return code;
    struct fill fill = fill_of_words(ptr, value, N);
    table_lock();
    bool has_context = context_need();
    struct place place = place_of(fill.addr);
    fill.block = place.block;
    table_unlock();
    if (!has_context)
        return ACL_ERROR_RT_CONTEXT_NULL;
    if (place.kind == PLACE_UNREGISTERED)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_PARAM_INVALID, "ptr %p is %s", ptr, place_name(place.kind));
    return fill_run(&fill);
}

aclError aclrtMemsetD32Async(void *ptr, size_t memSize, uint32_t value, size_t N, aclrtStream stream) {
    ENTER(aclrtMemsetD32Async, ptr, memSize, value, N, stream);
    int code = check_words(ptr, memSize, N);
    if (code || !N)
        return code;
    struct fill fill = fill_of_words(ptr, value, N);
    return async_fill(&fill, true, stream, FUNCTION_aclrtMemsetD32Async);
}
