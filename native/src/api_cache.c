/* Exported: operations on the caches of a device. Host and device see the same bytes at once here, so an operation
 * checks its arguments and that the memory is there, and changes no byte. A barrier is passed at once: what it waits
 * for takes no time.
 *
 * A description of an operation lies in device memory, in a form of the runtime's own. Thread safety: any thread, any
 * time. */
#include "acl/acl.h"
#include "device_record.h"
#include "entry.h"
#include "errors.h"
#include "range_task.h"
#include "table.h"

static int check_type(aclrtCmoType type) {
    if ((uint32_t)type <= ACL_RT_CMO_TYPE_FLUSH)
        return ACL_SUCCESS;
    return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "cmoType %d is not in 0..3", (int)type);
}

/* The checks that all operations on a range share. */
static int check_range(const void *addr, size_t size, const char *name) {
    if (!addr)
        return error_null(name);
    return size ? ACL_SUCCESS : error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "size is 0");
}

static int give(const void *src, size_t size, aclrtCmoType type, aclrtStream stream, enum function_id function) {
    int code = check_range(src, size, "src");
    if (!code)
        code = check_type(type);
    return code ? code : range_task_give(stream, (uint64_t)(uintptr_t)src, size, function);
}

aclError aclrtCmoAsync(void *src, size_t size, aclrtCmoType cmoType, aclrtStream stream) {
    ENTER(aclrtCmoAsync, src, size, cmoType, stream);
    return give(src, size, cmoType, stream, FUNCTION_aclrtCmoAsync);
}

aclError aclrtCmoAsyncWithBarrier(void *src, size_t size, aclrtCmoType cmoType, uint32_t barrierId,
                                  aclrtStream stream) {
    ENTER(aclrtCmoAsyncWithBarrier, src, size, cmoType, barrierId, stream);
    return give(src, size, cmoType, stream, FUNCTION_aclrtCmoAsyncWithBarrier);
}

aclError aclrtCmoWaitBarrier(aclrtBarrierTaskInfo *taskInfo, aclrtStream stream, uint32_t flag) {
    ENTER(aclrtCmoWaitBarrier, IN(taskInfo), stream, flag);
    if (!taskInfo)
        return error_null("taskInfo");
    if (flag)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "flag is %u and must be 0", flag);
    if (!taskInfo->barrierNum || taskInfo->barrierNum > ACL_RT_CMO_MAX_BARRIER_NUM)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "barrierNum is %zu and must be 1 to %u",
                           taskInfo->barrierNum, ACL_RT_CMO_MAX_BARRIER_NUM);
    for (size_t i = 0; i < taskInfo->barrierNum; i++) {
        int code = check_type(taskInfo->cmoInfo[i].cmoType);
        if (code)
            return code;
    }
    return range_task_give(stream, 0, 0, FUNCTION_aclrtCmoWaitBarrier);
}

aclError aclrtCmoGetDescSize(size_t *size) {
    ENTER(aclrtCmoGetDescSize, size);
    if (!size)
        return error_null("size");
    *size = DEVICE_RECORD_BYTES;
    return ACL_SUCCESS;
}

aclError aclrtCmoSetDesc(void *cmoDesc, void *src, size_t size) {
    ENTER(aclrtCmoSetDesc, cmoDesc, src, size);
    struct device_record record = {.kind = RECORD_CACHE, .source = (uint64_t)(uintptr_t)src, .bytes = size};
    if (!cmoDesc)
        return error_null("cmoDesc");
    int code = check_range(src, size, "src");
    return code ? code : device_record_write((uint64_t)(uintptr_t)cmoDesc, &record);
}

aclError aclrtCmoAsyncWithDesc(void *cmoDesc, aclrtCmoType cmoType, aclrtStream stream, const void *reserve) {
    ENTER(aclrtCmoAsyncWithDesc, cmoDesc, cmoType, stream, reserve);
    if (!cmoDesc)
        return error_null("cmoDesc");
    if (reserve)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "reserve is not null");
    int code = check_type(cmoType);
    return code
               ? code
               : device_record_give(stream, (uint64_t)(uintptr_t)cmoDesc, RECORD_CACHE, FUNCTION_aclrtCmoAsyncWithDesc);
}

static int look(void *devPtr, size_t size) {
    int code = check_range(devPtr, size, "devPtr");
    if (code)
        return code;
    table_lock();
    code = range_check((uint64_t)(uintptr_t)devPtr, size);
    table_unlock();
    return code;
}

aclError aclrtMemFlush(void *devPtr, size_t size) {
    ENTER(aclrtMemFlush, devPtr, size);
    return look(devPtr, size);
}

aclError aclrtMemInvalidate(void *devPtr, size_t size) {
    ENTER(aclrtMemInvalidate, devPtr, size);
    return look(devPtr, size);
}
