/* Last error and recent messages. */
#include <pthread.h>
#include <unistd.h>

#include "check.h"

/* Whether the recent text holds exactly these message ids, newest first, separated by one space. */
static bool recent_ids(const char *wanted) {
    char got[256] = "";
    const char *text = aclGetRecentErrMsg();
    for (; text && *text; text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL) {
        strncat(got, got[0] ? " " : "", 2);
        strncat(got, text, 6);
    }
    if (strcmp(got, wanted))
        printf("    got ids \"%s\", wanted \"%s\"\n", got, wanted);
    return !strcmp(got, wanted);
}

static void test_last_error(void) {
    void *block = NULL;
    start(NULL);
    OK(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL));
    CHECK_EQ(aclrtSetDevice(9), ACL_ERROR_RT_INVALID_DEVICEID);
    OK(aclrtSetDevice(0));
    CHECK_EQ(aclrtFree(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_INVALID_DEVICEID);
    OK(aclrtGetLastError(ACL_RT_THREAD_LEVEL));
    CHECK_EQ(aclrtGetLastError((aclrtLastErrLevel)1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtPeekAtLastError((aclrtLastErrLevel)-1), ACL_ERROR_INVALID_PARAM);
    OK(aclrtGetLastError(ACL_RT_THREAD_LEVEL));
    CHECK_EQ(aclrtMalloc(&block, 100 * GIB, ACL_MEM_MALLOC_HUGE_ONLY), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK_EQ(aclrtFree(&block), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_PARAM_INVALID);
}

static void *other_thread(void *unused) {
    OK(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL));
    CHECK_EQ(aclrtResetDevice(-3), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK(recent_ids("EE1003"));
    return unused;
}

static void run_other_thread(void *(*body)(void *)) {
    pthread_t thread;
    pthread_create(&thread, NULL, body, NULL);
    pthread_join(thread, NULL);
}

static void test_threads_are_apart(void) {
    start(NULL);
    OK(aclrtSetDevice(0));
    CHECK_EQ(aclrtSetDevice(5), ACL_ERROR_RT_INVALID_DEVICEID);
    run_other_thread(other_thread);
    CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK(recent_ids("EE1003"));
    CHECK(recent_ids(""));
}

static void test_messages_without_context(void) {
    start(NULL);
    CHECK(recent_ids("EE1018"));
    CHECK_EQ(aclrtSetDevice(7), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK(recent_ids("EE1003 EE1018"));
    CHECK(recent_ids("EE1018 EE1003 EE1018"));
    OK(aclrtSetDevice(0));
    CHECK(recent_ids(""));
}

static void test_message_kinds(void) {
    void *block = NULL;
    start(NULL);
    OK(aclrtSetDevice(0));
    aclrtMalloc(NULL, 1, ACL_MEM_MALLOC_HUGE_FIRST);
    CHECK(recent_ids("EH0008"));
    aclrtMalloc(&block, 0, ACL_MEM_MALLOC_HUGE_FIRST);
    CHECK(recent_ids("EH0007"));
    aclrtFree(&block);
    CHECK(recent_ids("EL0003"));
    aclrtMalloc(&block, 100 * GIB, ACL_MEM_MALLOC_HUGE_ONLY);
    const char *text = aclGetRecentErrMsg();
    CHECK(text && !strncmp(text, "EL0019: aclrtMalloc: 107374182400 bytes", 39));
    CHECK(text && strstr(text, "207001 ACL_ERROR_RT_MEMORY_ALLOCATION"));
    CHECK(!aclGetRecentErrMsg());
}

static void test_only_the_newest_are_kept(void) {
    start(NULL);
    OK(aclrtSetDevice(0));
    for (int id = 100; id < 140; id++)
        CHECK_EQ(aclrtSetDevice(id), ACL_ERROR_RT_INVALID_DEVICEID);
    const char *text = aclGetRecentErrMsg();
    CHECK(text && strstr(text, "device id 139 ") && strstr(text, "device id 124 ") && !strstr(text, "device id 123 "));
}

static void *refuse_something(void *unused) {
    OK(aclrtSetDevice(0));
    CHECK_EQ(aclrtSetDevice(8), ACL_ERROR_RT_INVALID_DEVICEID);
    return unused;
}

static void test_process_mode(void) {
    char path[64];
    snprintf(path, sizeof(path), "/tmp/hostacl-error-%d.json", (int)getpid());
    FILE *file = fopen(path, "wb");
    fputs("{\"err_msg_mode\": \"1\"}", file);
    fclose(file);
    start(NULL);
    OK(aclInit(path));
    OK(aclrtSetDevice(0));
    run_other_thread(refuse_something);
    CHECK(recent_ids("EE1003"));
    OK(aclrtGetLastError(ACL_RT_THREAD_LEVEL));
    OK(aclFinalize());
    run_other_thread(refuse_something);
    CHECK(recent_ids(""));
    unlink(path);
}

int main(void) {
    test_last_error();
    test_threads_are_apart();
    test_messages_without_context();
    test_message_kinds();
    test_only_the_newest_are_kept();
    test_process_mode();
    start(NULL);
    return check_done();
}
