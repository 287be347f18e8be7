/* Exported: what a device does with numbers that are too large, and how long operators may take. Nothing computes, so
 * nothing overflows: switches and modes are kept and read back, the status is always 0. Thread safety: any thread, any
 * time. */
#include "acl/acl.h"
#include "async_copy.h"
#include "context.h"
#include "device.h"
#include "entry.h"
#include "errors.h"
#include "range_task.h"
#include "runtime.h"
#include "stream.h"
#include "table.h"

#define STATUS_BYTES 64

aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
    ENTER(aclrtSetDeviceSatMode, mode);
    if ((uint32_t)mode >= ACL_RT_OVERFLOW_MODE_UNDEF)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "mode %d is neither saturation nor infinity",
                           (int)mode);
    table_lock();
    struct context *context = context_need();
    if (context)
        context->device->sat_mode = (uint32_t)mode + 1;
    table_unlock();
    return context ? ACL_SUCCESS : ACL_ERROR_RT_CONTEXT_NULL;
}

/* Products with infinities use them unless told otherwise. */
static aclrtFloatOverflowMode mode_of(const struct device *device) {
    if (device->sat_mode)
        return (aclrtFloatOverflowMode)(device->sat_mode - 1);
    return runtime_config()->product->bf16 ? ACL_RT_OVERFLOW_MODE_INFNAN : ACL_RT_OVERFLOW_MODE_SATURATION;
}

aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode *mode) {
    ENTER(aclrtGetDeviceSatMode, mode);
    if (!mode)
        return error_null("mode");
    table_lock();
    const struct context *context = context_need();
    if (context)
        *mode = mode_of(context->device);
    table_unlock();
    return context ? ACL_SUCCESS : ACL_ERROR_RT_CONTEXT_NULL;
}

aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag) {
    ENTER(aclrtSetStreamOverflowSwitch, stream, flag);
    int code;
    if (flag > 1)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "flag %u is neither 0 nor 1", flag);
    table_lock();
    struct stream *found = stream_need(stream, true, &code);
    if (found)
        found->overflow_switch = flag;
    table_unlock();
    return code;
}

aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t *flag) {
    ENTER(aclrtGetStreamOverflowSwitch, stream, flag);
    int code;
    if (!flag)
        return error_null("flag");
    table_lock();
    const struct stream *found = stream_need(stream, true, &code);
    if (found)
        *flag = found->overflow_switch;
    table_unlock();
    return code;
}

aclError aclrtGetOverflowStatus(void *outputAddr, size_t outputSize, aclrtStream stream) {
    ENTER(aclrtGetOverflowStatus, outputAddr, outputSize, stream);
    if (!outputAddr)
        return error_null("outputAddr");
    if (!outputSize)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "outputSize is 0");
    struct fill fill =
        fill_of_bytes((uint64_t)(uintptr_t)outputAddr, 0, outputSize < STATUS_BYTES ? outputSize : STATUS_BYTES);
    return async_fill(&fill, true, stream, FUNCTION_aclrtGetOverflowStatus);
}

aclError aclrtResetOverflowStatus(aclrtStream stream) {
    ENTER(aclrtResetOverflowStatus, stream);
    return range_task_give(stream, 0, 0, FUNCTION_aclrtResetOverflowStatus);
}

aclError aclrtSetOpExecuteTimeOut(uint32_t timeout) {
    ENTER(aclrtSetOpExecuteTimeOut, timeout);
    return ACL_SUCCESS;
}

/* Any time is kept as exactly as it is given. */
aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t *actualTimeout) {
    ENTER(aclrtSetOpExecuteTimeOutV2, timeout, actualTimeout);
    if (!actualTimeout)
        return error_null("actualTimeout");
    *actualTimeout = timeout;
    return ACL_SUCCESS;
}
