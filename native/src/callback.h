/* Functions of the program that run in stream order; see callback.c. */
#ifndef HOSTACL_CALLBACK_H
#define HOSTACL_CALLBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "table.h"

struct stream;

typedef void callback_fn(void *user);

/* The thread of that number takes the callbacks of the stream. Returns a code. */
int callback_subscribe(uint64_t thread, struct stream *stream);

/* It no longer does; callbacks of the stream that it did not take are dropped. Returns a code. */
int callback_unsubscribe(uint64_t thread, struct stream *stream);

/* The stream ends: as above, without asking which thread it is. */
void callback_leave(struct stream *stream);

/* Puts a callback into the stream for the thread that takes them; with block set, the stream waits until it returned.
 * Returns a code. */
int callback_launch(struct stream *stream, callback_fn *fn, void *user, bool block);

/* Waits for a callback for this thread and calls it. Returns a code. Gives the table lock up. */
int callback_process(moment deadline);

/* Puts a call into the stream that its worker makes; the stream waits until it returned. Returns a code. */
int host_function_launch(struct stream *stream, callback_fn *fn, void *user);

#endif
