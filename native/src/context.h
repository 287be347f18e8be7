/* Contexts and the current context of a thread; see context.c. */
#ifndef HOSTACL_CONTEXT_H
#define HOSTACL_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "errors.h"

struct device;
struct stream;

struct context {
    struct device *device;         /* where it works */
    bool explicit_one;             /* made by aclrtCreateContext, not by setting the device */
    bool stops;                    /* a task that fails stops all its streams */
    struct refusal failure;        /* what stopped them */
    struct stream *default_stream; /* null when the program destroyed it */
    struct context *next;          /* contexts that end together */
};

/* The current context of the thread, or null. */
struct context *context_current(void);

/* The same, after the default device of aclInit was set where there is none and one was configured. When there is still
 * none the refusal is recorded; the call returns 107002. */
struct context *context_need(void);

/* Handle of the current context; only after one of the two above found it. */
void *context_current_handle(void);

/* Makes the default context of a device current, opening the device and raising its count. Returns a code. */
int context_set_device(struct device *device);

/* Makes an explicit context and makes it current. Returns a code. */
int context_create(struct device *device, void **handle);

/* Destroys an explicit context after the tasks of its streams. Returns a code. */
int context_destroy(const void *handle);

/* Makes a live context current. False when the handle is no live context. */
bool context_make_current(void *handle);

/* Ends all contexts of a device, on whatever thread they are current, with their streams and events. Without force the
 * tasks of the streams run first. */
void context_end_device(struct device *device, bool force);

/* Number of explicit contexts. */
uint64_t context_count(void);

#endif
