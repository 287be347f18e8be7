/* Handles given to callers: tokens that are never used twice; see handles.c. */
#ifndef HOSTACL_HANDLES_H
#define HOSTACL_HANDLES_H

#include <stddef.h>

struct stack;

enum handle_kind {
    HANDLE_NONE,
    HANDLE_CONTEXT,
    HANDLE_PHYSICAL,
    HANDLE_STREAM,
    HANDLE_EVENT,
    HANDLE_NOTIFY,
    HANDLE_DATA_BUFFER,
    HANDLE_ALLOCATOR,
    HANDLE_POOL,
    HANDLE_MODEL_CONFIG,
    HANDLE_MODEL_DESC
};

/* A new handle for the object; null when the table cannot grow. */
void *handle_new(enum handle_kind kind, void *object);

/* The object behind a live handle of that kind, or null. Any value may be asked. */
void *handle_object(enum handle_kind kind, const void *handle);

/* Ends a live handle; its value is never live again. */
void handle_end(const void *handle);

/* The calls that made a live handle, or null. */
const struct stack *handle_stack(const void *handle);

/* The next live handle of a kind in the table after *position, or null; *position starts at 0. */
void *handle_next(enum handle_kind kind, size_t *position);

#endif
