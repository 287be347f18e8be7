/* The common entry hook. It starts the runtime at the first call, refuses a process that cannot be served, counts the
 * call, waits where a delay was asked for and returns an injected failure. A failure is armed as "call number k returns
 * this code", so it fires once and needs no lock.
 *
 * Thread safety: atomics only. Arming a function on one thread while another calls it is safe; which of them is counted
 * first is then open. */
#include "entry.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "acl/acl_base.h"
#include "runtime.h"

static struct {
    const char *name;         /* exported name */
    _Atomic uint64_t calls;   /* calls so far */
    _Atomic uint64_t fail_at; /* number of the call that fails; 0: none */
    _Atomic int fail_code;    /* what it returns */
    _Atomic uint64_t delay;   /* microseconds each call waits first */
} functions[FUNCTION_COUNT] = {
#define HOSTACL_FUNCTION(function) {.name = #function},
#include "functions.def"
#undef HOSTACL_FUNCTION
};

enum error_kind entry_error_kind(int code) {
    if (code / 1000 % 100 == 45)
        return ERROR_MODEL;
    if (code >= 100000 && code < 107000)
        return ERROR_VALUE;
    if (code == ACL_ERROR_RT_MEMORY_ALLOCATION)
        return ERROR_MEMORY;
    return code >= 500000 ? ERROR_DRIVER : ERROR_ARGUMENT;
}

static void wait_for(uint64_t microseconds) {
    struct timespec left = {.tv_sec = (time_t)(microseconds / 1000000),
                            .tv_nsec = (long)(microseconds % 1000000) * 1000};
    while (nanosleep(&left, &left))
        continue;
}

int entry_begin(enum function_id function) {
    runtime_start();
    error_set_function(functions[function].name);
    uint64_t call = atomic_fetch_add_explicit(&functions[function].calls, 1, memory_order_relaxed) + 1;
    const char *blocked = runtime_blocked();
    if (blocked)
        return error_raise(ERROR_STATE, ACL_ERROR_RT_DEV_SETUP_ERROR, "%s", blocked);
    uint64_t delay = atomic_load_explicit(&functions[function].delay, memory_order_relaxed);
    if (delay)
        wait_for(delay);
    if (call == atomic_load(&functions[function].fail_at)) {
        int code = atomic_load(&functions[function].fail_code);
        return error_raise(entry_error_kind(code), code, "failure injected into call %llu", (unsigned long long)call);
    }
    return ACL_SUCCESS;
}

const char *entry_name(enum function_id function) {
    return functions[function].name;
}

enum function_id entry_find(const char *name) {
    enum function_id function = 0;
    while (function < FUNCTION_COUNT && strcmp(functions[function].name, name))
        function++;
    return function;
}

uint64_t entry_calls(enum function_id function) {
    return atomic_load(&functions[function].calls);
}

void entry_fail(enum function_id function, uint64_t nth, int code) {
    atomic_store(&functions[function].fail_code, code);
    atomic_store(&functions[function].fail_at, nth ? atomic_load(&functions[function].calls) + nth : 0);
}

bool entry_fails(enum function_id function) {
    return atomic_load(&functions[function].fail_at) > atomic_load(&functions[function].calls);
}

void entry_delay(enum function_id function, uint64_t microseconds) {
    atomic_store(&functions[function].delay, microseconds);
}

void entry_reset(void) {
    for (enum function_id function = 0; function < FUNCTION_COUNT; function++) {
        atomic_store(&functions[function].fail_at, 0);
        atomic_store(&functions[function].delay, 0);
        atomic_store(&functions[function].calls, 0);
    }
}
