/* The queue of a stream and its worker; see stream_queue.c. */
#ifndef HOSTACL_STREAM_QUEUE_H
#define HOSTACL_STREAM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "entry.h"

struct stream;
struct task;
struct task_kind;

/* Gives a task to a stream, which ends it in any case. Returns a code. */
int stream_submit(struct stream *stream, struct task *task);

/* Gives a copy of a task of so many bytes, which holds nothing, to a stream. Returns a code. */
int stream_submit_copy(struct stream *stream, const struct task *wanted, size_t bytes, const struct task_kind *kind,
                       enum function_id function);

/* The same for the handle of a stream, unless check refuses the task, into which it may write. Returns a code. Takes
 * the table lock. */
int stream_give(const void *handle, struct task *wanted, size_t bytes, const struct task_kind *kind,
                enum function_id function, int (*check)(struct task *wanted));

/* Lets the worker look again. */
void stream_wake(const struct stream *stream);

/* Drops every task given so far; one that moves bytes or is in a function of the program ends by itself. */
void stream_cut(struct stream *stream);

/* The same for tasks up to a position; who waits for them gets that code. */
void stream_cut_until(struct stream *stream, uint64_t position, int code);

/* Whether the first task waits for something that no stream at work will bring about. */
bool stream_stuck(const struct stream *stream);

/* Whether this thread is the worker of the stream. */
bool stream_is_own(const struct stream *stream);

/* Waits until some worker has ended a task or begins to wait. */
void stream_watch(void);

/* Tasks given and not yet through, of all streams. */
uint64_t stream_tasks(void);

/* Number of the last task this thread gave to a stream; 0 before the first. */
uint32_t stream_last_task(void);

#endif
