/* The calls that made an object: the exported function and the return addresses of its callers. Return addresses are
 * taken when it is made and turned into names only when somebody looks: names cost a search, and the loader's lock,
 * which may be held by code that calls into this library.
 *
 * Thread safety: stack_take needs the table lock; the rest needs none. */
#include "stack.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"
#include "runtime.h"

#define DEEPEST 32

struct stack {
    const char *function; /* exported function */
    size_t count;         /* frames */
    void *frames[];       /* return addresses, innermost first */
};

void stack_prepare(void) {
    void *frame;
    backtrace(&frame, 1); /* the first call loads a library */
}

struct stack *stack_take(void) {
    void *frames[DEEPEST];
    if (!runtime_config()->stacks)
        return NULL;
    int count = backtrace(frames, DEEPEST);
    struct stack *stack = malloc(sizeof(*stack) + (size_t)count * sizeof(void *));
    if (!stack)
        return NULL;
    stack->function = error_function();
    stack->count = (size_t)count;
    memcpy(stack->frames, frames, (size_t)count * sizeof(void *));
    return stack;
}

void stack_free(struct stack *stack) {
    free(stack);
}

const char *stack_function(const struct stack *stack) {
    return stack->function;
}

size_t stack_frames(const struct stack *stack, void *const **frames) {
    *frames = stack->frames;
    return stack->count;
}

bool stack_describe(void *frame, char *text, size_t len) {
    Dl_info info, own;
    /* The return address is behind the call, which may be the last instruction of its function. */
    if (!dladdr((char *)frame - 1, &info) || !info.dli_fname) {
        snprintf(text, len, "%p", frame);
        return true;
    }
    if (dladdr((void *)(uintptr_t)stack_take, &own) && own.dli_fbase == info.dli_fbase)
        return false;
    const char *slash = strrchr(info.dli_fname, '/');
    const char *file = slash ? slash + 1 : info.dli_fname;
    if (info.dli_sname)
        snprintf(text, len, "%s+0x%zx (%s)", info.dli_sname, (size_t)((char *)frame - (char *)info.dli_saddr), file);
    else
        snprintf(text, len, "%s+0x%zx", file, (size_t)((char *)frame - (char *)info.dli_fbase));
    return true;
}
