/* The attribute list of aclrtMallocWithCfg and aclrtMallocHostWithCfg. A null list is fine, an empty one is refused.
 * The last attribute of a kind wins. The module id only labels a block in the driver's own statistics and is accepted
 * without effect. Thread safety: no state. */
#include "malloc_config.h"

#include "errors.h"

static int refuse(const char *why, int number) {
    return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "cfg: %s (%d)", why, number);
}

int malloc_config_read(const aclrtMallocConfig *cfg, bool for_device, struct malloc_wishes *wishes) {
    *wishes = (struct malloc_wishes){.on_device = false};
    if (!cfg)
        return ACL_SUCCESS;
    if (!cfg->attrs && cfg->numAttrs && for_device)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "cfg->attrs is null, cfg->numAttrs is %zu",
                           cfg->numAttrs);
    if (!cfg->attrs || !cfg->numAttrs)
        return refuse("there is no attribute; pass a null cfg instead", 0);
    for (size_t i = 0; i < cfg->numAttrs; i++) {
        const aclrtMallocAttribute *attribute = &cfg->attrs[i];
        switch ((int)attribute->attr) {
        case ACL_RT_MEM_ATTR_RSV:
        case ACL_RT_MEM_ATTR_MODULE_ID:
            break;
        case ACL_RT_MEM_ATTR_DEVICE_ID:
            *wishes = (struct malloc_wishes){.on_device = true, .device = attribute->value.deviceId};
            break;
        case ACL_RT_MEM_ATTR_VA_FLAG:
            if (for_device)
                return refuse("VA_FLAG is not for device memory", ACL_RT_MEM_ATTR_VA_FLAG);
            break;
        default:
            return refuse("unknown attribute", (int)attribute->attr);
        }
    }
    return ACL_SUCCESS;
}
