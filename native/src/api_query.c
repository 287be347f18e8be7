/* Exported: what a device is and how it is. None of these calls needs a context or opens a device.
 *
 * Answers are those the simulated device can give: its memory, its state, its number. A figure of the chip that has no
 * counterpart here, such as a number of cores, is refused with 207000 rather than invented.
 *
 * Thread safety: any thread, any time. */
#include <stdio.h>
#include <string.h>

#include "acl/acl.h"
#include "config.h"
#include "device.h"
#include "entry.h"
#include "errors.h"
#include "runtime.h"
#include "table.h"

static int null_argument(const char *name) {
    return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "%s is null", name);
}

/* Whether there is a device of that id; if not, the refusal with that code is recorded. */
static bool check_device(int64_t id, int code) {
    table_lock();
    uint32_t count = runtime_config()->devices;
    table_unlock();
    if (id >= 0 && id < count)
        return true;
    error_raise(ERROR_ARGUMENT, code, "device id %lld is not in 0..%u", (long long)id, count - 1);
    return false;
}

static bool is_attribute(uint32_t attr) {
    return attr == ACL_DEV_ATTR_AICPU_CORE_NUM || attr == ACL_DEV_ATTR_AICORE_CORE_NUM ||
           attr == ACL_DEV_ATTR_CUBE_CORE_NUM ||
           (attr >= ACL_DEV_ATTR_VECTOR_CORE_NUM && attr <= ACL_DEV_ATTR_MAX_BLOCK_DIM_Z) ||
           attr == ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE || attr == ACL_DEV_ATTR_L2_CACHE_SIZE ||
           (attr >= ACL_DEV_ATTR_SMP_ID && attr <= ACL_DEV_ATTR_DEVICE_FORM_FACTOR) ||
           attr == ACL_DEV_ATTR_IS_VIRTUAL || attr == ACL_DEV_ATTR_NPU_ARCH;
}

/* Bytes of all pools of a device. */
static uint64_t memory_bytes(void) {
    uint64_t bytes = 0;
    table_lock();
    struct pool_sizes sizes = config_pools(runtime_config());
    table_unlock();
    for (enum page_class cls = 0; cls < PAGE_CLASSES; cls++)
        bytes += sizes.pages[cls] * page_class_bytes(cls);
    return bytes;
}

aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t *value) {
    ENTER(aclrtGetDeviceInfo, deviceId, attr, value);
    if (!value)
        return null_argument("value");
    if (!check_device(deviceId, ACL_ERROR_RT_PARAM_INVALID))
        return ACL_ERROR_RT_PARAM_INVALID;
    if (!is_attribute(attr))
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "attr %d is no attribute of a device",
                           (int)attr);
    if (attr != ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                           "the host runtime has no figure for attribute %d of the chip", (int)attr);
    *value = (int64_t)memory_bytes();
    return ACL_SUCCESS;
}

aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t *flags, int32_t *active) {
    ENTER(aclrtGetPrimaryCtxState, deviceId, flags, active);
    if (!active)
        return null_argument("active");
    if (!check_device(deviceId, ACL_ERROR_RT_INVALID_DEVICEID))
        return ACL_ERROR_RT_INVALID_DEVICEID;
    table_lock();
    const struct device *device = device_at(deviceId);
    *active = device && device->set_count > 0;
    table_unlock();
    if (flags)
        *flags = 0;
    return ACL_SUCCESS;
}

aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus *deviceStatus) {
    ENTER(aclrtQueryDeviceStatus, deviceId, deviceStatus);
    if (!deviceStatus)
        return null_argument("deviceStatus");
    if (!check_device(deviceId, ACL_ERROR_RT_INVALID_DEVICEID))
        return ACL_ERROR_RT_INVALID_DEVICEID;
    *deviceStatus = ACL_RT_DEVICE_STATUS_NORMAL;
    return ACL_SUCCESS;
}

/* The simulated device has neither of the two features that can be asked for. */
aclError aclrtGetDeviceCapability(int32_t deviceId, aclrtDevFeatureType devFeatureType, int32_t *value) {
    ENTER(aclrtGetDeviceCapability, deviceId, devFeatureType, value);
    if (!value)
        return null_argument("value");
    if (!check_device(deviceId, ACL_ERROR_RT_INVALID_DEVICEID))
        return ACL_ERROR_RT_INVALID_DEVICEID;
    if (devFeatureType != ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV &&
        devFeatureType != ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "devFeatureType %d is no feature",
                           (int)devFeatureType);
    *value = ACL_DEV_FEATURE_NOT_SUPPORT;
    return ACL_SUCCESS;
}

/* The same 16 bytes for a device number in every process: "hostacl dev 3" and zeros. */
aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid *uuid) {
    char text[32] = "";
    ENTER(aclrtDeviceGetUuid, deviceId, uuid);
    if (!uuid)
        return null_argument("uuid");
    if (!check_device(deviceId, ACL_ERROR_RT_INVALID_DEVICEID))
        return ACL_ERROR_RT_INVALID_DEVICEID;
    snprintf(text, sizeof(text), "hostacl dev %d", deviceId);
    memcpy(uuid->bytes, text, sizeof(uuid->bytes));
    return ACL_SUCCESS;
}

/* Number of a device seen by the user, by the runtime and by the machine: all the same here. */
static int same_id(int32_t id, int32_t *out, const char *name) {
    if (!out)
        return null_argument(name);
    if (!check_device(id, ACL_ERROR_RT_INVALID_DEVICEID))
        return ACL_ERROR_RT_INVALID_DEVICEID;
    *out = id;
    return ACL_SUCCESS;
}

aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevid, int32_t *const logicDevId) {
    ENTER(aclrtGetLogicDevIdByUserDevId, userDevid, logicDevId);
    return same_id(userDevid, logicDevId, "logicDevId");
}

aclError aclrtGetUserDevIdByLogicDevId(const int32_t logicDevId, int32_t *const userDevid) {
    ENTER(aclrtGetUserDevIdByLogicDevId, logicDevId, userDevid);
    return same_id(logicDevId, userDevid, "userDevid");
}

aclError aclrtGetPhyDevIdByLogicDevId(const int32_t logicDevId, int32_t *const phyDevId) {
    ENTER(aclrtGetPhyDevIdByLogicDevId, logicDevId, phyDevId);
    return same_id(logicDevId, phyDevId, "phyDevId");
}
