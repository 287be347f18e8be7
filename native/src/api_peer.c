/* Exported: peer access between devices, and the number of the process as other processes see it. Thread safety: any
 * thread, any time. */
#include <unistd.h>

#include "acl/acl.h"
#include "blocks.h"
#include "context.h"
#include "device.h"
#include "entry.h"
#include "errors.h"
#include "peer.h"
#include "runtime.h"
#include "table.h"

/* The device of that id, or null with the refusal recorded. The table lock is held. */
static struct device *valid_device(int32_t id) {
    struct device *device = device_at(id);
    if (!device)
        error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_INVALID_DEVICEID, "device id %d is not in 0..%u", id,
                    runtime_config()->devices - 1);
    return device;
}

static int same_device(int32_t id) {
    return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "device and peer are both %d", id);
}

aclError aclrtDeviceCanAccessPeer(int32_t *canAccessPeer, int32_t deviceId, int32_t peerDeviceId) {
    ENTER(aclrtDeviceCanAccessPeer, canAccessPeer, deviceId, peerDeviceId);
    if (!canAccessPeer)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "canAccessPeer is null");
    if (deviceId == peerDeviceId)
        return same_device(deviceId);
    table_lock();
    bool good = valid_device(deviceId) && valid_device(peerDeviceId);
    table_unlock();
    if (!good)
        return ACL_ERROR_RT_INVALID_DEVICEID;
    *canAccessPeer = 1;
    return ACL_SUCCESS;
}

/* Changes what the current device may reach; a device is no peer of itself. */
static int change(int32_t peer_id, void (*apply)(struct device *, const struct device *)) {
    const struct context *context = context_need();
    if (!context)
        return ACL_ERROR_RT_CONTEXT_NULL;
    if (context->device->id == peer_id)
        return same_device(peer_id);
    const struct device *peer = valid_device(peer_id);
    if (!peer)
        return ACL_ERROR_RT_INVALID_DEVICEID;
    apply(context->device, peer);
    return ACL_SUCCESS;
}

aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags) {
    ENTER(aclrtDeviceEnablePeerAccess, peerDeviceId, flags);
    if (flags)
        return error_raise(ERROR_VALUE, ACL_ERROR_FEATURE_UNSUPPORTED, "flags is %u and must be 0", flags);
    table_lock();
    int code = change(peerDeviceId, peer_enable);
    table_unlock();
    return code;
}

aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) {
    ENTER(aclrtDeviceDisablePeerAccess, peerDeviceId);
    table_lock();
    int code = change(peerDeviceId, peer_disable);
    table_unlock();
    return code;
}

/* Everything after the entry; the table lock is held. */
static int map_to_peer(void *ptr, size_t size, int32_t id) {
    const struct device *device = valid_device(id);
    if (!device)
        return ACL_ERROR_RT_INVALID_DEVICEID;
    if (block_allow_device((uint64_t)(uintptr_t)ptr, size, device))
        return ACL_SUCCESS;
    return error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR, "%p + %zu bytes is not inside one live block",
                       ptr, size);
}

aclError aclrtMemP2PMap(void *devPtr, size_t size, int32_t dstDevId, uint64_t flags) {
    ENTER(aclrtMemP2PMap, devPtr, size, dstDevId, flags);
    if (!devPtr)
        return error_null("devPtr");
    if (!size || flags)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "size is %zu, flags is %llu and must be 0", size,
                           (unsigned long long)flags);
    table_lock();
    int code = map_to_peer(devPtr, size, dstDevId);
    table_unlock();
    return code;
}

aclError aclrtDeviceGetBareTgid(int32_t *pid) {
    ENTER(aclrtDeviceGetBareTgid, pid);
    if (!pid)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "pid is null");
    *pid = (int32_t)getpid();
    return ACL_SUCCESS;
}
