/* Notifies. A record sets the flag, one wait takes it; two records without a wait between them set it once. They belong
 * to a device, streams of any device use them.
 *
 * Thread safety: callers hold the table lock. */
#include "notify.h"

#include <stdlib.h>
#include <string.h>

#include "acl/acl_base.h"
#include "context.h"
#include "errors.h"
#include "handles.h"
#include "mark.h"
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
    if (--notify->users)
        return;
    if (notify->mark)
        mark_leave(notify->mark);
    free(notify);
}

/* Makes a notify over a mark, or a local one; returns a code. */
static int make(struct mark *mark, void **handle) {
    const struct context *context = context_need();
    if (!context)
        return ACL_ERROR_RT_CONTEXT_NULL;
    struct notify *notify = calloc(1, sizeof(*notify));
    void *made = notify ? handle_new(HANDLE_NOTIFY, notify) : NULL;
    if (!made) {
        free(notify);
        return error_raise(ERROR_MEMORY, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "the host has no memory for a notify");
    }
    *notify = (struct notify){.handle = made, .device = context->device, .mark = mark, .users = 1};
    if (mark)
        mark_wakes(mark, notify);
    live_notifies++;
    *handle = made;
    return ACL_SUCCESS;
}

int notify_create(void **handle) {
    return make(NULL, handle);
}

int notify_export(struct notify *notify, bool check_pids, char *key) {
    char text[MARK_KEY_BYTES];
    struct mark *mark = notify->mark ? notify->mark : mark_make(MARK_NOTIFY);
    if (!mark || !mark_export(mark, check_pids, text)) {
        if (mark && !notify->mark)
            mark_leave(mark);
        return error_raise(ERROR_MEMORY, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL,
                           "the host refuses what a shared notify needs");
    }
    if (!notify->mark && notify->set)
        mark_set(mark);
    notify->mark = mark;
    mark_wakes(mark, notify);
    strcpy(key, text);
    return ACL_SUCCESS;
}

int notify_allow(struct notify *notify, const int32_t *pids, size_t count) {
    if (notify->mark && mark_allow(notify->mark, pids, count))
        return ACL_SUCCESS;
    return error_raise(ERROR_DRIVER, ACL_ERROR_RT_PARAM_INVALID,
                       "notify %p was not exported, or lists too many processes", notify->handle);
}

int notify_import(const char *key, void **handle) {
    struct mark *mark = NULL;
    if (!context_need())
        return ACL_ERROR_RT_CONTEXT_NULL;
    int code = mark_import(MARK_NOTIFY, key, &mark);
    if (code)
        return code;
    code = make(mark, handle);
    if (code)
        mark_leave(mark);
    return code;
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
    struct notify *notify = notify_of(task);
    if (notify->mark)
        mark_set(notify->mark);
    notify->set = true;
    table_wake_for(notify);
    return ACL_SUCCESS;
}

static bool is_set(const struct task *task) {
    const struct notify *notify = notify_of(task);
    return notify->mark ? mark_is_set(notify->mark) : notify->set;
}

/* A process that shares the flag may have been quicker. */
static int run_wait(struct task *task) {
    struct notify *notify = notify_of(task);
    bool taken = notify->mark ? mark_take(notify->mark) : notify->set;
    notify->set = false;
    return taken ? ACL_SUCCESS : TASK_AGAIN;
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
