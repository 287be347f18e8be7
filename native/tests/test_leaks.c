/* Option leaks: what a process reports that ends with objects alive. The test runs itself in several modes. */
#include <pthread.h>

#include "self.h"

static char err[1 << 16];

static int run(const char *leaks, const char *mode) {
    char variable[64];
    snprintf(variable, sizeof(variable), "HOSTACL_LEAKS=%s", leaks);
    char *const variables[] = {variable, "HOSTACL_STACKS=on", NULL};
    return run_self(variables, mode, err, sizeof(err));
}

static void *at_the_end;

static void free_at_exit(void) {
    aclrtFree(at_the_end);
}

static void *never_ends(void *unused) {
    for (;;)
        aclrtGetDevice(&(int32_t){0});
    return unused;
}

/* In the child: makes two blocks and a pinned one, then ends as the mode says. */
static int child(const char *mode) {
    void *block = NULL, *host = NULL;
    pthread_t thread;
    if (!strcmp(mode, "unused"))
        return 3;
    aclrtSetDevice(0);
    if (!strcmp(mode, "clean"))
        return 3;
    aclrtMalloc(&block, 5000, ACL_MEM_MALLOC_HUGE_FIRST);
    if (!strcmp(mode, "atexit")) {
        at_the_end = block;
        atexit(free_at_exit);
        return 3;
    }
    aclrtMallocHost(&host, 64);
    if (!strcmp(mode, "fork")) {
        pid_t inner = fork();
        if (inner == 0)
            exit(5);
        int status = 0;
        waitpid(inner, &status, 0);
        aclrtFree(block);
        aclrtFreeHost(host);
        return WEXITSTATUS(status);
    }
    FILE *buffered = fopen("/proc/self/fd/2", "w");
    if (buffered)
        fputs("last words\n", buffered);
    if (!strcmp(mode, "busy"))
        pthread_create(&thread, NULL, never_ends, NULL);
    return 3;
}

int main(int argc, char **argv) {
    if (argc > 1)
        return child(argv[1]);
    CHECK_EQ(run("off", "leak"), 3);
    CHECK(!strcmp(err, "last words\n"));
    CHECK_EQ(run("report", "leak"), 3);
    CHECK(strstr(err, "hostacl: objects alive at exit: 2\nblock 0x"));
    CHECK(strstr(err, ": 5000 bytes asked, 8192 bytes in 4 KiB pages, device 0\n    aclrtMalloc\n"));
    CHECK(strstr(err, "host block 0x") && strstr(err, "device 0: set 1 times\n"));
    CHECK_EQ(run("fail", "leak"), 99);
    CHECK(strstr(err, "last words\n"));
    CHECK(strstr(err, "hostacl: objects alive at exit: 2"));
    CHECK_EQ(run("fail", "busy"), 99);
    CHECK(strstr(err, "hostacl: objects alive at exit: 2"));
    static const char *const good[] = {"unused", "clean", "atexit"};
    for (size_t i = 0; i < 3; i++) {
        CHECK_EQ(run("fail", good[i]), 3);
        CHECK_EQ(err[0], 0);
    }
    CHECK_EQ(run("fail", "fork"), 5);
    CHECK_EQ(err[0], 0);
    CHECK_EQ(run("maybe", "clean"), 3);
    CHECK(strstr(err, "HOSTACL_LEAKS: leaks: \"maybe\" is neither off nor report nor fail"));
    return check_done();
}
