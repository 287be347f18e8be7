/* Versions and abilities of the installation that is played; which products run each other's operators. */
#include "check.h"

static char runtime_name[] = "runtime";
static char unknown_name[] = "no-such-package";

static void test_arguments(void) {
    aclCANNPackageVersion version;
    char text[ACL_PKG_VERSION_MAX_SIZE] = "untouched";
    int32_t number = 77;
    size_t count = 77;
    const aclCannAttr *list = NULL;
    start(NULL);
    CHECK_EQ(aclsysGetCANNVersion(ACL_PKG_NAME_CANN, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclsysGetCANNVersion((aclCANNPackageName)8, &version), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclsysGetCANNVersion((aclCANNPackageName)-1, &version), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclsysGetVersionStr(NULL, text), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclsysGetVersionStr(runtime_name, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclsysGetVersionStr(unknown_name, text), ACL_ERROR_INVALID_FILE);
    CHECK_EQ(aclsysGetVersionNum(NULL, &number), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclsysGetVersionNum(runtime_name, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclsysGetVersionNum(unknown_name, &number), ACL_ERROR_INVALID_FILE);
    CHECK(!strcmp(text, "untouched") && number == 77);
    CHECK_EQ(aclGetCannAttribute(ACL_CANN_ATTR_BF16, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclGetCannAttribute(ACL_CANN_ATTR_UNDEFINED, &number), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclGetCannAttribute((aclCannAttr)3, &number), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclGetCannAttributeList(NULL, &count), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclGetCannAttributeList(&list, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtCheckArchCompatibility(NULL, &number), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtCheckArchCompatibility("Ascend910B1", NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(number == 77 && count == 77);
}

static void test_versions(void) {
    static const char *const names[] = {"cann",    "runtime", "compiler",   "hccl",
                                        "toolkit", "opp",     "opp_kernel", "driver"};
    aclCANNPackageVersion version;
    char text[ACL_PKG_VERSION_MAX_SIZE], name[32];
    int32_t number = 0;
    start("cann_version", "8.5.12", NULL);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        strcpy(name, names[i]);
        OK(aclsysGetVersionStr(name, text));
        CHECK(!strcmp(text, "8.5.12"));
        OK(aclsysGetVersionNum(name, &number));
        CHECK_EQ(number, 80512000);
        memset(&version, '?', sizeof(version));
        OK(aclsysGetCANNVersion((aclCANNPackageName)i, &version));
        CHECK(!strcmp(version.version, "8.5.12") && !strcmp(version.majorVersion, "8"));
        CHECK(!strcmp(version.minorVersion, "5") && !strcmp(version.releaseVersion, "12"));
        CHECK(!version.patchVersion[0] && !version.reserved[0]);
    }
    start(NULL);
    OK(aclsysGetVersionStr(runtime_name, text));
    CHECK(!strcmp(text, "9.1.0"));
    check_nothing_alive();
}

static void test_bad_versions(void) {
    static const char *const bad[] = {"", "9", "9.1", "9.1.0.2", "9.1.x", "x", "9.100.0", "9.1.0 ", "-1.2.3"};
    start(NULL);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_EQ(hostacl_configure("cann_version", bad[i]), ACL_ERROR_INVALID_PARAM);
}

static void test_abilities(void) {
    static const struct {
        const char *soc;
        int wide;
    } products[] = {{"Ascend910B1", 1}, {"Ascend910_9391", 1}, {"Ascend950PR_9599", 1},
                    {"Ascend910A", 0},  {"Ascend310P3", 0},    {"Ascend310B1", 0}};
    for (size_t i = 0; i < sizeof(products) / sizeof(products[0]); i++) {
        int32_t value = 77;
        size_t count = 77;
        const aclCannAttr *list = NULL;
        start("soc_name", products[i].soc, NULL);
        OK(aclGetCannAttribute(ACL_CANN_ATTR_INF_NAN, &value));
        CHECK_EQ(value, products[i].wide);
        OK(aclGetCannAttribute(ACL_CANN_ATTR_BF16, &value));
        CHECK_EQ(value, products[i].wide);
        OK(aclGetCannAttribute(ACL_CANN_ATTR_JIT_COMPILE, &value));
        CHECK_EQ(value, 0);
        OK(aclGetCannAttributeList(&list, &count));
        CHECK_EQ(count, products[i].wide ? 2 : 0);
        for (size_t k = 0; k < count; k++) {
            OK(aclGetCannAttribute(list[k], &value));
            CHECK_EQ(value, 1);
        }
    }
}

static int can_run(const char *soc, const char *made_for) {
    int32_t can = 77;
    start("soc_name", soc, NULL);
    OK(aclrtCheckArchCompatibility(made_for, &can));
    return can;
}

static void test_compatibility(void) {
    CHECK_EQ(can_run("Ascend910B1", "Ascend910B1"), 1);
    CHECK_EQ(can_run("Ascend910B1", "Ascend910B4"), 1);
    CHECK_EQ(can_run("Ascend910_9391", "Ascend910B2"), 1);
    CHECK_EQ(can_run("Ascend910B1", "Ascend910A"), 0);
    CHECK_EQ(can_run("Ascend910B1", "Ascend310P3"), 0);
    CHECK_EQ(can_run("Ascend310P3", "Ascend310B1"), 0);
    CHECK_EQ(can_run("Ascend910B1", "Ascend"), 0);
    CHECK_EQ(can_run("Ascend910B1", ""), 0);
}

int main(void) {
    test_arguments();
    test_versions();
    test_bad_versions();
    test_abilities();
    test_compatibility();
    start(NULL);
    check_nothing_alive();
    return check_done();
}
