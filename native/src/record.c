/* Recordings. One is pending from the call that makes it until its task has run; then it is done. When the task is
 * dropped or refused it never comes and says so. Whoever waits for a recording keeps it, so a later one or the end of
 * the event changes nothing for them.
 *
 * A recording of an event of several processes has its state in the mark, under a number.
 *
 * Thread safety: callers hold the table lock. */
#include "record.h"

#include <stdlib.h>

#include "acl/acl_base.h"
#include "errors.h"
#include "mark.h"
#include "stream_queue.h"
#include "task.h"

struct record_task {
    struct task task;
    struct record *record; /* what it makes done */
};

static struct record *make(struct mark *mark, uint64_t number, const struct stream *stream) {
    struct record *record = calloc(1, sizeof(*record));
    if (!record) {
        error_raise(ERROR_MEMORY, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "the host has no memory for a recording");
        return NULL;
    }
    *record = (struct record){.users = 1, .mark = mark, .number = number, .stream = stream};
    if (mark)
        mark_enter(mark);
    return record;
}

struct record *record_of_number(struct mark *mark, uint64_t number) {
    return make(mark, number, NULL);
}

void record_leave(struct record *record) {
    if (!record || --record->users)
        return;
    if (record->mark)
        mark_leave(record->mark);
    free(record);
}

enum record_state record_state(const struct record *record) {
    static const enum record_state states[] = {RECORD_PENDING, RECORD_DONE, RECORD_DROPPED};
    return record->mark ? states[mark_state(record->mark, record->number)] : record->state;
}

const void *record_object(const struct record *record) {
    return record->mark ? (const void *)record->mark : record;
}

static int run(struct task *task) {
    struct record *record = ((struct record_task *)task)->record;
    record->time = table_now();
    record->state = RECORD_DONE;
    return ACL_SUCCESS;
}

static void end(struct task *task) {
    struct record *record = ((struct record_task *)task)->record;
    if (record->state == RECORD_PENDING)
        record->state = RECORD_DROPPED;
    if (record->number)
        mark_end(record->mark, record->number, record->state == RECORD_DROPPED);
    record->stream = NULL;
    table_wake_for(record);
    record_leave(record);
}

int record_submit(struct mark *mark, struct stream *stream, enum function_id function, struct record **made) {
    static const struct task_kind kind = {.run = run, .end = end};
    struct record_task *task = task_new(sizeof(*task), &kind, function);
    struct record *record = task ? make(mark, 0, stream) : NULL;
    if (!record) {
        free(task);
        return ACL_ERROR_RT_RESOURCE_ALLOC_FAIL;
    }
    record->users++;
    task->record = record;
    int code = stream_submit(stream, &task->task);
    if (code) {
        record_leave(record);
        return code;
    }
    if (mark)
        record->number = mark_issue(mark);
    *made = record;
    return ACL_SUCCESS;
}
