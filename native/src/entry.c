/* The common entry hook. It starts the runtime at the first call, refuses a process that cannot be served, counts the
 * call and returns an injected failure. A failure is armed as "call number k returns this code", so it fires once and
 * needs no lock.
 *
 * Thread safety: atomics only. Arming a function on one thread while another calls it is safe; which of them is counted
 * first is then open. */
#include "entry.h"

#include <stdatomic.h>
#include <string.h>

#include "acl/acl_base.h"
#include "errors.h"
#include "runtime.h"

static struct {
    const char *name;         /* exported name */
    _Atomic uint64_t calls;   /* calls so far */
    _Atomic uint64_t fail_at; /* number of the call that fails; 0: none */
    _Atomic int fail_code;    /* what it returns */
} functions[FUNCTION_COUNT] = {
#define HOSTACL_FUNCTION(function) {.name = #function},
#include "functions.def"
#undef HOSTACL_FUNCTION
};

static enum error_kind kind_of(int code) {
    if (code >= 100000 && code < 107000)
        return ERROR_VALUE;
    if (code == ACL_ERROR_RT_MEMORY_ALLOCATION)
        return ERROR_MEMORY;
    return code >= 500000 ? ERROR_DRIVER : ERROR_ARGUMENT;
}

int entry_begin(enum function_id function) {
    runtime_start();
    error_set_function(functions[function].name);
    uint64_t call = atomic_fetch_add_explicit(&functions[function].calls, 1, memory_order_relaxed) + 1;
    const char *blocked = runtime_blocked();
    if (blocked)
        return error_raise(ERROR_STATE, ACL_ERROR_RT_DEV_SETUP_ERROR, "%s", blocked);
    if (call == atomic_load(&functions[function].fail_at)) {
        int code = atomic_load(&functions[function].fail_code);
        return error_raise(kind_of(code), code, "failure injected into call %llu", (unsigned long long)call);
    }
    return ACL_SUCCESS;
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

void entry_reset(void) {
    for (enum function_id function = 0; function < FUNCTION_COUNT; function++) {
        atomic_store(&functions[function].fail_at, 0);
        atomic_store(&functions[function].calls, 0);
    }
}
