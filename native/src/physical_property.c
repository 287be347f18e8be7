/* What aclrtMallocPhysical and aclrtMemGetAllocationGranularity accept, in the order in which the layers look: entry
 * layer, runtime, driver.
 *
 * Device memory comes in 2 MiB pages also for the attributes that say normal, and in 1 GiB pages for those that say
 * 1G. For the host the DDR attributes are allowed too. A generic attribute reads back as the one of the memory the
 * product has; P2P ones read back as they are.
 *
 * Thread safety: callers hold the table lock. */
#include "physical_property.h"

#include <stdio.h>
#include <unistd.h>

#include "context.h"
#include "device.h"
#include "errors.h"
#include "reserve.h"
#include "runtime.h"

enum { NOWHERE, HOST_ONLY, EVERYWHERE };

/* Row of an attribute: where it is allowed, its pages, what it reads back as on a device and on the host. */
static const struct {
    int where;           /* locations that take it */
    enum page_class cls; /* its pages */
    aclrtMemAttr device; /* reads back as, on a device */
    aclrtMemAttr host;   /* reads back as, on the host */
} attributes[] = {
    [ACL_DDR_MEM] = {NOWHERE, PAGE_2M, 0, 0},
    [ACL_HBM_MEM] = {NOWHERE, PAGE_2M, 0, 0},
    [ACL_DDR_MEM_HUGE] = {HOST_ONLY, PAGE_2M, 0, ACL_DDR_MEM_HUGE},
    [ACL_DDR_MEM_NORMAL] = {HOST_ONLY, PAGE_2M, 0, ACL_DDR_MEM_NORMAL},
    [ACL_HBM_MEM_HUGE] = {EVERYWHERE, PAGE_2M, ACL_HBM_MEM_HUGE, ACL_HBM_MEM_HUGE},
    [ACL_HBM_MEM_NORMAL] = {EVERYWHERE, PAGE_2M, ACL_HBM_MEM_NORMAL, ACL_HBM_MEM_NORMAL},
    [ACL_DDR_MEM_P2P_HUGE] = {HOST_ONLY, PAGE_2M, 0, ACL_DDR_MEM_P2P_HUGE},
    [ACL_DDR_MEM_P2P_NORMAL] = {HOST_ONLY, PAGE_2M, 0, ACL_DDR_MEM_P2P_NORMAL},
    [ACL_HBM_MEM_P2P_HUGE] = {NOWHERE, PAGE_2M, 0, 0},
    [ACL_HBM_MEM_P2P_NORMAL] = {NOWHERE, PAGE_2M, 0, 0},
    [ACL_HBM_MEM_HUGE1G] = {EVERYWHERE, PAGE_1G, ACL_HBM_MEM_HUGE1G, ACL_HBM_MEM_HUGE1G},
    [ACL_HBM_MEM_P2P_HUGE1G] = {NOWHERE, PAGE_1G, 0, 0},
    [ACL_MEM_NORMAL] = {EVERYWHERE, PAGE_2M, ACL_HBM_MEM_NORMAL, ACL_DDR_MEM_NORMAL},
    [ACL_MEM_HUGE] = {EVERYWHERE, PAGE_2M, ACL_HBM_MEM_HUGE, ACL_DDR_MEM_HUGE},
    [ACL_MEM_HUGE1G] = {EVERYWHERE, PAGE_1G, ACL_HBM_MEM_HUGE1G, ACL_MEM_HUGE1G},
    [ACL_MEM_P2P_NORMAL] = {EVERYWHERE, PAGE_2M, ACL_MEM_P2P_NORMAL, ACL_MEM_P2P_NORMAL},
    [ACL_MEM_P2P_HUGE] = {EVERYWHERE, PAGE_2M, ACL_MEM_P2P_HUGE, ACL_MEM_P2P_HUGE},
    [ACL_MEM_P2P_HUGE1G] = {EVERYWHERE, PAGE_1G, ACL_MEM_P2P_HUGE1G, ACL_MEM_P2P_HUGE1G},
};

static int refuse_value(const char *member, int value) {
    return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "prop->%s %d is not accepted here", member, value);
}

static int entry_checks(const aclrtPhysicalMemProp *prop) {
    uint32_t attr = (uint32_t)prop->memAttr;
    int type = (int)prop->location.type;
    if (prop->handleType != ACL_MEM_HANDLE_TYPE_NONE)
        return refuse_value("handleType", (int)prop->handleType);
    if (prop->allocationType != ACL_MEM_ALLOCATION_TYPE_PINNED)
        return refuse_value("allocationType", (int)prop->allocationType);
    if (type == ACL_MEM_LOCATION_TYPE_UNREGISTERED || type == ACL_MEM_LOCATION_TYPE_MANAGED)
        return refuse_value("location.type", type);
    if (attr > ACL_MEM_P2P_HUGE1G || attributes[attr].where == NOWHERE ||
        (attributes[attr].where == HOST_ONLY && type == ACL_MEM_LOCATION_TYPE_DEVICE))
        return refuse_value("memAttr", (int)attr);
    return ACL_SUCCESS;
}

/* Whether the machine has a NUMA node of that number. */
static bool node_exists(uint32_t node) {
    char path[64];
    snprintf(path, sizeof(path), "/sys/devices/system/node/node%u", node);
    return !access(path, F_OK);
}

static int location_checks(const aclrtMemLocation *location) {
    switch ((int)location->type) {
    case ACL_MEM_LOCATION_TYPE_DEVICE:
        if (device_at((int32_t)location->id))
            return ACL_SUCCESS;
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_INVALID_DEVICEID, "device id %d is not in 0..%u",
                           (int)location->id, runtime_config()->devices - 1);
    case ACL_MEM_LOCATION_TYPE_HOST:
        return ACL_SUCCESS;
    case ACL_MEM_LOCATION_TYPE_HOST_NUMA:
        if (!context_need())
            return ACL_ERROR_RT_CONTEXT_NULL;
        if (node_exists(location->id))
            return ACL_SUCCESS;
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_PARAM_INVALID, "the machine has no NUMA node %u", location->id);
    default:
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_PARAM_INVALID, "prop->location.type %d is unknown",
                           (int)location->type);
    }
}

int physical_property_read(const aclrtPhysicalMemProp *prop, struct property_wishes *wishes) {
    int code = entry_checks(prop);
    if (!code)
        code = reserve_need_feature();
    if (!code)
        code = location_checks(&prop->location);
    if (code)
        return code;
    bool on_device = prop->location.type == ACL_MEM_LOCATION_TYPE_DEVICE;
    wishes->cls = attributes[prop->memAttr].cls;
    wishes->attr = on_device ? attributes[prop->memAttr].device : attributes[prop->memAttr].host;
    wishes->device = on_device ? (int32_t)prop->location.id : -1;
    if (prop->reserve)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_PARAM_INVALID, "prop->reserve is %llu and must be 0",
                           (unsigned long long)prop->reserve);
    if (wishes->cls == PAGE_1G && !config_has_giant_pages(runtime_config()))
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s has no 1 GiB pages here",
                           runtime_config()->soc_name);
    return ACL_SUCCESS;
}
