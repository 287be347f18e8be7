/* What every exported function does first: count, injected failure, fork and start-up checks; see entry.c. */
#ifndef HOSTACL_ENTRY_H
#define HOSTACL_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

enum function_id {
#define HOSTACL_FUNCTION(name) FUNCTION_##name,
#include "functions.def"
#undef HOSTACL_FUNCTION
    FUNCTION_COUNT
};

/* 0, or the code the call returns before it has any effect. */
int entry_begin(enum function_id function);

/* Number of the function of that name; FUNCTION_COUNT when there is none. */
enum function_id entry_find(const char *name);

/* Calls since the start or the last reset. */
uint64_t entry_calls(enum function_id function);

/* The nth call from now returns code; nth 0 clears. */
void entry_fail(enum function_id function, uint64_t nth, int code);

/* Counters at 0, no injected failure. */
void entry_reset(void);

/* First statement of an exported function that returns a code. */
#define ENTER(name)                                                                                                    \
    do {                                                                                                               \
        int enter_code = entry_begin(FUNCTION_##name);                                                                 \
        if (enter_code)                                                                                                \
            return enter_code;                                                                                         \
    } while (0)

#endif
