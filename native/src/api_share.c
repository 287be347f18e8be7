/* Exported: physical memory handles shared with other processes, in the first form (a number) and the second one (a
 * number or the struct for handles across machines, which here reaches other processes of this machine).
 *
 * A handle is offered once. Importing needs the exporter's leave, process by process, unless the export said otherwise.
 * Thread safety: any thread, any time. */
#include <string.h>

#include "acl/acl.h"
#include "context.h"
#include "device.h"
#include "entry.h"
#include "errors.h"
#include "host_memory.h"
#include "physical.h"
#include "runtime.h"
#include "share.h"
#include "table.h"

static int export_handle(const void *handle, uint64_t flags, uint64_t *token) {
    struct physical *physical = physical_at(handle);
    if (!physical)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_INVALID_HANDLE, "handle %p is not alive", handle);
    if (physical->share || physical->import)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR, "handle %p %s", handle,
                           physical->share ? "was exported before" : "was imported; only its exporter can share it");
    struct share_offer offer = {.phys = physical->phys,
                                .pages = &physical->pages,
                                .bytes = physical->pages.bytes,
                                .attr = physical->attr,
                                .location = physical->location,
                                .check_pids = flags == ACL_RT_VMM_EXPORT_FLAG_DEFAULT};
    physical->share = share_open(&offer);
    if (!physical->share)
        return error_raise(ERROR_MEMORY, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "the host refuses a file for the export");
    phys_touch_all(physical->phys, &physical->pages);
    *token = share_token(physical->share);
    return ACL_SUCCESS;
}

static int locked_export(const void *handle, uint64_t flags, uint64_t *token) {
    if (flags > ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "flags is %llu and must be 0 or 1",
                           (unsigned long long)flags);
    table_lock();
    int code = export_handle(handle, flags, token);
    table_unlock();
    return code;
}

aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle, aclrtMemHandleType handleType, uint64_t flags,
                                         uint64_t *shareableHandle) {
    ENTER(aclrtMemExportToShareableHandle, handle, handleType, flags, shareableHandle);
    if (!handle || !shareableHandle)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "%s is null", handle ? "shareableHandle" : "handle");
    if (handleType != ACL_MEM_HANDLE_TYPE_NONE)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "handleType %d is not NONE (0)", (int)handleType);
    return locked_export(handle, flags, shareableHandle);
}

/* The owner in this process of imported memory, opened; null with the refusal recorded. */
static struct device *open_owner(const struct import *import, int32_t id) {
    bool on_device = import->location.type == ACL_MEM_LOCATION_TYPE_DEVICE;
    struct device *device = on_device ? device_at(id) : host_memory();
    if (!on_device || device_open(device))
        return device;
    error_raise(ERROR_MEMORY, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "the host has no memory or address space for it");
    return NULL;
}

/* Imports for a device; id -1 stands for the current one. */
static int import_handle(uint64_t token, int32_t id, aclrtDrvMemHandle *handle) {
    struct import *import;
    const struct context *context = id < 0 ? context_need() : NULL;
    if (id < 0 && !context)
        return ACL_ERROR_RT_CONTEXT_NULL;
    if (id < 0)
        id = context->device->id;
    if (!device_at(id))
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_INVALID_DEVICEID, "device id %d is not in 0..%u", id,
                           runtime_config()->devices - 1);
    int code = import_open(token, &import);
    if (code)
        return code;
    aclrtMemLocation location = import->location;
    struct device *device = open_owner(import, id);
    if (location.type == ACL_MEM_LOCATION_TYPE_DEVICE)
        location.id = (uint32_t)id;
    struct physical *physical = device ? physical_adopt(device, &location, import) : NULL;
    if (physical) {
        *handle = physical->handle;
        return ACL_SUCCESS;
    }
    import_close(import);
    if (!device)
        return ACL_ERROR_RT_RESOURCE_ALLOC_FAIL;
    if (device != host_memory())
        device_close_if_idle(device);
    return error_raise(ERROR_MEMORY, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "the host is out of memory");
}

aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle, int32_t deviceId, aclrtDrvMemHandle *handle) {
    ENTER(aclrtMemImportFromShareableHandle, shareableHandle, deviceId, handle);
    if (!handle)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "handle is null");
    if (deviceId < 0)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_INVALID_DEVICEID, "device id %d is negative", deviceId);
    table_lock();
    int code = import_handle(shareableHandle, deviceId, handle);
    table_unlock();
    return code;
}

static int allow(uint64_t token, const int32_t *pids, size_t count) {
    if (!pids || !count)
        return error_raise(pids ? ERROR_VALUE : ERROR_NULL, ACL_ERROR_INVALID_PARAM, "pid is %s, pidNum is %zu",
                           pids ? "given" : "null", count);
    table_lock();
    struct share *share = share_find(token);
    bool good = share && share_allow(share, pids, count);
    table_unlock();
    if (good)
        return ACL_SUCCESS;
    if (share)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_OVER_LIMIT, "%zu more processes cannot be listed", count);
    return error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR, "0x%llx is no export of this process",
                       (unsigned long long)token);
}

aclError aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t *pid, size_t pidNum) {
    ENTER(aclrtMemSetPidToShareableHandle, shareableHandle, IN(pid), pidNum);
    return allow(shareableHandle, pid, pidNum);
}

/* Whether the product has that kind of handle; a code. */
static int check_type(aclrtMemSharedHandleType type) {
    if (type != ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT && type != ACL_MEM_SHARE_HANDLE_TYPE_FABRIC)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "shareType %d is neither 1 nor 2", (int)type);
    table_lock();
    bool fabric = runtime_config()->product->fabric;
    table_unlock();
    if (type == ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT || fabric)
        return ACL_SUCCESS;
    return error_raise(ERROR_DRIVER, ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "this product has no fabric handles");
}

/* The number at the front of either kind of handle. */
static uint64_t read_token(const void *shareable) {
    uint64_t token;
    memcpy(&token, shareable, sizeof(token));
    return token;
}

aclError aclrtMemExportToShareableHandleV2(aclrtDrvMemHandle handle, uint64_t flags, aclrtMemSharedHandleType shareType,
                                           void *shareableHandle) {
    ENTER(aclrtMemExportToShareableHandleV2, handle, flags, shareType, shareableHandle);
    if (!handle || !shareableHandle)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "%s is null", handle ? "shareableHandle" : "handle");
    uint64_t token;
    int code = check_type(shareType);
    if (!code)
        code = locked_export(handle, flags, &token);
    if (code)
        return code;
    if (shareType == ACL_MEM_SHARE_HANDLE_TYPE_FABRIC)
        memset(shareableHandle, 0, sizeof(aclrtMemFabricHandle));
    memcpy(shareableHandle, &token, sizeof(token));
    return ACL_SUCCESS;
}

aclError aclrtMemImportFromShareableHandleV2(void *shareableHandle, aclrtMemSharedHandleType shareType, uint64_t flags,
                                             aclrtDrvMemHandle *handle) {
    ENTER(aclrtMemImportFromShareableHandleV2, shareableHandle, shareType, flags, handle);
    if (!handle || !shareableHandle)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "%s is null", handle ? "shareableHandle" : "handle");
    int code = check_type(shareType);
    if (code)
        return code;
    if (flags)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "flags is %llu and must be 0",
                           (unsigned long long)flags);
    table_lock();
    code = import_handle(read_token(shareableHandle), -1, handle);
    table_unlock();
    return code;
}

aclError aclrtMemSetPidToShareableHandleV2(void *shareableHandle, aclrtMemSharedHandleType shareType, int32_t *pid,
                                           size_t pidNum) {
    ENTER(aclrtMemSetPidToShareableHandleV2, shareableHandle, shareType, IN(pid), pidNum);
    if (!shareableHandle)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "shareableHandle is null");
    int code = check_type(shareType);
    return code ? code : allow(read_token(shareableHandle), pid, pidNum);
}
