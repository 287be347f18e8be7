/* Tasks: the units of work of a stream; see stream_queue.c. */
#ifndef HOSTACL_TASK_H
#define HOSTACL_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "entry.h"

struct stream;
struct task;

/* What run returns when it found the task not ready after all. */
enum { TASK_AGAIN = -1 };

/* What a kind of task does. All of it is called with the table lock held, by the worker of the stream. */
struct task_kind {
    bool (*ready)(const struct task *task);  /* may it run now; null: always */
    bool (*coming)(const struct task *task); /* will it be ready without help from the program; null: who knows */
    int (*run)(struct task *task);           /* does it and returns a code or TASK_AGAIN; may give the lock up */
    void (*end)(struct task *task);          /* lets go of what the task holds, run or not; or null */
    bool calls_user;                         /* run calls a function of the program */
};

/* First member of every task. */
struct task {
    const struct task_kind *kind;
    struct task *next;         /* next in the queue */
    enum function_id function; /* call that made it */
    uint64_t position;         /* place in the stream, from 1 */
    uint32_t thread;           /* thread that made the call */
    const void *awaits;        /* object that is woken when the task may have become ready */
    uint64_t timeout_ms;       /* longest wait for that; 0: without limit */
};

/* A zeroed task of bytes bytes; null, with the refusal recorded, when the host is out of memory. */
void *task_new(size_t bytes, const struct task_kind *kind, enum function_id function);

#endif
