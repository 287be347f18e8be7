/* What every exported function does first: trace, count, delay, injected failure, fork and start-up checks; see
 * entry.c.
 */
#ifndef HOSTACL_ENTRY_H
#define HOSTACL_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "errors.h"
#include "trace.h"

enum function_id {
#define HOSTACL_FUNCTION(name) FUNCTION_##name,
#include "functions.def"
#undef HOSTACL_FUNCTION
    FUNCTION_COUNT
};

/* 0, or the code the call returns before it has any effect. */
int entry_begin(enum function_id function);

/* Exported name of the function. */
const char *entry_name(enum function_id function);
/* Kind of refusal an injected code stands for. */
enum error_kind entry_error_kind(int code);

/* Number of the function of that name; FUNCTION_COUNT when there is none. */
enum function_id entry_find(const char *name);

/* Calls since the start or the last reset. */
uint64_t entry_calls(enum function_id function);

/* The nth call from now returns code; nth 0 clears. */
void entry_fail(enum function_id function, uint64_t nth, int code);

/* Whether a failure of the function is planned that has not happened yet. */
bool entry_fails(enum function_id function);

/* Every call waits so long before it does anything; 0 clears. */
void entry_delay(enum function_id function, uint64_t microseconds);

/* Counters at 0, no injected failure, no delay. */
void entry_reset(void);

#define ENTER_IS_TRACED (__builtin_expect(atomic_load_explicit(&trace_on, memory_order_relaxed), 0) && trace_take())

/* A traced call runs the function again from inside itself, between the two halves of its trace. */
#define ENTER_HOOK(otherwise, name, arguments, ...)                                                                    \
    do {                                                                                                               \
        if (ENTER_IS_TRACED) {                                                                                         \
            const struct trace_value enter_values[] = {TRACE_VALUES(__VA_ARGS__)};                                     \
            struct trace_call enter_call = {.function = #name,                                                         \
                                            .names = arguments,                                                        \
                                            .values = enter_values,                                                    \
                                            .count = sizeof(enter_values) / sizeof(struct trace_value)};               \
            trace_begin(&enter_call);                                                                                  \
            trace_mark();                                                                                              \
            __typeof__(name(__VA_ARGS__)) enter_result = name(__VA_ARGS__);                                            \
            trace_end(&enter_call, TRACE_VALUE(enter_result));                                                         \
            return enter_result;                                                                                       \
        }                                                                                                              \
        int enter_code = entry_begin(FUNCTION_##name);                                                                 \
        if (enter_code)                                                                                                \
            return otherwise;                                                                                          \
    } while (0)

/* First statement of an exported function: its name, then its parameters in their order, those pointers that are only
 * read as IN(pointer). A refused call returns its code, with ENTER_OR the value given for that. */
#define ENTER(name, ...) ENTER_HOOK(enter_code, name, #__VA_ARGS__, __VA_ARGS__)
#define ENTER_OR(otherwise, name, ...) ENTER_HOOK(otherwise, name, #__VA_ARGS__, __VA_ARGS__)

#endif
