/* Functions of the program that run in stream order; see callback.c. */
#ifndef HOSTACL_CALLBACK_H
#define HOSTACL_CALLBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "stream.h"
#include "table.h"

typedef void callback_fn(void *user);

/* The thread of that number takes the callbacks, or the host functions, of the stream. Returns a code. */
int callback_subscribe(enum reporter_kind kind, uint64_t thread, struct stream *stream);

/* It no longer does; calls of the stream that it did not take are dropped. Returns a code. */
int callback_unsubscribe(enum reporter_kind kind, uint64_t thread, struct stream *stream);

/* The stream ends: as above for both kinds, without asking which threads they are. */
void callback_leave(struct stream *stream);

/* Puts a callback into the stream for the thread that takes them; with block set, the stream waits until it returned.
 * Returns a code. */
int callback_launch(struct stream *stream, callback_fn *fn, void *user, bool block);

/* Waits for a call of that kind for this thread and makes it. Returns a code. Gives the table lock up. */
int callback_process(enum reporter_kind kind, moment deadline);

/* Puts a call into the stream that the thread that takes its host functions makes, or without one its worker; the
 * stream waits until it returned. Returns a code. */
int host_function_launch(struct stream *stream, callback_fn *fn, void *user);

#endif
