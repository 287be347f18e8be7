/* Exported: copies of rows, at once and in stream order. Thread safety: any thread, any time. */
#include "acl/acl.h"
#include "async_copy.h"
#include "context.h"
#include "entry.h"
#include "errors.h"
#include "table.h"

/* Limits of a copy of rows by a stream. */
#define LARGEST_ASYNC_WIDTH 5000000u
#define LARGEST_ASYNC_HEIGHT (5u * 1024 * 1024)

static uint64_t number(const void *ptr) {
    return (uint64_t)(uintptr_t)ptr;
}

/* Checks that both forms share; returns a code. */
static int check_rows(const struct copy *copy, aclrtMemcpyKind kind) {
    if (!copy->to.addr || !copy->from.addr)
        return error_null(copy->to.addr ? "src" : "dst");
    if (kind < ACL_MEMCPY_HOST_TO_DEVICE || kind > ACL_MEMCPY_DEVICE_TO_DEVICE)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "kind %d is not in 1..3", (int)kind);
    if (copy->width > copy->to.pitch || copy->width > copy->from.pitch)
        return error_raise(
            ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "rows of %llu bytes do not fit the pitches of %llu and %llu bytes",
            (unsigned long long)copy->width, (unsigned long long)copy->to.pitch, (unsigned long long)copy->from.pitch);
    return ACL_SUCCESS;
}

static struct copy copy_of_rows(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height) {
    return (struct copy){.to = {.addr = number(dst), .pitch = dpitch},
                         .from = {.addr = number(src), .pitch = spitch},
                         .width = width,
                         .rows = height};
}

aclError aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                       aclrtMemcpyKind kind) {
    ENTER(aclrtMemcpy2d, dst, dpitch, src, spitch, width, height, kind);
    struct copy copy = copy_of_rows(dst, dpitch, src, spitch, width, height);
    if (!width || !height)
        return ACL_SUCCESS;
    int code = check_rows(&copy, kind);
    if (code)
        return code;
    table_lock();
    bool has_context = context_need();
    table_unlock();
    return has_context ? copy_run(&copy) : ACL_ERROR_RT_CONTEXT_NULL;
}

aclError aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                            aclrtMemcpyKind kind, aclrtStream stream) {
    ENTER(aclrtMemcpy2dAsync, dst, dpitch, src, spitch, width, height, kind, stream);
    struct copy copy = copy_of_rows(dst, dpitch, src, spitch, width, height);
    if (!width || !height)
        return ACL_SUCCESS;
    int code = check_rows(&copy, kind);
    if (code)
        return code;
    if (width > LARGEST_ASYNC_WIDTH || height > LARGEST_ASYNC_HEIGHT)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID,
                           "%zu rows of %zu bytes are more than the %u rows of %u bytes a stream takes", height, width,
                           LARGEST_ASYNC_HEIGHT, LARGEST_ASYNC_WIDTH);
    return async_copy(&copy, kind, stream, FUNCTION_aclrtMemcpy2dAsync);
}
