/* Python functions that the runtime calls on threads of its own.
 *
 * The runtime gets the address of one of the functions below and, where it passes an argument on, a key; the Python
 * side keeps its functions by their keys, so a key that it does not know any more is harmless. The calls of acl_run_…
 * take the interpreter lock and catch every exception.
 *
 * A thread that asks for the interpreter lock while the interpreter ends is lost inside the runtime. So the process
 * ends in two steps: acl_end_host_functions makes later calls return at once, and waits for those that run, as the
 * interpreter waits for its own threads. The count goes up before the mark is read, so no call slips through.
 *
 * Thread safety: what the runtime calls, on any thread; acl_end_host_functions and acl_forget_host_functions on one. */
#ifndef ACL_SHIM_HOST_FUNCTION_H
#define ACL_SHIM_HOST_FUNCTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "acl/acl.h"

static atomic_long running_host_functions;
static atomic_bool ended_host_functions;

static void acl_run_host_function(uintptr_t key);
static void acl_run_exception_function(uintptr_t info);
static void acl_run_stream_state_function(uintptr_t stream, int state, uintptr_t key);

/* Calls into Python unless that has ended. */
#define RUN(function, ...)                                                                                             \
    do {                                                                                                               \
        atomic_fetch_add(&running_host_functions, 1);                                                                  \
        if (!atomic_load(&ended_host_functions))                                                                       \
            function(__VA_ARGS__);                                                                                     \
        atomic_fetch_sub(&running_host_functions, 1);                                                                  \
    } while (0)

static void host_function(void *key) {
    RUN(acl_run_host_function, (uintptr_t)key);
}

static void exception_function(aclrtExceptionInfo *info) {
    RUN(acl_run_exception_function, (uintptr_t)info);
}

static void stream_state_function(aclrtStream stream, aclrtStreamState state, void *key) {
    RUN(acl_run_stream_state_function, (uintptr_t)stream, (int)state, (uintptr_t)key);
}

#undef RUN

static uintptr_t acl_host_function(void) {
    return (uintptr_t)host_function;
}

static uintptr_t acl_exception_function(void) {
    return (uintptr_t)exception_function;
}

static uintptr_t acl_stream_state_function(void) {
    return (uintptr_t)stream_state_function;
}

static void acl_end_host_functions(void) {
    const struct timespec pause = {.tv_nsec = 1000000};
    atomic_store(&ended_host_functions, true);
    while (atomic_load(&running_host_functions) > 0)
        nanosleep(&pause, NULL);
}

static void acl_forget_host_functions(void) {
    atomic_store(&running_host_functions, 0);
}

#endif
