/* aclInit, aclFinalize, aclFinalizeReference and the configuration file. */
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static char path[64];

/* aclInit with a file of that content. */
static int init_with(const char *content) {
    FILE *file = fopen(path, "wb");
    fputs(content, file);
    fclose(file);
    return aclInit(path);
}

static void test_count(void) {
    uint64_t left = 99;
    start(NULL);
    OK(aclInit(NULL));
    CHECK_EQ(aclInit(NULL), ACL_ERROR_REPEAT_INITIALIZE);
    CHECK_EQ(aclInit(""), ACL_ERROR_REPEAT_INITIALIZE);
    OK(aclFinalizeReference(&left));
    CHECK_EQ(left, 2);
    OK(aclFinalizeReference(NULL));
    OK(aclFinalizeReference(&left));
    CHECK_EQ(left, 0);
    left = 99;
    CHECK_EQ(aclFinalizeReference(&left), ACL_ERROR_REPEAT_FINALIZE);
    CHECK_EQ(left, 0);
    CHECK_EQ(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
}

static void test_finalize(void) {
    start(NULL);
    OK(aclFinalize());
    CHECK_EQ(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
    OK(aclInit(NULL));
    CHECK_EQ(aclInit(NULL), ACL_ERROR_REPEAT_INITIALIZE);
    OK(aclFinalize());
    OK(aclInit(NULL));
    OK(aclFinalize());
    CHECK_EQ(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
}

static void test_finalize_keeps_devices(void) {
    void *block = NULL;
    start(NULL);
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclFinalize());
    OK(aclrtMemset(block, 4096, 1, 4096));
    OK(aclrtFree(block));
}

static void test_files(void) {
    start(NULL);
    CHECK_EQ(aclInit("/nowhere/acl.json"), ACL_ERROR_INVALID_FILE);
    CHECK_EQ(aclInit("/"), ACL_ERROR_INVALID_FILE);
    CHECK_EQ(aclInit("/dev/zero"), ACL_ERROR_INVALID_FILE);
    CHECK(!mkfifo(path, 0600));
    CHECK_EQ(aclInit(path), ACL_ERROR_INVALID_FILE); /* nobody will ever write to it */
    unlink(path);
    CHECK_EQ(init_with("{\"a\": }"), ACL_ERROR_PARSE_FILE);
    CHECK_EQ(init_with("{\"a\": 1} x"), ACL_ERROR_PARSE_FILE);
    CHECK_EQ(init_with("{\"err_msg_mode\": \"2\"}"), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(init_with("{\"err_msg_mode\": 1}"), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(init_with("{\"defaultDevice\": {\"default_device\": \"9\"}}"), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(init_with("{\"defaultDevice\": {\"default_device\": \"-1\"}}"), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(init_with("{\"defaultDevice\": {\"default_device\": \"\"}}"), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(init_with("{\"defaultDevice\": {\"default_device\": 1}}"), ACL_ERROR_INVALID_PARAM);
    OK(aclFinalize());
    OK(init_with("{\"dump\": {\"list\": [1, {\"err_msg_mode\": \"7\"}]}, \"err_msg_mode\": \"0\"}"));
    CHECK_EQ(aclInit(path), ACL_ERROR_REPEAT_INITIALIZE);
    CHECK_EQ(init_with("{\"err_msg_mode\": \"1\"}"), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclInit(NULL), ACL_ERROR_INVALID_PARAM);
    OK(aclFinalize());
    OK(init_with(""));
    OK(aclFinalize());
}

static void test_default_device(void) {
    int32_t device = -1;
    void *block = NULL;
    start(NULL);
    CHECK_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
    OK(init_with("{\"defaultDevice\": {\"default_device\": \"1\"}}"));
    OK(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtGetDevice(&device));
    CHECK_EQ(device, 1);
    OK(aclrtFree(block));
    OK(aclrtResetDevice(1));
    CHECK_EQ(aclrtResetDevice(1), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
    OK(aclrtSetDevice(0));
    OK(aclrtGetDevice(&device));
    CHECK_EQ(device, 0);
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
    CHECK_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
}

static void test_queries(void) {
    aclrtRunMode mode = ACL_DEVICE;
    start(NULL);
    OK(aclrtGetRunMode(&mode));
    CHECK_EQ(mode, ACL_HOST);
    CHECK_EQ(aclrtGetRunMode(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(!strcmp(aclrtGetSocName(), "Ascend910B1"));
    start("soc_name", "Ascend910_9391", NULL);
    CHECK(!strcmp(aclrtGetSocName(), "Ascend910_9391"));
}

int main(void) {
    snprintf(path, sizeof(path), "/tmp/hostacl-init-%d.json", (int)getpid());
    test_count();
    test_finalize();
    test_finalize_keeps_devices();
    test_files();
    test_default_device();
    test_queries();
    unlink(path);
    start(NULL);
    check_nothing_alive();
    return check_done();
}
