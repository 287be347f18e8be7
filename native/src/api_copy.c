/* Exported: copies and sets that are done when the call returns. The direction follows the addresses, the kind is only
 * checked for being one. Thread safety: any thread, any time; copies run side by side. */
#include "acl/acl.h"
#include "context.h"
#include "copy.h"
#include "entry.h"
#include "errors.h"
#include "table.h"

/* Whether the thread has a context; if not, the refusal is recorded. */
static bool has_context(void) {
    table_lock();
    bool found = context_need();
    table_unlock();
    return found;
}

aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind) {
    ENTER(aclrtMemcpy, dst, destMax, src, count, kind);
    if (!count)
        return ACL_SUCCESS;
    if (!dst || !src)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "%s is null", dst ? "src" : "dst");
    if ((uint32_t)kind > ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "kind %d is not in 0..5", (int)kind);
    if (count > destMax)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "count %zu is above destMax %zu", count,
                           destMax);
    if (dst == src)
        return ACL_SUCCESS;
    if (!has_context())
        return ACL_ERROR_RT_CONTEXT_NULL;
    return copy_bytes((uint64_t)(uintptr_t)dst, (uint64_t)(uintptr_t)src, count);
}

aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count) {
    ENTER(aclrtMemset, devPtr, maxCount, value, count);
    if (!count)
        return ACL_SUCCESS;
    if (!devPtr)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "devPtr is null");
    if (!has_context())
        return ACL_ERROR_RT_CONTEXT_NULL;
    if (count > maxCount)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_PARAM_INVALID, "count %zu is above maxCount %zu", count,
                           maxCount);
    struct fill fill = fill_of_bytes((uint64_t)(uintptr_t)devPtr, (uint8_t)value, count);
    return fill_run(&fill);
}
