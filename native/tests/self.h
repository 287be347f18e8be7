/* Runs this test program again with variables of the environment and a mode as argument, and reads its stderr. */
#ifndef HOSTACL_TESTS_SELF_H
#define HOSTACL_TESTS_SELF_H

#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* variables ends with null. Returns the exit code, -1 for another end; stderr goes to err. */
__attribute__((unused)) static int run_self(char *const *variables, const char *mode, char *err, size_t room) {
    int ends[2], status = 0;
    size_t used = 0;
    if (pipe(ends))
        return -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        char *const argv[] = {"self", (char *)mode, NULL};
        dup2(ends[1], 2);
        execve("/proc/self/exe", argv, variables);
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

#endif
