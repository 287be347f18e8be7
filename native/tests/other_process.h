/* A second process for the tests of sharing: the test program started again, which obeys one line at a time. A forked
 * child would not do, as the runtime refuses those. */
#ifndef HOSTACL_TESTS_OTHER_PROCESS_H
#define HOSTACL_TESTS_OTHER_PROCESS_H

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "virtual_memory.h"

extern char **environ;

struct other {
    pid_t pid;  /* its number */
    FILE *to;   /* lines it obeys */
    FILE *from; /* one number in answer to each */
};

/* Starts it; the program's main must call obey when it has an argument. */
__attribute__((unused)) static struct other start_other(void) {
    struct other other = {.pid = -1};
    int to[2], from[2];
    char *argv[] = {(char *)"test", (char *)"other", NULL};
    posix_spawn_file_actions_t actions;
    CHECK(!pipe2(to, O_CLOEXEC) && !pipe2(from, O_CLOEXEC));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], 0);
    posix_spawn_file_actions_adddup2(&actions, from[1], 1);
    CHECK(!posix_spawn(&other.pid, "/proc/self/exe", &actions, NULL, argv, environ));
    posix_spawn_file_actions_destroy(&actions);
    close(to[0]);
    close(from[1]);
    other.to = fdopen(to[1], "w");
    other.from = fdopen(from[0], "r");
    return other;
}

/* Sends a line and returns the number that comes back; -1 when the process is gone. */
__attribute__((unused, format(printf, 2, 3))) static long long ask(struct other *other, const char *format, ...) {
    long long answer = -1;
    __builtin_va_list args;
    __builtin_va_start(args, format);
    vfprintf(other->to, format, args);
    __builtin_va_end(args);
    fputc('\n', other->to);
    fflush(other->to);
    if (fscanf(other->from, "%lld", &answer) != 1)
        answer = -1;
    return answer;
}

/* Ends it, by the given signal when that is not 0, and checks how it ended. */
__attribute__((unused)) static void end_other(struct other *other, int kill_signal) {
    int status = 0;
    if (kill_signal)
        kill(other->pid, kill_signal);
    fclose(other->to);
    CHECK_EQ(waitpid(other->pid, &status, 0), other->pid);
    CHECK(kill_signal ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0);
    fclose(other->from);
}

/* What the other process holds. */
static struct {
    aclrtDrvMemHandle handle; /* imported or made here */
    void *at;                 /* reserved range, or imported block */
    uint64_t token;           /* export of its own */
    char key[65];             /* the same as text */
} held;

/* What a test obeys beside the lines below; -3 for a line it does not know. */
static long long (*obey_more)(const char *line);

static long long obey_line(const char *line) {
    unsigned long long a = 0, b = 0;
    char text[200] = "";
    aclrtPtrAttributes attributes;
    if (sscanf(line, "device %llu", &a) == 1)
        return aclrtSetDevice((int32_t)a);
    if (sscanf(line, "import %llu %llu", &a, &b) == 2)
        return aclrtMemImportFromShareableHandle(a, (int32_t)b, &held.handle);
    if (sscanf(line, "second %llu %llu", &a, &b) == 2) {
        aclrtMemFabricHandle fabric = {{0}};
        memcpy(&fabric, &a, sizeof(a));
        return aclrtMemImportFromShareableHandleV2(&fabric, (aclrtMemSharedHandleType)b, 0, &held.handle);
    }
    if (sscanf(line, "map %llu", &a) == 1) {
        int code = aclrtReserveMemAddress(&held.at, a, 0, NULL, 1);
        return code ? code : aclrtMapMem(held.at, a, 0, held.handle, 0);
    }
    if (sscanf(line, "poke %llu %llu", &a, &b) == 2)
        return poke(plus(held.at, a), (uint8_t)b);
    if (sscanf(line, "fill %llu %llu", &a, &b) == 2)
        return aclrtMemset(held.at, a, (int32_t)b, a);
    if (sscanf(line, "peek %llu", &a) == 1)
        return peek(plus(held.at, a));
    if (sscanf(line, "touch %llu", &a) == 1)
        return *((const volatile uint8_t *)held.at + a);
    if (!strcmp(line, "unmap"))
        return aclrtUnmapMem(held.at);
    if (!strcmp(line, "release"))
        return aclrtReleaseMemAddress(held.at);
    if (!strcmp(line, "free"))
        return aclrtFreePhysical(held.handle);
    if (!strcmp(line, "again"))
        return aclrtMemExportToShareableHandle(held.handle, ACL_MEM_HANDLE_TYPE_NONE, 0, &held.token);
    if (sscanf(line, "open %llu %199s", &a, text) == 2)
        return aclrtIpcMemImportByKey(&held.at, text, a);
    if (sscanf(line, "close %199s", text) == 1)
        return aclrtIpcMemClose(text);
    if (!strcmp(line, "free block"))
        return aclrtFree(held.at);
    if (!strcmp(line, "pull")) {
        void *block = NULL;
        int code = aclrtMalloc(&block, 64, ACL_MEM_MALLOC_NORMAL_ONLY);
        if (!code)
            code = aclrtMemcpy(block, 64, held.at, 64, ACL_MEMCPY_DEVICE_TO_DEVICE);
        OK(aclrtFree(block));
        return code;
    }
    if (!strcmp(line, "where"))
        return aclrtPointerGetAttributes(held.at, &attributes) ? -2 : (long long)attributes.location.id;
    if (!strcmp(line, "page"))
        return aclrtPointerGetAttributes(held.at, &attributes) ? -2 : (long long)attributes.pageSize;
    if (!strcmp(line, "imports"))
        return (long long)live_now().imports;
    if (!strcmp(line, "used"))
        return (long long)(live_now().devices[0].pages_2m_used + live_now().devices[0].pages_4k_used);
    if (sscanf(line, "reset %llu", &a) == 1)
        return aclrtResetDeviceForce((int32_t)a);
    if (sscanf(line, "export %llu", &a) == 1) {
        held.handle = physical(0, a);
        return aclrtMemExportToShareableHandle(held.handle, ACL_MEM_HANDLE_TYPE_NONE, 1, &held.token);
    }
    if (!strcmp(line, "token"))
        return (long long)held.token;
    return obey_more ? obey_more(line) : -3;
}

/* The main of the other process. */
__attribute__((unused)) static int obey(void) {
    char line[400];
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = 0;
        printf("%lld\n", obey_line(line));
        fflush(stdout);
    }
    return check_failures > 0;
}

#endif
