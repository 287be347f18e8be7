/* Streams: making, finding, synchronising and ending them.
 *
 * Every context has a default stream from the start; others are made in a context. All streams of a device share its
 * numbers: one is the runtime's own, as on the card, so the first stream a program creates is number 2. The worker of a
 * stream comes with its first task (stream_queue.c), so a stream that is not used costs no thread.
 *
 * A stream ends in this order: its handle dies, its tasks run or are dropped, its worker goes, it leaves the device.
 * Threads that wait for it keep the memory until they have looked. A tear-down runs tasks as far as they ever can: when
 * every stream left waits for something that no stream will bring about, the rest is dropped.
 *
 * Thread safety: callers hold the table lock; what waits gives it up meanwhile. */
#include "stream.h"

#include <stdlib.h>

#include "acl/acl_base.h"
#include "acl/acl_rt.h"
#include "bitmap.h"
#include "callback.h"
#include "context.h"
#include "device.h"
#include "handles.h"
#include "runtime.h"
#include "stream_queue.h"

#define RUNTIMES_OWN_ID 1
#define NO_SYNC_FLAGS (ACL_STREAM_PERSISTENT | ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY)

static uint64_t explicit_streams;

/* The lowest number that is free on the device; STREAM_LIMIT when there is none. */
static uint64_t free_id(const struct device *device) {
    uint64_t id = bitmap_find(device->stream_ids, 0, STREAM_LIMIT, false);
    return id == RUNTIMES_OWN_ID ? bitmap_find(device->stream_ids, id + 1, STREAM_LIMIT, false) : id;
}

static int make(struct context *context, struct stream **made) {
    struct device *device = context->device;
    uint64_t id = free_id(device);
    if (id == STREAM_LIMIT)
        return error_raise(ERROR_MEMORY, ACL_ERROR_RT_NO_STREAM_RESOURCE,
                           "device %d has all of its %d streams in use, the runtime's own included", device->id,
                           STREAM_LIMIT);
    struct stream *stream = calloc(1, sizeof(*stream));
    void *handle = stream ? handle_new(HANDLE_STREAM, stream) : NULL;
    if (!handle) {
        free(stream);
        return error_raise(ERROR_MEMORY, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "the host has no memory for a stream");
    }
    *stream = (struct stream){.handle = handle, .context = context, .device = device, .next = device->streams};
    stream->id = (int32_t)id;
    stream->held = runtime_config()->hold;
    stream->wake_at = UINT64_MAX;
    device->streams = stream;
    bitmap_fill(device->stream_ids, id, 1, true);
    *made = stream;
    return ACL_SUCCESS;
}

int stream_create(struct context *context, uint32_t priority, uint32_t flags, struct stream **made) {
    int code = make(context, made);
    if (code)
        return code;
    (*made)->priority = priority < STREAM_PRIORITY_LOWEST ? priority : STREAM_PRIORITY_LOWEST;
    (*made)->flags = flags;
    explicit_streams++;
    return ACL_SUCCESS;
}

int stream_create_default(struct context *context) {
    int code = make(context, &context->default_stream);
    if (!code)
        context->default_stream->is_default = true;
    return code;
}

struct stream *stream_need(const void *handle, bool own_context, int *code) {
    const struct context *context = context_need();
    *code = ACL_ERROR_RT_CONTEXT_NULL;
    if (!context)
        return NULL;
    struct stream *stream = handle ? handle_object(HANDLE_STREAM, handle) : context->default_stream;
    if (!stream) {
        *code = handle ? error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_INVALID_HANDLE, "stream %p is not alive", handle)
                       : error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_INVALID_HANDLE,
                                     "the default stream of the current context was destroyed");
        return NULL;
    }
    if (own_context && stream->context != context) {
        *code = error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_STREAM_CONTEXT,
                            "stream %p is of another context than the current one", stream->handle);
        return NULL;
    }
    *code = ACL_SUCCESS;
    return stream;
}

void stream_leave(struct stream *stream) {
    if (--stream->users == 0 && !stream->context)
        free(stream);
}

bool stream_idle(const struct stream *stream) {
    return !stream->first;
}

int stream_check_wait(const struct stream *stream) {
    if (!stream_is_own(stream))
        return ACL_SUCCESS;
    return error_raise(ERROR_STATE, ACL_ERROR_RT_PARAM_INVALID,
                       "a function that runs on stream %d cannot wait for that stream", stream->id);
}

/* The failure a stream has to tell, or one that stopped its context; it is told once, the latter every time. */
static int take_failure(struct stream *stream) {
    struct refusal failure = stream->failure;
    stream->failure.code = ACL_SUCCESS;
    if (!failure.code && stream->context)
        failure = stream->context->failure;
    return failure.code ? error_raise(failure.kind, failure.code, "%s", failure.text) : ACL_SUCCESS;
}

/* Waits until the tasks up to target are through. */
static int wait_until(struct stream *stream, uint64_t target, moment deadline) {
    uint64_t cuts = stream->cuts;
    bool in_time = true;
    while (stream->finished < target && in_time) {
        if (target < stream->wake_at)
            stream->wake_at = target;
        in_time = table_wait_for(stream, deadline);
    }
    if (stream->finished < target)
        return error_raise(ERROR_STATE, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, "stream %d is not through with task %llu",
                           stream->id, (unsigned long long)target);
    int code = take_failure(stream);
    if (!code && stream->cuts != cuts)
        code = error_raise(ERROR_STATE, stream->cut_code, "tasks of stream %d were dropped", stream->id);
    return code;
}

int stream_wait(struct stream *stream, moment deadline) {
    int code = stream_check_wait(stream);
    if (code)
        return code;
    stream->users++;
    code = wait_until(stream, stream->submitted, deadline);
    stream_leave(stream);
    return code;
}

int stream_synchronize(struct stream *stream, moment deadline) {
    return stream->flags & NO_SYNC_FLAGS ? ACL_SUCCESS : stream_wait(stream, deadline);
}

int streams_synchronize(const struct context *context, moment deadline) {
    struct stream *streams[STREAM_LIMIT];
    unsigned count = 0;
    int code = ACL_SUCCESS;
    for (struct stream *stream = context->device->streams; stream; stream = stream->next) {
        if (stream->context == context && !stream->ending) {
            stream->users++;
            streams[count++] = stream;
        }
    }
    while (count-- > 0) {
        if (!code)
            code = stream_synchronize(streams[count], deadline);
        stream_leave(streams[count]);
    }
    return code;
}

int streams_synchronize_current(void) {
    table_lock();
    const struct context *context = context_need();
    int code = context ? streams_synchronize(context, NEVER) : ACL_ERROR_RT_CONTEXT_NULL;
    table_unlock();
    return code;
}

/* The handle dies: nobody finds the stream any more. */
static void end_handle(struct stream *stream) {
    if (!stream->handle)
        return;
    explicit_streams -= !stream->is_default;
    handle_end(stream->handle);
    stream->handle = NULL;
    stream->ending = true;
    stream->held = false;
}

/* Takes a stream without tasks off its device; it is freed when the last one leaves it. */
static void leave_device(struct stream *stream) {
    struct stream **link = &stream->device->streams;
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    bitmap_fill(stream->device->stream_ids, (uint64_t)stream->id, 1, false);
    callback_leave(stream);
    stream->context = NULL;
}

int stream_destroy(struct stream *stream, bool force) {
    bool own = stream_is_own(stream);
    if (own && !force)
        return stream_check_wait(stream);
    if (stream->is_default)
        stream->context->default_stream = NULL;
    stream->users++;
    end_handle(stream);
    if (force)
        stream_cut(stream);
    stream_wake(stream);
    while (stream->served && !own)
        table_wait_for(stream, NEVER);
    if (stream->context)
        leave_device(stream);
    stream_leave(stream);
    return ACL_SUCCESS;
}

/* Waits until tasks that were cut are through; false when the time is over. */
static bool wait_for_cut(struct stream *stream, uint64_t target, moment deadline) {
    bool in_time = true;
    while (stream->finished < target && in_time && !stream_is_own(stream)) {
        if (target < stream->wake_at)
            stream->wake_at = target;
        in_time = table_wait_for(stream, deadline);
    }
    return in_time;
}

void stream_abort(struct stream *stream) {
    stream->users++;
    stream_cut(stream);
    wait_for_cut(stream, stream->submitted, NEVER);
    stream->failure.code = ACL_SUCCESS;
    stream_leave(stream);
}

void stream_stop(struct stream *stream) {
    if (!stream->first || stream->held)
        return;
    uint64_t position = stream->finished + 1;
    stream->users++;
    stream_cut_until(stream, position, ACL_ERROR_RT_STREAM_ABORT);
    wait_for_cut(stream, position, NEVER);
    stream_leave(stream);
}

int streams_abort(struct device *device, moment deadline) {
    struct stream *streams[STREAM_LIMIT];
    uint64_t targets[STREAM_LIMIT];
    unsigned count = 0;
    bool in_time = true;
    for (struct stream *stream = device->streams; stream; stream = stream->next) {
        stream->users++;
        targets[count] = stream->submitted;
        streams[count++] = stream;
        stream_cut_until(stream, stream->submitted, ACL_ERROR_RT_DEVICE_TASK_ABORT);
    }
    while (count-- > 0) {
        in_time = wait_for_cut(streams[count], targets[count], deadline) && in_time;
        streams[count]->failure.code = ACL_SUCCESS;
        stream_leave(streams[count]);
    }
    return in_time ? ACL_SUCCESS
                   : error_raise(ERROR_STATE, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, "a task under way did not end in time");
}

/* Whether a tear-down has to wait for the stream. */
static bool concerns(const struct stream *stream, const struct context *context) {
    return (!context || stream->context == context) && stream->served && !stream_is_own(stream);
}

/* Drops the tasks of streams that will never get on; false while there is one that does, or none left. */
static bool cut_when_stuck(struct device *device, const struct context *context) {
    bool any = false;
    for (struct stream *stream = device->streams; stream; stream = stream->next) {
        if (concerns(stream, context)) {
            if (!stream_stuck(stream))
                return false;
            any = true;
        }
    }
    for (struct stream *stream = device->streams; any && stream; stream = stream->next) {
        if (concerns(stream, context))
            stream_cut(stream);
    }
    return any;
}

static bool any_served(const struct device *device, const struct context *context) {
    const struct stream *stream = device->streams;
    while (stream && !concerns(stream, context))
        stream = stream->next;
    return stream;
}

void streams_end(struct device *device, const struct context *context, bool force) {
    for (struct stream *stream = device->streams; stream; stream = stream->next) {
        if (context && stream->context != context)
            continue;
        end_handle(stream);
        if (force || stream_is_own(stream))
            stream_cut(stream);
        stream_wake(stream);
    }
    while (any_served(device, context)) {
        cut_when_stuck(device, context);
        if (any_served(device, context))
            stream_watch();
    }
    for (struct stream *stream = device->streams, *next; stream; stream = next) {
        next = stream->next;
        if (context && stream->context != context)
            continue;
        stream->users++;
        leave_device(stream);
        stream_leave(stream);
    }
}

uint64_t streams_count(void) {
    return explicit_streams;
}
