/* Options from the environment: the test starts itself with variables set and looks at code and stderr. */
#include "self.h"

/* Runs this program with one variable. */
static int run_with(const char *variable, const char *mode, char *err, size_t room) {
    char *const variables[] = {(char *)variable, NULL};
    return run_self(variables, mode, err, room);
}

/* In the child: every kind of call fails cleanly, a good environment after that heals. */
static int blocked_child(void) {
    void *block = NULL;
    uint32_t count = 0;
    hostacl_live_t live;
    char text[512];
    CHECK_EQ(aclInit(NULL), ACL_ERROR_RT_DEV_SETUP_ERROR);
    CHECK_EQ(aclrtSetDevice(0), ACL_ERROR_RT_DEV_SETUP_ERROR);
    CHECK_EQ(aclrtGetDeviceCount(&count), ACL_ERROR_RT_DEV_SETUP_ERROR);
    CHECK_EQ(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_DEV_SETUP_ERROR);
    CHECK_EQ(hostacl_configure("devices", "1"), ACL_ERROR_RT_DEV_SETUP_ERROR);
    CHECK_EQ(hostacl_live(&live), ACL_ERROR_RT_DEV_SETUP_ERROR);
    CHECK(!aclrtGetSocName());
    CHECK(strstr(aclGetRecentErrMsg(), "HOSTACL_DEVICES"));
    hostacl_info(text, sizeof(text));
    CHECK(strstr(text, "blocked: HOSTACL_DEVICES"));
    hostacl_live_report(text, sizeof(text));
    CHECK(strstr(text, "HOSTACL_DEVICES"));
    CHECK_EQ(hostacl_reset(), ACL_ERROR_INVALID_PARAM);
    CHECK(strstr(hostacl_error(), "HOSTACL_DEVICES"));
    unsetenv("HOSTACL_DEVICES");
    OK(hostacl_reset());
    OK(aclrtSetDevice(0));
    OK(aclrtResetDevice(0));
    return check_done();
}

/* In the child: the value of one variable shows. */
static int good_child(void) {
    uint32_t count = 0;
    OK(aclrtGetDeviceCount(&count));
    CHECK_EQ(count, 7);
    OK(hostacl_configure("devices", "3"));
    OK(hostacl_reset());
    OK(aclrtGetDeviceCount(&count));
    CHECK_EQ(count, 7);
    return check_done();
}

static int any_child(void) {
    return aclrtSetDevice(0) ? 42 : 0;
}

/* In the child: the planned faults happen, and again after a reset. */
static int faults_child(void) {
    static char bytes[64];
    uint32_t count = 0;
    void *block = NULL;
    for (int round = 0; round < 2; round++) {
        OK(aclrtSetDevice(0));
        OK(aclrtGetDeviceCount(&count));
        CHECK_EQ(aclrtGetDeviceCount(&count), 507000);
        OK(aclrtGetDeviceCount(&count));
        CHECK_EQ(aclrtSetDevice(0), 107001);
        CHECK_EQ(aclrtMalloc(&block, 65537, ACL_MEM_MALLOC_HUGE_FIRST), 207005);
        OK(aclrtMalloc(&block, 65536, ACL_MEM_MALLOC_HUGE_FIRST));
        OK(aclrtMemcpy(block, 64, bytes, 64, ACL_MEMCPY_HOST_TO_DEVICE));
        CHECK_EQ(aclrtMemcpy(block, 64, bytes, 64, ACL_MEMCPY_HOST_TO_DEVICE), 507899);
        OK(aclrtFree(block));
        OK(hostacl_reset());
    }
    OK(aclrtSetDevice(0));
    CHECK_EQ(aclrtMalloc(&block, 65537, ACL_MEM_MALLOC_HUGE_FIRST), 207005);
    return check_done();
}

static void check_faults(void) {
    char err[1024];
    char *const variables[] = {"HOSTACL_FAIL=aclrtGetDeviceCount:2:507000,aclrtSetDevice:2:107001",
                               "HOSTACL_FAIL_ABOVE=64K:207005", "HOSTACL_SHORT_COPY=2:0x20:507899",
                               "HOSTACL_DELAY=aclrtFree:10,aclrtSetDevice:1", NULL};
    CHECK_EQ(run_self(variables, "faults", err, sizeof(err)), 0);
    CHECK_EQ(err[0], 0);
}

static void check_bad(const char *variable, const char *says) {
    char err[1024];
    if (!CHECK_EQ(run_with(variable, "any", err, sizeof(err)), 42) || !CHECK(strstr(err, says)))
        printf("    %s: %s\n", variable, err);
}

int main(int argc, char **argv) {
    char err[1024];
    if (argc > 1 && !strcmp(argv[1], "blocked"))
        return blocked_child();
    if (argc > 1 && !strcmp(argv[1], "good"))
        return good_child();
    if (argc > 1 && !strcmp(argv[1], "faults"))
        return faults_child();
    if (argc > 1)
        return any_child();
    CHECK_EQ(run_with("HOSTACL_DEVICES=0", "blocked", err, sizeof(err)), 0);
    CHECK(strstr(err, "HOSTACL_DEVICES: devices: \"0\""));
    CHECK_EQ(run_with("HOSTACL_DEVICES=7", "good", err, sizeof(err)), 0);
    CHECK_EQ(err[0], 0);
    check_bad("HOSTACL_SOC_NAME=abc", "HOSTACL_SOC_NAME");
    check_bad("HOSTACL_CAPACITY=-1", "HOSTACL_CAPACITY");
    check_bad("HOSTACL_PAGES_4K=1", "HOSTACL_PAGES_4K");
    check_bad("HOSTACL_PAGES_2M=1M", "HOSTACL_PAGES_2M");
    check_bad("HOSTACL_PAGES_1G=x", "HOSTACL_PAGES_1G");
    check_bad("HOSTACL_PROFILE=loose", "HOSTACL_PROFILE");
    check_bad("HOSTACL_FIRST_ADDRESS=nowhere", "HOSTACL_FIRST_ADDRESS");
    check_bad("HOSTACL_DEVICES=", "HOSTACL_DEVICES");
    check_bad("HOSTACL_VIRTUAL_MEMORY=1", "HOSTACL_VIRTUAL_MEMORY");
    check_bad("HOSTACL_POISON=300", "HOSTACL_POISON");
    check_bad("HOSTACL_POISON_FREE=x", "HOSTACL_POISON_FREE");
    check_bad("HOSTACL_STACKS=1", "HOSTACL_STACKS");
    check_bad("HOSTACL_LEAKS=on", "HOSTACL_LEAKS");
    check_bad("HOSTACL_TRACE=/nowhere/at/all", "hostacl: trace: /nowhere/at/all cannot be opened");
    check_bad("HOSTACL_TRACE=", "HOSTACL_TRACE");
    check_bad("HOSTACL_APP_LOG=fd:9999", "hostacl: app_log: fd:9999 cannot be opened");
    check_bad("HOSTACL_FAIL=", "HOSTACL_FAIL: \"\" is not FUNCTION:NTH:CODE");
    check_bad("HOSTACL_FAIL=aclrtNothing:1:507000", "HOSTACL_FAIL");
    check_bad("HOSTACL_FAIL=aclrtFree:0:507000", "HOSTACL_FAIL");
    check_bad("HOSTACL_FAIL=aclrtFree:1:0", "HOSTACL_FAIL");
    check_bad("HOSTACL_FAIL=aclrtFree:1", "HOSTACL_FAIL");
    check_bad("HOSTACL_FAIL=aclrtFree:1:507000:2", "HOSTACL_FAIL");
    check_bad("HOSTACL_FAIL=aclrtFree:1:507000,,", "HOSTACL_FAIL");
    check_bad("HOSTACL_FAIL=aclrtFree:1:507000,aclrtFree:2:507000", "one for each function");
    check_bad("HOSTACL_FAIL=aclrtFreeFreeFreeFreeFreeFreeFreeFreeFreeFreeFreeFreeFreeFreeFree:1:1", "HOSTACL_FAIL");
    check_bad("HOSTACL_DELAY=aclrtFree", "HOSTACL_DELAY: \"aclrtFree\" is not FUNCTION:MICROSECONDS");
    check_bad("HOSTACL_DELAY=aclrtFree:x", "HOSTACL_DELAY");
    check_bad("HOSTACL_DELAY=Free:1", "HOSTACL_DELAY");
    check_bad("HOSTACL_FAIL_ABOVE=much", "HOSTACL_FAIL_ABOVE: \"much\" is not BYTES or BYTES:CODE");
    check_bad("HOSTACL_FAIL_ABOVE=1G:0", "HOSTACL_FAIL_ABOVE");
    check_bad("HOSTACL_FAIL_ABOVE=1G,2G", "HOSTACL_FAIL_ABOVE");
    check_bad("HOSTACL_FAIL_ABOVE=1G:1:1", "HOSTACL_FAIL_ABOVE");
    check_bad("HOSTACL_SHORT_COPY=1:2", "HOSTACL_SHORT_COPY: \"1:2\" is not NTH:BYTES:CODE");
    check_bad("HOSTACL_SHORT_COPY=0:2:3", "HOSTACL_SHORT_COPY");
    check_bad("HOSTACL_SHORT_COPY=1:2:3,1:2:3", "HOSTACL_SHORT_COPY");
    check_faults();
    CHECK_EQ(run_with("HOSTACL_OTHER=1", "any", err, sizeof(err)), 0);
    CHECK_EQ(run_with("HOSTACL_PROFILE=card", "any", err, sizeof(err)), 0);
    CHECK_EQ(run_with("HOSTACL_PAGES_1G=none", "any", err, sizeof(err)), 0);
    CHECK_EQ(err[0], 0);
    return check_done();
}
