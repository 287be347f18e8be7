/* Notifies. A record sets the flag, one wait takes it; two records without a wait between them set it once. They belong
 * to a device, streams of any device use them.
 *
 * Thread safety: callers hold the table lock. */
#include "notify.h"

#include <stdlib.h>

#include "acl/acl_base.h"
#include "context.h"
#include "errors.h"
#include "handles.h"
#include "stream_queue.h"
#include "table.h"
#include "task.h"

struct notify_task {
    struct task task;
    struct notify *notify; /* what it sets or waits for */
};

static uint64_t live_notifies;

uint64_t notifies_count(void) {
    return live_notifies;
}

static void leave(struct notify *notify) {
    if (--notify->users == 0)
        free(notify);
}

int notify_create(void **handle) {
    const struct context *context = context_need();
    if (!context)
        return ACL_ERROR_RT_CONTEXT_NULL;
    struct notify *notify = calloc(1, sizeof(*notify));
    void *made = notify ? handle_new(HANDLE_NOTIFY, notify) : NULL;
    if (!made) {
        free(notify);
        return error_raise(ERROR_MEMORY, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "the host has no memory for a notify");
    }
    *notify = (struct notify){.handle = made, .device = context->device, .users = 1};
    live_notifies++;
    *handle = made;
    return ACL_SUCCESS;
}

struct notify *notify_need(const void *handle) {
    struct notify *notify = handle_object(HANDLE_NOTIFY, handle);
    if (!notify)
        error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_INVALID_HANDLE, "notify %p is not alive", handle);
    return notify;
}

void notify_destroy(struct notify *notify) {
    handle_end(notify->handle);
    notify->handle = NULL;
    live_notifies--;
    leave(notify);
}

void notifies_end(const struct device *device) {
    size_t position = 0;
    for (void *handle; live_notifies && (handle = handle_next(HANDLE_NOTIFY, &position));) {
        struct notify *notify = handle_object(HANDLE_NOTIFY, handle);
        if (notify->device == device)
            notify_destroy(notify);
    }
}

static struct notify *notify_of(const struct task *task) {
    return ((const struct notify_task *)task)->notify;
}

static int run_record(struct task *task) {
    notify_of(task)->set = true;
    table_wake_for(notify_of(task));
    return ACL_SUCCESS;
}

static bool is_set(const struct task *task) {
    return notify_of(task)->set;
}

static int run_wait(struct task *task) {
    notify_of(task)->set = false;
    return ACL_SUCCESS;
}

static void end_task(struct task *task) {
    leave(notify_of(task));
}

static int submit(struct notify *notify, struct stream *stream, const struct task_kind *kind, enum function_id function,
                  uint64_t timeout_ms) {
    struct notify_task *task = task_new(sizeof(*task), kind, function);
    if (!task)
        return ACL_ERROR_RT_RESOURCE_ALLOC_FAIL;
    notify->users++;
    task->notify = notify;
    task->task.awaits = notify;
    task->task.timeout_ms = timeout_ms;
    return stream_submit(stream, &task->task);
}

int notify_record(struct notify *notify, struct stream *stream) {
    static const struct task_kind kind = {.run = run_record, .end = end_task};
    return submit(notify, stream, &kind, FUNCTION_aclrtRecordNotify, 0);
}

int notify_wait(struct notify *notify, struct stream *stream, uint64_t timeout_ms) {
    static const struct task_kind kind = {.ready = is_set, .run = run_wait, .end = end_task};
    return submit(notify, stream, &kind, FUNCTION_aclrtWaitAndResetNotify, timeout_ms);
}
