/* The queue of a stream and its worker.
 *
 * The worker thread starts with the first task. It takes the tasks in order: waits until the first one is ready, runs
 * it, ends it. A task that waits (for an event, a notify, a value, a callback) is not run before it is ready, so the
 * worker has one place where it waits, and everybody can ask whether a stream will ever get on.
 *
 * Tasks are dropped by position: those up to stream->cut are ended without being run. A failure is kept in the stream
 * for the next synchronise; where the context stops on failure it is kept in the context, and the tasks of all its
 * streams are dropped.
 *
 * Thread safety: callers hold the table lock; a task gives it up while it moves bytes or calls the program. */
#include "stream_queue.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "acl/acl_base.h"
#include "context.h"
#include "device.h"
#include "exception_info.h"
#include "faults.h"
#include "service_thread.h"
#include "stream.h"
#include "table.h"
#include "task.h"

static _Thread_local uint32_t last_task;
static uint64_t tasks;    /* given and not through */
static unsigned watchers; /* threads in stream_watch */

void *task_new(size_t bytes, const struct task_kind *kind, enum function_id function) {
    struct task *task = calloc(1, bytes);
    if (!task) {
        error_raise(ERROR_MEMORY, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "the host has no memory for a task");
        return NULL;
    }
    task->kind = kind;
    task->function = function;
    task->thread = (uint32_t)syscall(SYS_gettid);
    return task;
}

static void end_task(struct task *task) {
    if (task->kind->end)
        task->kind->end(task);
    free(task);
}

void stream_wake(const struct stream *stream) {
    table_wake_for(&stream->first);
    if (stream->first && stream->first->awaits)
        table_wake_for(stream->first->awaits);
}

void stream_cut_until(struct stream *stream, uint64_t position, int code) {
    if (!stream->first)
        return;
    stream->cut = position > stream->cut ? position : stream->cut;
    stream->cut_code = code;
    stream->cuts++;
    stream_wake(stream);
}

void stream_cut(struct stream *stream) {
    stream_cut_until(stream, stream->submitted, ACL_ERROR_RT_STREAM_ABORT);
}

bool stream_is_own(const struct stream *stream) {
    return stream->served && pthread_equal(stream->worker, pthread_self());
}

uint64_t stream_tasks(void) {
    return tasks;
}

uint32_t stream_last_task(void) {
    return last_task;
}

void stream_watch(void) {
    watchers++;
    table_wait_for(&watchers, NEVER);
    watchers--;
}

static void tell_watchers(void) {
    if (watchers)
        table_wake_for(&watchers);
}

static bool is_cut(const struct stream *stream, const struct task *task) {
    return task->position <= stream->cut;
}

static bool is_ready(const struct task *task) {
    return !task->kind->ready || task->kind->ready(task);
}

bool stream_stuck(const struct stream *stream) {
    const struct task *task = stream->first;
    if (!task || is_cut(stream, task))
        return false;
    if (stream->held)
        return true;
    return !is_ready(task) && !(task->kind->coming && task->kind->coming(task));
}

/* Waits until the first task may run. A code when the wait lasted too long. */
static int wait_for_turn(const struct stream *stream, const struct task *task, moment deadline) {
    bool in_time = true;
    while (!is_cut(stream, task) && (stream->held || !is_ready(task))) {
        if (!in_time && !stream->held)
            return error_raise(ERROR_STATE, ACL_ERROR_RT_WAIT_TIMEOUT, "the wait was not over after %llu ms",
                               (unsigned long long)task->timeout_ms);
        tell_watchers();
        if (stream->held || !task->awaits)
            table_wait_for(&stream->first, NEVER);
        else
            in_time = table_wait_for(task->awaits, deadline);
    }
    return ACL_SUCCESS;
}

/* Lets a delay that was asked for pass. */
static void wait_delay(const struct stream *stream, const struct task *task) {
    uint64_t delay_us = fault_of_task_delay(task->function);
    moment end = delay_us ? table_now() + delay_us * 1000 : 0;
    while (end > table_now() && !is_cut(stream, task))
        table_wait_for(&stream->first, end);
}

/* Runs a task that is ready, or fails it where that was asked for. */
static int run_task(struct stream *stream, struct task *task) {
    int code = fault_of_task();
    if (code)
        return code;
    stream->moving = !task->kind->calls_user;
    code = task->kind->run(task);
    stream->moving = false;
    return code;
}

/* All streams of a context that stops on failure drop their tasks. */
static void stop_context(struct context *context, const struct stream *failed) {
    if (context->failure.code)
        return;
    context->failure = failed->failure;
    for (struct stream *stream = failed->device->streams; stream; stream = stream->next) {
        if (stream->context == context)
            stream_cut(stream);
    }
}

/* Keeps the first failure. */
static void note_failure(struct stream *stream, const struct task *task, const struct refusal *refusal) {
    if (!stream->failure.code) {
        stream->failure = (struct refusal){.code = refusal->code, .kind = refusal->kind};
        snprintf(stream->failure.text, sizeof(stream->failure.text), "task %llu of stream %d, %s: %.140s",
                 (unsigned long long)task->position, stream->id, entry_name(task->function), refusal->text);
    }
    if (stream->context && stream->context->stops)
        stop_context(stream->context, stream);
    exception_report(stream, task, refusal->code);
}

/* Waits for the turn of a task and runs it, unless it is cut; returns a code. */
static int take_through(struct stream *stream, struct task *task) {
    moment deadline = task->timeout_ms ? table_after_ms(task->timeout_ms) : NEVER;
    int code;
    do {
        code = wait_for_turn(stream, task, deadline);
        if (!code && !is_cut(stream, task))
            code = run_task(stream, task);
    } while (code == TASK_AGAIN);
    return code;
}

/* Takes the first task through. */
static void serve_first(struct stream *stream) {
    struct task *task = stream->first;
    struct refusal refusal = {0};
    wait_delay(stream, task);
    error_set_function(entry_name(task->function));
    error_keep(&refusal);
    int code = take_through(stream, task);
    error_keep(NULL);
    if (code)
        note_failure(stream, task, &refusal);
    stream->finished = task->position;
    stream->first = task->next;
    if (!stream->first)
        stream->last = NULL;
    end_task(task);
    tasks--;
    if (stream->finished >= stream->wake_at) {
        stream->wake_at = UINT64_MAX;
        table_wake_for(stream);
    }
    tell_watchers();
}

static void *serve(void *argument) {
    struct stream *stream = argument;
    table_lock();
    while (stream->first || !stream->ending) {
        if (stream->first)
            serve_first(stream);
        else
            table_wait_for(&stream->first, NEVER);
    }
    stream->served = false;
    table_wake_for(stream);
    tell_watchers();
    stream_leave(stream);
    table_unlock();
    return NULL;
}

/* False when the host has no thread for a worker. */
static bool start_worker(struct stream *stream) {
    stream->served = service_thread_start(&stream->worker, serve, stream);
    stream->users += stream->served;
    return stream->served;
}

/* Why a task cannot be given, as a code. */
static int check_stream(struct stream *stream) {
    const struct refusal *failure = &stream->context->failure;
    if (failure->code)
        return error_raise(failure->kind, failure->code, "stopped on failure: %.170s", failure->text);
    if (!stream->served && !start_worker(stream))
        return error_raise(ERROR_MEMORY, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "the host has no thread for stream %d",
                           stream->id);
    return ACL_SUCCESS;
}

int stream_submit(struct stream *stream, struct task *task) {
    int code = check_stream(stream);
    if (code) {
        end_task(task);
        return code;
    }
    task->position = ++stream->submitted;
    last_task = (uint32_t)task->position;
    if (stream->last)
        stream->last->next = task;
    else
        stream->first = task;
    stream->last = task;
    tasks++;
    if (stream->first == task)
        table_wake_for(&stream->first);
    return ACL_SUCCESS;
}

int stream_submit_copy(struct stream *stream, const struct task *wanted, size_t bytes, const struct task_kind *kind,
                       enum function_id function) {
    struct task *task = task_new(bytes, kind, function);
    if (!task)
        return ACL_ERROR_RT_RESOURCE_ALLOC_FAIL;
    memcpy(task + 1, wanted + 1, bytes - sizeof(*task));
    return stream_submit(stream, task);
}

int stream_give(const void *handle, struct task *wanted, size_t bytes, const struct task_kind *kind,
                enum function_id function, int (*check)(struct task *wanted)) {
    int code;
    table_lock();
    struct stream *stream = stream_need(handle, true, &code);
    if (stream && check)
        code = check(wanted);
    if (!code)
        code = stream_submit_copy(stream, wanted, bytes, kind, function);
    table_unlock();
    return code;
}
