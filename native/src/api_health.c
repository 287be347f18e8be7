/* Exported: faults of a device and their repair. The simulated device has no faults, so there is never one to report or
 * to repair. None of these calls needs a context. Thread safety: any thread, any time. */
#include <string.h>

#include "acl/acl.h"
#include "device.h"
#include "entry.h"
#include "errors.h"

aclError aclrtGetErrorVerbose(int32_t deviceId, aclrtErrorInfo *errorInfo) {
    ENTER(aclrtGetErrorVerbose, deviceId, errorInfo);
    if (!errorInfo)
        return error_null("errorInfo");
    int code = device_check_id(deviceId, ACL_ERROR_RT_INVALID_DEVICEID);
    if (code)
        return code;
    memset(errorInfo, 0, sizeof(*errorInfo));
    errorInfo->errorType = ACL_RT_NO_ERROR;
    return ACL_SUCCESS;
}

aclError aclrtRepairError(int32_t deviceId, const aclrtErrorInfo *errorInfo) {
    ENTER(aclrtRepairError, deviceId, errorInfo);
    if (!errorInfo)
        return error_null("errorInfo");
    int code = device_check_id(deviceId, ACL_ERROR_RT_INVALID_DEVICEID);
    if (code || errorInfo->errorType == ACL_RT_NO_ERROR)
        return code;
    return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "device %d has no error of type %d to repair",
                       deviceId, (int)errorInfo->errorType);
}

aclError aclrtGetMemUceInfo(int32_t deviceId, aclrtMemUceInfo *memUceInfoArray, size_t arraySize, size_t *retSize) {
    ENTER(aclrtGetMemUceInfo, deviceId, IN(memUceInfoArray), arraySize, retSize);
    if (!memUceInfoArray || !retSize)
        return error_null(memUceInfoArray ? "retSize" : "memUceInfoArray");
    if (!arraySize)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "arraySize is 0");
    int code = device_check_id(deviceId, ACL_ERROR_RT_INVALID_DEVICEID);
    if (!code)
        *retSize = 0;
    return code;
}

aclError aclrtMemUceRepair(int32_t deviceId, aclrtMemUceInfo *memUceInfoArray, size_t arraySize) {
    ENTER(aclrtMemUceRepair, deviceId, IN(memUceInfoArray), arraySize);
    if (!memUceInfoArray)
        return error_null("memUceInfoArray");
    if (!arraySize || arraySize > MAX_MEM_UCE_INFO_ARRAY_SIZE)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "arraySize is %zu and must be 1 to %d", arraySize,
                           MAX_MEM_UCE_INFO_ARRAY_SIZE);
    int code = device_check_id(deviceId, ACL_ERROR_RT_INVALID_DEVICEID);
    return code ? code
                : error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID,
                              "%p is no address of device %d with an error to repair", memUceInfoArray[0].addr,
                              deviceId);
}
