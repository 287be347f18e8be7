/* Options from the environment: the test starts itself with variables set and looks at code and stderr. */
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* Starts this program with one variable and a mode; the text of its stderr goes to err. Returns its exit code. */
static int run_with(const char *variable, const char *mode, char *err, size_t room) {
    int ends[2], status = 0;
    size_t used = 0;
    if (pipe(ends))
        return -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        char *const argv[] = {"test_environment", (char *)mode, NULL};
        char *const envp[] = {(char *)variable, NULL};
        dup2(ends[1], 2);
        execve("/proc/self/exe", argv, envp);
        _exit(99);
    }
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], err + used, room - 1 - used)) > 0;)
        used += (size_t)got;
    err[used] = 0;
    close(ends[0]);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
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
    CHECK_EQ(run_with("HOSTACL_OTHER=1", "any", err, sizeof(err)), 0);
    CHECK_EQ(run_with("HOSTACL_PROFILE=card", "any", err, sizeof(err)), 0);
    CHECK_EQ(run_with("HOSTACL_PAGES_1G=none", "any", err, sizeof(err)), 0);
    CHECK_EQ(err[0], 0);
    return check_done();
}
