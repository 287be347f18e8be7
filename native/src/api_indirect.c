/* Exported: copies whose addresses are found when they run: as words of memory plus an offset, or in a description that
 * lies in device memory in a form of the runtime's own. Both go between places of device memory. Thread safety: any
 * thread, any time. */
#include "acl/acl.h"
#include "device_record.h"
#include "entry.h"
#include "errors.h"

/* The kinds of copies that stay on devices. */
static int check_kind(aclrtMemcpyKind kind) {
    if (kind == ACL_MEMCPY_DEVICE_TO_DEVICE || kind == ACL_MEMCPY_INNER_DEVICE_TO_DEVICE)
        return ACL_SUCCESS;
    if ((uint32_t)kind > ACL_MEMCPY_INTER_DEVICE_TO_DEVICE)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "kind %d is not in 0..7", (int)kind);
    return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                       "kind %d is not a copy from device to device (3 or 6)", (int)kind);
}

aclError aclrtMemcpyAsyncWithOffset(void **dst, size_t destMax, size_t dstDataOffset, const void **src, size_t count,
                                    size_t srcDataOffset, aclrtMemcpyKind kind, aclrtStream stream) {
    ENTER(aclrtMemcpyAsyncWithOffset, IN(dst), destMax, dstDataOffset, src, count, srcDataOffset, kind, stream);
    if (!count)
        return ACL_SUCCESS;
    if (!dst || !src)
        return error_null(dst ? "src" : "dst");
    if (count > destMax)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "count %zu is above destMax %zu", count,
                           destMax);
    int code = check_kind(kind);
    if (code)
        return code;
    struct indirect_side to = {.word = dst, .offset = dstDataOffset}, from = {.word = src, .offset = srcDataOffset};
    return indirect_copy_give(stream, &to, &from, count, FUNCTION_aclrtMemcpyAsyncWithOffset);
}

aclError aclrtGetMemcpyDescSize(aclrtMemcpyKind kind, size_t *descSize) {
    ENTER(aclrtGetMemcpyDescSize, kind, descSize);
    if (!descSize)
        return error_null("descSize");
    int code = check_kind(kind);
    if (!code)
        *descSize = DEVICE_RECORD_BYTES;
    return code;
}

aclError aclrtSetMemcpyDesc(void *desc, aclrtMemcpyKind kind, void *srcAddr, void *dstAddr, size_t count,
                            void *config) {
    ENTER(aclrtSetMemcpyDesc, desc, kind, srcAddr, dstAddr, count, config);
    struct device_record record = {.kind = RECORD_COPY,
                                   .destination = (uint64_t)(uintptr_t)dstAddr,
                                   .source = (uint64_t)(uintptr_t)srcAddr,
                                   .bytes = count};
    if (!desc || !srcAddr || !dstAddr)
        return error_null(!desc ? "desc" : srcAddr ? "dstAddr" : "srcAddr");
    if (config)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "config is not null");
    int code = check_kind(kind);
    return code ? code : device_record_write((uint64_t)(uintptr_t)desc, &record);
}

aclError aclrtMemcpyAsyncWithDesc(void *desc, aclrtMemcpyKind kind, aclrtStream stream) {
    ENTER(aclrtMemcpyAsyncWithDesc, desc, kind, stream);
    if (!desc)
        return error_null("desc");
    int code = check_kind(kind);
    return code ? code
                : device_record_give(stream, (uint64_t)(uintptr_t)desc, RECORD_COPY, FUNCTION_aclrtMemcpyAsyncWithDesc);
}
