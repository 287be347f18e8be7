/* Exported: devices and contexts.
 *
 * Thread safety: any thread, any time. The set count of a device belongs to the process, the current context to the
 * thread. The last reset waits for copies that run. */
#include "acl/acl.h"
#include "context.h"
#include "device.h"
#include "entry.h"
#include "errors.h"
#include "runtime.h"
#include "table.h"

static int null_argument(const char *name) {
    return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "%s is null", name);
}

/* The device of that id, or null with the refusal recorded. The table lock is held. */
static struct device *valid_device(int32_t id) {
    struct device *device = device_at(id);
    if (!device)
        error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_INVALID_DEVICEID, "device id %d is not in 0..%u", id,
                    runtime_config()->devices - 1);
    return device;
}

aclError aclrtSetDevice(int32_t deviceId) {
    ENTER(aclrtSetDevice, deviceId);
    table_lock();
    struct device *device = valid_device(deviceId);
    int code = device ? context_set_device(device) : ACL_ERROR_RT_INVALID_DEVICEID;
    table_unlock();
    return code;
}

static aclError reset(int32_t id, bool force) {
    int code = ACL_SUCCESS;
    table_lock();
    struct device *device = valid_device(id);
    if (!device)
        code = ACL_ERROR_RT_INVALID_DEVICEID;
    else if (!device->set_count)
        code = error_raise(ERROR_STATE, ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, "device %d is not set", id);
    else if (force || device->set_count == 1)
        device_close(device, force);
    else
        device->set_count--;
    table_unlock();
    return code;
}

aclError aclrtResetDevice(int32_t deviceId) {
    ENTER(aclrtResetDevice, deviceId);
    return reset(deviceId, false);
}

aclError aclrtResetDeviceForce(int32_t deviceId) {
    ENTER(aclrtResetDeviceForce, deviceId);
    return reset(deviceId, true);
}

aclError aclrtGetDevice(int32_t *deviceId) {
    ENTER(aclrtGetDevice, deviceId);
    if (!deviceId)
        return null_argument("deviceId");
    table_lock();
    const struct context *context = context_need();
    if (context)
        *deviceId = context->device->id;
    table_unlock();
    return context ? ACL_SUCCESS : ACL_ERROR_RT_CONTEXT_NULL;
}

aclError aclrtGetDeviceCount(uint32_t *count) {
    ENTER(aclrtGetDeviceCount, count);
    if (!count)
        return null_argument("count");
    table_lock();
    *count = runtime_config()->devices;
    table_unlock();
    return ACL_SUCCESS;
}

aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId) {
    ENTER(aclrtCreateContext, context, deviceId);
    if (!context)
        return null_argument("context");
    table_lock();
    struct device *device = valid_device(deviceId);
    int code = device ? context_create(device, context) : ACL_ERROR_RT_INVALID_DEVICEID;
    table_unlock();
    return code;
}

aclError aclrtDestroyContext(aclrtContext context) {
    ENTER(aclrtDestroyContext, context);
    if (!context)
        return null_argument("context");
    table_lock();
    int code = context_destroy(context);
    table_unlock();
    return code;
}

aclError aclrtSetCurrentContext(aclrtContext context) {
    ENTER(aclrtSetCurrentContext, context);
    if (!context)
        return null_argument("context");
    table_lock();
    bool alive = context_make_current(context);
    table_unlock();
    if (alive)
        return ACL_SUCCESS;
    return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "context %p is not alive", context);
}

aclError aclrtGetCurrentContext(aclrtContext *context) {
    ENTER(aclrtGetCurrentContext, context);
    if (!context)
        return null_argument("context");
    table_lock();
    bool found = context_need();
    if (found)
        *context = context_current_handle();
    table_unlock();
    return found ? ACL_SUCCESS : ACL_ERROR_RT_CONTEXT_NULL;
}
