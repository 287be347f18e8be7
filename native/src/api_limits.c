/* Exported: how many cores operators may use, on a device, in a stream, and in the stream a thread took as its own. No
 * operator runs, so the limits are kept and read back.
 *
 * A stream without a limit of its own has that of its device, a device without one all cores. The limits of a device
 * end with its tear-down. Thread safety: any thread, any time. */
#include <string.h>

#include "acl/acl.h"
#include "context.h"
#include "device.h"
#include "entry.h"
#include "errors.h"
#include "handles.h"
#include "runtime.h"
#include "stream.h"
#include "table.h"

static _Thread_local void *own_stream; /* handle of the stream whose limits hold for the thread, or null */

static uint32_t cores_of(aclrtDevResLimitType type) {
    return type == ACL_RT_DEV_RES_CUBE_CORE ? runtime_config()->cube_cores : runtime_config()->vector_cores;
}

static int check_type(aclrtDevResLimitType type) {
    if ((uint32_t)type < CORE_KINDS)
        return ACL_SUCCESS;
    error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "type %d is no kind of cores", (int)type);
    return ACL_ERROR_RT_PARAM_INVALID;
}

/* Sets a limit; the table lock is held. Returns a code. */
static int set_limit(uint32_t *limits, aclrtDevResLimitType type, uint32_t value) {
    if (!value || value > cores_of(type))
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "the limit %u is not in 1..%u", value,
                           cores_of(type));
    limits[type] = value;
    return ACL_SUCCESS;
}

static uint32_t limit_of_device(const struct device *device, aclrtDevResLimitType type) {
    return device->core_limits[type] ? device->core_limits[type] : cores_of(type);
}

static uint32_t limit_of_stream(const struct stream *stream, aclrtDevResLimitType type) {
    return stream->core_limits[type] ? stream->core_limits[type] : limit_of_device(stream->device, type);
}

aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t value) {
    ENTER(aclrtSetDeviceResLimit, deviceId, type, value);
    int code = device_check_id(deviceId, ACL_ERROR_RT_INVALID_DEVICEID);
    if (!code)
        code = check_type(type);
    if (code)
        return code;
    table_lock();
    code = set_limit(device_at(deviceId)->core_limits, type, value);
    table_unlock();
    return code;
}

aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t *value) {
    ENTER(aclrtGetDeviceResLimit, deviceId, type, value);
    if (!value)
        return error_null("value");
    int code = device_check_id(deviceId, ACL_ERROR_RT_INVALID_DEVICEID);
    if (!code)
        code = check_type(type);
    if (code)
        return code;
    table_lock();
    *value = limit_of_device(device_at(deviceId), type);
    table_unlock();
    return ACL_SUCCESS;
}

aclError aclrtResetDeviceResLimit(int32_t deviceId) {
    ENTER(aclrtResetDeviceResLimit, deviceId);
    int code = device_check_id(deviceId, ACL_ERROR_RT_INVALID_DEVICEID);
    if (code)
        return code;
    table_lock();
    memset(device_at(deviceId)->core_limits, 0, sizeof(device_at(deviceId)->core_limits));
    table_unlock();
    return ACL_SUCCESS;
}

aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t value) {
    ENTER(aclrtSetStreamResLimit, stream, type, value);
    int code = check_type(type);
    if (code)
        return code;
    table_lock();
    struct stream *found = stream_need(stream, false, &code);
    if (found)
        code = set_limit(found->core_limits, type, value);
    table_unlock();
    return code;
}

aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t *value) {
    ENTER(aclrtGetStreamResLimit, stream, type, value);
    if (!value)
        return error_null("value");
    int code = check_type(type);
    if (code)
        return code;
    table_lock();
    const struct stream *found = stream_need(stream, false, &code);
    if (found)
        *value = limit_of_stream(found, type);
    table_unlock();
    return code;
}

aclError aclrtResetStreamResLimit(aclrtStream stream) {
    ENTER(aclrtResetStreamResLimit, stream);
    int code;
    table_lock();
    struct stream *found = stream_need(stream, false, &code);
    if (found)
        memset(found->core_limits, 0, sizeof(found->core_limits));
    table_unlock();
    return code;
}

aclError aclrtUseStreamResInCurrentThread(aclrtStream stream) {
    ENTER(aclrtUseStreamResInCurrentThread, stream);
    int code;
    table_lock();
    const struct stream *found = stream_need(stream, false, &code);
    if (found)
        own_stream = found->handle;
    table_unlock();
    return code;
}

aclError aclrtUnuseStreamResInCurrentThread(aclrtStream stream) {
    ENTER(aclrtUnuseStreamResInCurrentThread, stream);
    int code;
    table_lock();
    const struct stream *found = stream_need(stream, false, &code);
    if (found && own_stream == found->handle)
        own_stream = NULL;
    table_unlock();
    return code;
}

aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t *value) {
    ENTER(aclrtGetResInCurrentThread, type, value);
    if (!value)
        return error_null("value");
    int code = check_type(type);
    if (code)
        return code;
    table_lock();
    const struct context *context = context_need();
    const struct stream *stream = own_stream ? handle_object(HANDLE_STREAM, own_stream) : NULL;
    if (context)
        *value = stream ? limit_of_stream(stream, type) : limit_of_device(context->device, type);
    table_unlock();
    return context ? ACL_SUCCESS : ACL_ERROR_RT_CONTEXT_NULL;
}
