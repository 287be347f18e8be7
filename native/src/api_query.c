/* Exported: what a device is and how it is. None of these calls needs a context or opens a device.
 *
 * Answers are those the simulated device can give: its memory, its state, its number, and figures that are options. A
 * figure of the chip that has no counterpart here, such as a warp size, is refused with 207000 rather than invented.
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

static bool is_attribute(uint32_t attr) {
    return attr == ACL_DEV_ATTR_AICPU_CORE_NUM || attr == ACL_DEV_ATTR_AICORE_CORE_NUM ||
           attr == ACL_DEV_ATTR_CUBE_CORE_NUM ||
           (attr >= ACL_DEV_ATTR_VECTOR_CORE_NUM && attr <= ACL_DEV_ATTR_MAX_BLOCK_DIM_Z) ||
           attr == ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE || attr == ACL_DEV_ATTR_L2_CACHE_SIZE ||
           (attr >= ACL_DEV_ATTR_SMP_ID && attr <= ACL_DEV_ATTR_DEVICE_FORM_FACTOR) ||
           attr == ACL_DEV_ATTR_IS_VIRTUAL || attr == ACL_DEV_ATTR_NPU_ARCH;
}

/* The figure behind an attribute, or -1. The table lock is held. */
static int64_t figure(uint32_t attr) {
    const struct config *config = runtime_config();
    struct pool_sizes sizes = config_pools(config);
    uint64_t bytes = 0;
    for (enum page_class cls = 0; cls < PAGE_CLASSES; cls++)
        bytes += sizes.pages[cls] * page_class_bytes(cls);
    switch (attr) {
    case ACL_DEV_ATTR_AICORE_CORE_NUM:
    case ACL_DEV_ATTR_CUBE_CORE_NUM:
        return config->cube_cores;
    case ACL_DEV_ATTR_VECTOR_CORE_NUM:
        return config->vector_cores;
    case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE:
        return (int64_t)bytes;
    case ACL_DEV_ATTR_L2_CACHE_SIZE:
        return (int64_t)config->l2_cache;
    default:
        return -1;
    }
}

aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t *value) {
    ENTER(aclrtGetDeviceInfo, deviceId, attr, value);
    if (!value)
        return error_null("value");
    int code = device_check_id(deviceId, ACL_ERROR_RT_PARAM_INVALID);
    if (code)
        return code;
    if (!is_attribute(attr))
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "attr %d is no attribute of a device",
                           (int)attr);
    table_lock();
    int64_t known = figure(attr);
    table_unlock();
    if (known < 0)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                           "the host runtime has no figure for attribute %d of the chip", (int)attr);
    *value = known;
    return ACL_SUCCESS;
}

aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t *flags, int32_t *active) {
    ENTER(aclrtGetPrimaryCtxState, deviceId, flags, active);
    if (!active)
        return error_null("active");
    int code = device_check_id(deviceId, ACL_ERROR_RT_INVALID_DEVICEID);
    if (code)
        return code;
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
        return error_null("deviceStatus");
    int code = device_check_id(deviceId, ACL_ERROR_RT_INVALID_DEVICEID);
    if (code)
        return code;
    *deviceStatus = ACL_RT_DEVICE_STATUS_NORMAL;
    return ACL_SUCCESS;
}

/* The simulated device has neither of the two features that can be asked for. */
aclError aclrtGetDeviceCapability(int32_t deviceId, aclrtDevFeatureType devFeatureType, int32_t *value) {
    ENTER(aclrtGetDeviceCapability, deviceId, devFeatureType, value);
    if (!value)
        return error_null("value");
    int code = device_check_id(deviceId, ACL_ERROR_RT_INVALID_DEVICEID);
    if (code)
        return code;
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
        return error_null("uuid");
    int code = device_check_id(deviceId, ACL_ERROR_RT_INVALID_DEVICEID);
    if (code)
        return code;
    snprintf(text, sizeof(text), "hostacl dev %d", deviceId);
    memcpy(uuid->bytes, text, sizeof(uuid->bytes));
    return ACL_SUCCESS;
}

/* Number of a device seen by the user, by the runtime and by the machine: all the same here. */
static int same_id(int32_t id, int32_t *out, const char *name) {
    if (!out)
        return error_null(name);
    int code = device_check_id(id, ACL_ERROR_RT_INVALID_DEVICEID);
    if (!code)
        *out = id;
    return code;
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
