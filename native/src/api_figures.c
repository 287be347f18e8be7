/* Exported: figures of a device. How many cores it has and how large its cache is are options; nothing runs on the
 * cores, so they are never in use. None of these calls needs a context. Thread safety: any thread, any time. */
#include <string.h>

#include "acl/acl.h"
#include "device.h"
#include "entry.h"
#include "errors.h"
#include "runtime.h"
#include "table.h"

aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, int64_t *value) {
    ENTER(aclGetDeviceCapability, deviceId, deviceInfo, value);
    if (!value)
        return error_null("value");
    int code = device_check_id(deviceId, ACL_ERROR_RT_INVALID_DEVICEID);
    if (code)
        return code;
    table_lock();
    const struct config *config = runtime_config();
    const int64_t figures[] = {[ACL_DEVICE_INFO_AI_CORE_NUM] = config->cube_cores,
                               [ACL_DEVICE_INFO_VECTOR_CORE_NUM] = config->vector_cores,
                               [ACL_DEVICE_INFO_L2_SIZE] = (int64_t)config->l2_cache};
    table_unlock();
    if ((uint32_t)deviceInfo >= sizeof(figures) / sizeof(figures[0]))
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "deviceInfo %d is no capability", (int)deviceInfo);
    *value = figures[deviceInfo];
    return ACL_SUCCESS;
}

/* Bytes of pages that are taken, and of all pages, of an open device. */
static uint64_t used_bytes(const struct device *device, uint64_t *all) {
    uint64_t used = 0;
    *all = 0;
    for (enum page_class cls = 0; device->open && cls < PAGE_CLASSES; cls++) {
        const struct page_pool *pool = &device->phys.pools[cls];
        used += (pool->total - pool->free) * page_class_bytes(cls);
        *all += pool->total * page_class_bytes(cls);
    }
    return used;
}

aclError aclrtGetDeviceUtilizationRate(int32_t deviceId, aclrtUtilizationInfo *utilizationInfo) {
    ENTER(aclrtGetDeviceUtilizationRate, deviceId, utilizationInfo);
    if (!utilizationInfo)
        return error_null("utilizationInfo");
    int code = device_check_id(deviceId, ACL_ERROR_RT_INVALID_DEVICEID);
    if (code)
        return code;
    uint64_t all;
    table_lock();
    uint64_t used = used_bytes(device_at(deviceId), &all);
    table_unlock();
    utilizationInfo->cubeUtilization = 0;
    utilizationInfo->vectorUtilization = 0;
    utilizationInfo->aicpuUtilization = 0;
    utilizationInfo->memoryUtilization = all ? (int32_t)(used * 100 / all) : 0;
    return ACL_SUCCESS;
}

/* This process is the only component that is known. */
aclError aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo *memUsageInfo, size_t inputNum, size_t *outputNum) {
    ENTER(aclrtGetMemUsageInfo, deviceId, memUsageInfo, inputNum, outputNum);
    if (!memUsageInfo || !outputNum)
        return error_null(memUsageInfo ? "outputNum" : "memUsageInfo");
    if (!inputNum)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "inputNum is 0");
    int code = device_check_id(deviceId, ACL_ERROR_RT_INVALID_DEVICEID);
    if (code)
        return code;
    uint64_t all;
    table_lock();
    const struct device *device = device_at(deviceId);
    bool supported = !runtime_config()->product->driver_v3;
    uint64_t used = used_bytes(device, &all), peak = device->open ? device->phys.peak_bytes : 0;
    table_unlock();
    if (!supported)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "the product does not tell");
    *memUsageInfo = (aclrtMemUsageInfo){.name = "process", .curMemSize = used, .memPeakSize = peak};
    *outputNum = 1;
    return ACL_SUCCESS;
}

/* Whatever reads or writes through the device address of registered memory reaches it. */
aclError aclrtHostMemMapCapabilities(uint32_t deviceId, aclrtHacType hacType, aclrtHostMemMapCapability *capabilities) {
    ENTER(aclrtHostMemMapCapabilities, deviceId, hacType, capabilities);
    if (!capabilities)
        return error_null("capabilities");
    int code = device_check_id(deviceId, ACL_ERROR_RT_INVALID_DEVICEID);
    if (code)
        return code;
    if ((uint32_t)hacType > ACL_RT_HAC_TYPE_CCU)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "hacType %d is no engine", (int)hacType);
    *capabilities = ACL_RT_HOST_MEM_MAP_SUPPORTED;
    return ACL_SUCCESS;
}
