/* Events and their recordings.
 *
 * To record is to put a task into a stream; the recording is done when that task runs. A wait binds to the latest
 * recording at the time of the call, so recording the event again changes nothing for it, and an event that was never
 * recorded, or whose recording is done, keeps nobody waiting. When the task is dropped the recording never comes: who
 * waits for it fails with the code for that and does not hang.
 *
 * An event made for several processes has a mark (mark.h), which counts the recordings of all of them; a recording is
 * then known by its number there, and the one kept here is renewed when a look at the mark shows a later one.
 *
 * A reset is a task without effect on recordings, because nobody waits for anything but one recording; it is there for
 * its place in the stream.
 *
 * Thread safety: callers hold the table lock; event_synchronize gives it up while it waits. */
#include "event.h"

#include <stdlib.h>
#include <string.h>

#include "acl/acl_base.h"
#include "acl/acl_rt.h"
#include "context.h"
#include "errors.h"
#include "handles.h"
#include "mark.h"
#include "record.h"
#include "stream_queue.h"
#include "task.h"

/* What a plain event can do. */
#define PLAIN_FLAGS (ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE)

struct wait_task {
    struct task task;
    struct event *event;   /* counts its waits */
    struct record *record; /* what it waits for */
};

static uint64_t live_events;
static uint64_t wait_limit_ms;

void event_set_wait_limit(uint64_t timeout_ms) {
    wait_limit_ms = timeout_ms;
}

uint64_t events_count(void) {
    return live_events;
}

static int no_host_memory(void) {
    return error_raise(ERROR_MEMORY, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "the host has no memory for an event");
}

static void leave_event(struct event *event) {
    if (--event->users)
        return;
    if (event->mark)
        mark_leave(event->mark);
    free(event);
}

/* The latest recording of an event goes into event->latest; false when the host is out of memory. */
static bool look_up(struct event *event) {
    uint64_t number = event->mark ? mark_latest(event->mark) : 0;
    if (!number || (event->latest && event->latest->number >= number))
        return true;
    struct record *record = record_of_number(event->mark, number);
    if (!record)
        return false;
    record_leave(event->latest);
    event->latest = record;
    return true;
}

/* Makes an event over a mark, or a local one; returns a code. */
static int make_event(enum event_kind kind, uint32_t flags, struct mark *mark, void **handle) {
    const struct context *context = context_need();
    if (!context)
        return ACL_ERROR_RT_CONTEXT_NULL;
    struct event *event = calloc(1, sizeof(*event));
    void *made = event ? handle_new(HANDLE_EVENT, event) : NULL;
    if (!made) {
        free(event);
        return no_host_memory();
    }
    *event = (struct event){.kind = kind, .handle = made, .context = context, .mark = mark, .users = 1};
    event->flags = kind == EVENT_PLAIN ? PLAIN_FLAGS : flags;
    live_events++;
    *handle = made;
    return ACL_SUCCESS;
}

int event_create(enum event_kind kind, uint32_t flags, void **handle) {
    if (!(flags & ACL_EVENT_IPC))
        return make_event(kind, flags, NULL, handle);
    struct mark *mark = context_need() ? mark_make(MARK_EVENT) : NULL;
    if (!mark)
        return context_current() ? no_host_memory() : ACL_ERROR_RT_CONTEXT_NULL;
    int code = make_event(kind, flags, mark, handle);
    if (code)
        mark_leave(mark);
    return code;
}

int event_export(const struct event *event, aclrtIpcEventHandle *out) {
    char key[MARK_KEY_BYTES] = "";
    if (!event->mark)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "event %p was made without ACL_EVENT_IPC",
                           event->handle);
    if (!mark_export(event->mark, false, key))
        return no_host_memory();
    memcpy(out->reserved, key, sizeof(key));
    return ACL_SUCCESS;
}

int event_open(const aclrtIpcEventHandle *in, void **handle) {
    struct mark *mark = NULL;
    char key[sizeof(in->reserved) + 1] = "";
    memcpy(key, in->reserved, sizeof(in->reserved));
    int code = context_need() ? mark_import(MARK_EVENT, key, &mark) : ACL_ERROR_RT_CONTEXT_NULL;
    if (code)
        return code;
    code = make_event(EVENT_EXTENDED, ACL_EVENT_IPC | ACL_EVENT_SYNC, mark, handle);
    if (code)
        mark_leave(mark);
    return code;
}

struct event *event_need(const void *handle) {
    struct event *event = handle_object(HANDLE_EVENT, handle);
    if (!event)
        error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_INVALID_HANDLE, "event %p is not alive", handle);
    return event;
}

void event_destroy(struct event *event) {
    handle_end(event->handle);
    event->handle = NULL;
    live_events--;
    record_leave(event->latest);
    event->latest = NULL;
    leave_event(event);
}

void events_end(const struct context *context) {
    size_t position = 0;
    for (void *handle; live_events && (handle = handle_next(HANDLE_EVENT, &position));) {
        struct event *event = handle_object(HANDLE_EVENT, handle);
        if (event->context == context)
            event_destroy(event);
    }
}

int event_record(struct event *event, struct stream *stream, enum function_id function) {
    struct record *record = NULL;
    int code = record_submit(event->mark, stream, function, &record);
    if (code)
        return code;
    record_leave(event->latest);
    event->latest = record;
    return ACL_SUCCESS;
}

static bool is_over(const struct task *task) {
    return record_state(((const struct wait_task *)task)->record) != RECORD_PENDING;
}

static bool is_coming(const struct task *task) {
    const struct stream *stream = ((const struct wait_task *)task)->record->stream;
    return stream && !stream_stuck(stream);
}

static int dropped(void) {
    return error_raise(ERROR_STATE, ACL_ERROR_RT_STREAM_ABORT, "the recording of the event was dropped");
}

static int run_wait(struct task *task) {
    return record_state(((struct wait_task *)task)->record) == RECORD_DROPPED ? dropped() : ACL_SUCCESS;
}

static void end_wait(struct task *task) {
    struct wait_task *wait = (struct wait_task *)task;
    wait->event->waits--;
    record_leave(wait->record);
    leave_event(wait->event);
}

int event_wait(struct event *event, struct stream *stream, uint64_t timeout_ms, enum function_id function) {
    static const struct task_kind kind = {.ready = is_over, .coming = is_coming, .run = run_wait, .end = end_wait};
    if (!look_up(event))
        return ACL_ERROR_RT_RESOURCE_ALLOC_FAIL;
    struct record *record = event->latest;
    if (!record || record_state(record) == RECORD_DONE)
        return ACL_SUCCESS;
    struct wait_task *task = task_new(sizeof(*task), &kind, function);
    if (!task)
        return ACL_ERROR_RT_RESOURCE_ALLOC_FAIL;
    task->task.awaits = record_object(record);
    task->task.timeout_ms = timeout_ms ? timeout_ms : wait_limit_ms;
    task->event = event;
    task->record = record;
    event->waits++;
    event->users++;
    record->users++;
    return stream_submit(stream, &task->task);
}

static int run_nothing(struct task *task) {
    (void)task;
    return ACL_SUCCESS;
}

int event_reset(struct event *event, struct stream *stream) {
    static const struct task_kind kind = {.run = run_nothing};
    if (event->kind == EVENT_EXTENDED || !(event->flags & ACL_EVENT_SYNC))
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                           "event %p cannot be reset; only events made without Ex and with ACL_EVENT_SYNC can",
                           event->handle);
    struct task wanted = {0};
    return stream_submit_copy(stream, &wanted, sizeof(wanted), &kind, FUNCTION_aclrtResetEvent);
}

int event_synchronize(struct event *event, moment deadline) {
    if (!look_up(event))
        return ACL_ERROR_RT_RESOURCE_ALLOC_FAIL;
    struct record *record = event->latest;
    bool in_time = true;
    if (!record)
        return ACL_SUCCESS;
    if (record->stream && stream_is_own(record->stream))
        return error_raise(ERROR_STATE, ACL_ERROR_RT_PARAM_INVALID,
                           "a function that runs on a stream cannot wait for an event of that stream");
    record->users++;
    while (record_state(record) == RECORD_PENDING && in_time)
        in_time = table_wait_for(record_object(record), deadline);
    enum record_state state = record_state(record);
    record_leave(record);
    if (state == RECORD_PENDING)
        return error_raise(ERROR_STATE, ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, "the recording of the event is not done yet");
    return state == RECORD_DROPPED ? dropped() : ACL_SUCCESS;
}

bool event_done(struct event *event) {
    if (!look_up(event))
        return false;
    return event->latest ? record_state(event->latest) == RECORD_DONE : event->kind == EVENT_EXTENDED;
}

static int check_recorded(const struct event *event) {
    if (event->latest)
        return ACL_SUCCESS;
    return error_raise(ERROR_STATE, ACL_ERROR_RT_INTERNAL_ERROR, "event %p was never recorded", event->handle);
}

int event_time(const struct event *event, moment *time) {
    const struct record *record = event->latest;
    if (check_recorded(event))
        return ACL_ERROR_RT_INTERNAL_ERROR;
    if (record->state != RECORD_DONE || !(event->flags & ACL_EVENT_TIME_LINE))
        return error_raise(ERROR_STATE, ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID,
                           record->state != RECORD_DONE && !event->mark
                               ? "the recording of event %p is not done"
                               : "event %p was made without ACL_EVENT_TIME_LINE",
                           event->handle);
    *time = record->time;
    return ACL_SUCCESS;
}

int event_elapsed(const struct event *start, const struct event *end, float *ms) {
    moment from = 0, to = 0;
    if (check_recorded(start) || check_recorded(end))
        return ACL_ERROR_RT_INTERNAL_ERROR;
    int code = event_time(start, &from);
    if (!code)
        code = event_time(end, &to);
    if (!code)
        *ms = (float)((double)(int64_t)(to - from) / 1e6);
    return code;
}
