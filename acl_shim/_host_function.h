/* Python functions that the runtime calls on threads of its own.
 *
 * The runtime gets the address of host_function and a key; the Python side keeps the functions by their keys, so a key
 * that it does not know any more is harmless. The call of acl_run_host_function takes the interpreter lock and catches
 * every exception.
 *
 * A thread that asks for the interpreter lock while the interpreter ends is lost inside the runtime. So the process
 * ends in two steps: acl_end_host_functions makes later calls return at once, and waits for those that run, as the
 * interpreter waits for its own threads. The count goes up before the mark is read, so no call slips through.
 *
 * Thread safety: host_function on any thread; the others on one thread. */
#ifndef ACL_SHIM_HOST_FUNCTION_H
#define ACL_SHIM_HOST_FUNCTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static atomic_long running_host_functions;
static atomic_bool ended_host_functions;

static void acl_run_host_function(uintptr_t key);

static void host_function(void *key) {
    atomic_fetch_add(&running_host_functions, 1);
    if (!atomic_load(&ended_host_functions))
        acl_run_host_function((uintptr_t)key);
    atomic_fetch_sub(&running_host_functions, 1);
}

static uintptr_t acl_host_function(void) {
    return (uintptr_t)host_function;
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
