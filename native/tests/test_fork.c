/* A forked child that uses the runtime gets errors, never a hang; the parent goes on undisturbed. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static atomic_bool stop;

/* The child has no way to the device's bytes: nothing it does can change them. */
static void check_no_window(void) {
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof(line), maps))
        CHECK(!strstr(line, "hostacl-device"));
    fclose(maps);
}

static int in_child(void *block) {
    void *other = NULL;
    hostacl_live_t live;
    char text[512];
    uint8_t byte = 0;
    alarm(20);
    CHECK_EQ(aclrtSetDevice(0), ACL_ERROR_RT_DEV_SETUP_ERROR);
    CHECK_EQ(aclrtMalloc(&other, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_DEV_SETUP_ERROR);
    CHECK_EQ(aclrtMemcpy(&byte, 1, block, 1, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_RT_DEV_SETUP_ERROR);
    CHECK_EQ(aclrtFree(block), ACL_ERROR_RT_DEV_SETUP_ERROR);
    CHECK_EQ(aclInit(NULL), ACL_ERROR_RT_DEV_SETUP_ERROR);
    CHECK_EQ(aclFinalize(), ACL_ERROR_RT_DEV_SETUP_ERROR);
    CHECK(!aclrtGetSocName());
    CHECK(strstr(aclGetRecentErrMsg(), "forked"));
    CHECK_EQ(hostacl_reset(), ACL_ERROR_RT_DEV_SETUP_ERROR);
    CHECK_EQ(hostacl_configure("devices", "1"), ACL_ERROR_RT_DEV_SETUP_ERROR);
    CHECK_EQ(hostacl_live(&live), ACL_ERROR_RT_DEV_SETUP_ERROR);
    CHECK(hostacl_info(text, sizeof(text)) > 0 && strstr(text, "forked"));
    CHECK(hostacl_live_report(text, sizeof(text)) > 0);
    CHECK(hostacl_version());
    check_no_window();
    return check_failures > 0;
}

static void fork_and_wait(void *block) {
    int status = -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int code = in_child(block);
        fflush(stdout);
        _exit(code);
    }
    waitpid(child, &status, 0);
    CHECK_EQ(status, 0);
}

/* Keeps the locks of the runtime busy while the process forks. */
static void *work(void *unused) {
    OK(aclrtSetDevice(0));
    while (!atomic_load(&stop)) {
        void *block = NULL;
        OK(aclrtMalloc(&block, 3 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
        OK(aclrtMemset(block, 3 * MIB, 1, 100000));
        OK(aclrtFree(block));
    }
    return unused;
}

int main(void) {
    pthread_t threads[2];
    void *block = NULL;
    uint8_t byte = 0;
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemset(block, 4096, 77, 4096));
    fork_and_wait(block);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 10; i++)
        fork_and_wait(block);
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    OK(aclrtMemcpy(&byte, 1, block, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_EQ(byte, 77);
    OK(aclrtFree(block));
    OK(aclrtResetDeviceForce(0));
    check_nothing_alive();
    return check_done();
}
