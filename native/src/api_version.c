/* Exported: versions and abilities of the installation that is played.
 *
 * The version is an option; every package of the installation has it. A device with bfloat16 numbers has infinities
 * too; nothing is compiled at run time. None of these calls needs a device. Thread safety: any thread, any time. */
#include <stdio.h>
#include <string.h>

#include "acl/acl.h"
#include "config.h"
#include "entry.h"
#include "errors.h"
#include "runtime.h"
#include "table.h"

/* The packages by their number. */
static const char *const packages[] = {
    [ACL_PKG_NAME_CANN] = "cann",     [ACL_PKG_NAME_RUNTIME] = "runtime",       [ACL_PKG_NAME_COMPILER] = "compiler",
    [ACL_PKG_NAME_HCCL] = "hccl",     [ACL_PKG_NAME_TOOLKIT] = "toolkit",       [ACL_PKG_NAME_OPP] = "opp",
    [ACL_PKG_NAME_DRIVER] = "driver", [ACL_PKG_NAME_OPP_KERNEL] = "opp_kernel",
};

#define PACKAGES (sizeof(packages) / sizeof(packages[0]))

static struct config config_now(void) {
    table_lock();
    struct config config = *runtime_config();
    table_unlock();
    return config;
}

/* Whether there is a package of that name; returns a code. */
static int check_package(const char *name) {
    for (size_t i = 0; i < PACKAGES; i++) {
        if (!strcmp(name, packages[i]))
            return ACL_SUCCESS;
    }
    return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_FILE, "there is no package \"%.80s\"", name);
}

aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion *version) {
    ENTER(aclsysGetCANNVersion, name, version);
    if (!version)
        return error_null("version");
    if ((uint32_t)name >= PACKAGES)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "name %d is no package", (int)name);
    struct config config = config_now();
    memset(version, 0, sizeof(*version));
    strcpy(version->version, config.cann_version);
    snprintf(version->majorVersion, sizeof(version->majorVersion), "%u", config.cann_parts[0]);
    snprintf(version->minorVersion, sizeof(version->minorVersion), "%u", config.cann_parts[1]);
    snprintf(version->releaseVersion, sizeof(version->releaseVersion), "%u", config.cann_parts[2]);
    return ACL_SUCCESS;
}

aclError aclsysGetVersionStr(char *pkgName, char *versionStr) {
    ENTER(aclsysGetVersionStr, pkgName, versionStr);
    if (!pkgName || !versionStr)
        return error_null(pkgName ? "versionStr" : "pkgName");
    int code = check_package(pkgName);
    if (code)
        return code;
    struct config config = config_now();
    strcpy(versionStr, config.cann_version);
    return ACL_SUCCESS;
}

aclError aclsysGetVersionNum(char *pkgName, int32_t *versionNum) {
    ENTER(aclsysGetVersionNum, pkgName, versionNum);
    if (!pkgName || !versionNum)
        return error_null(pkgName ? "versionNum" : "pkgName");
    int code = check_package(pkgName);
    if (code)
        return code;
    struct config config = config_now();
    *versionNum =
        (int32_t)(config.cann_parts[0] * 10000000 + config.cann_parts[1] * 100000 + config.cann_parts[2] * 1000);
    return ACL_SUCCESS;
}

aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t *value) {
    ENTER(aclGetCannAttribute, cannAttr, value);
    if (!value)
        return error_null("value");
    if (cannAttr < ACL_CANN_ATTR_INF_NAN || cannAttr > ACL_CANN_ATTR_JIT_COMPILE)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "cannAttr %d is no attribute", (int)cannAttr);
    *value = cannAttr != ACL_CANN_ATTR_JIT_COMPILE && config_now().product->bf16;
    return ACL_SUCCESS;
}

aclError aclGetCannAttributeList(const aclCannAttr **cannAttrList, size_t *num) {
    ENTER(aclGetCannAttributeList, cannAttrList, num);
    static const aclCannAttr available[] = {ACL_CANN_ATTR_INF_NAN, ACL_CANN_ATTR_BF16};
    if (!cannAttrList || !num)
        return error_null(cannAttrList ? "num" : "cannAttrList");
    *cannAttrList = available;
    *num = config_now().product->bf16 ? sizeof(available) / sizeof(available[0]) : 0;
    return ACL_SUCCESS;
}

/* Products whose operators run on each other. */
aclError aclrtCheckArchCompatibility(const char *socVersion, int32_t *canCompatible) {
    ENTER(aclrtCheckArchCompatibility, socVersion, canCompatible);
    if (!socVersion || !canCompatible)
        return error_null(socVersion ? "canCompatible" : "socVersion");
    const struct product *product = config_product(socVersion);
    *canCompatible = product && !strcmp(product->arch, config_now().product->arch);
    return ACL_SUCCESS;
}
