/* Words that streams write and wait for.
 *
 * A waiting word is looked at when something has happened to memory: a copy or set has ended, a word was written,
 * memory was taken away. That costs nothing while no word is waited for. Every end of an access counts, not only those
 * at the address of the word, because two addresses may show the same bytes. A word that is being accessed is left
 * alone until the access has ended.
 *
 * Thread safety: callers hold the table lock. */
#include "value_task.h"

#include <stdbool.h>
#include <string.h>

#include "access.h"
#include "acl/acl_base.h"
#include "acl/acl_rt.h"
#include "errors.h"
#include "pagetable.h"
#include "stream_queue.h"
#include "table.h"
#include "task.h"

struct value_task {
    struct task task;
    uint64_t addr;    /* of the word */
    uint64_t value;   /* to write or to compare with */
    uint32_t compare; /* how */
};

static uint32_t waiting; /* tasks that look at memory */

void value_memory_changed(void) {
    if (waiting)
        table_wake_for(&waiting);
}

static const struct value_task *value_of(const struct task *task) {
    return (const struct value_task *)task;
}

/* The word in the host's view; null when it is not in live device memory. */
static char *word_at(const struct task *task, enum access_effect effect) {
    return pagetable_bytes(value_of(task)->addr, sizeof(uint64_t), effect);
}

static bool compares(uint64_t word, uint64_t value, uint32_t compare) {
    switch (compare) {
    case ACL_STREAM_WAIT_VALUE_GEQ:
        return word >= value;
    case ACL_STREAM_WAIT_VALUE_EQ:
        return word == value;
    case ACL_STREAM_WAIT_VALUE_AND:
        return (word & value) != 0;
    default:
        return ~(word | value) != 0;
    }
}

static bool is_free(const struct task *task) {
    return !access_overlaps(value_of(task)->addr, sizeof(uint64_t));
}

/* The word compares, or is gone. */
static bool is_there(const struct task *task) {
    const struct value_task *wait = value_of(task);
    uint64_t word = 0;
    if (!is_free(task))
        return false;
    const char *at = word_at(task, ACCESS_READS);
    if (at)
        memcpy(&word, at, sizeof(word));
    return !at || compares(word, wait->value, wait->compare);
}

/* An access to the word will end. */
static bool is_coming(const struct task *task) {
    return !is_free(task);
}

static int refuse(const struct task *task) {
    return error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR, "the word at 0x%llx is not in live device memory",
                       (unsigned long long)value_of(task)->addr);
}

static int run_write(struct task *task) {
    char *at = word_at(task, ACCESS_WRITES);
    if (!at)
        return refuse(task);
    memcpy(at, &value_of(task)->value, sizeof(uint64_t));
    value_memory_changed();
    return ACL_SUCCESS;
}

static int run_wait(struct task *task) {
    return word_at(task, ACCESS_READS) ? ACL_SUCCESS : refuse(task);
}

static void end(struct task *task) {
    (void)task;
    waiting--;
}

static int submit(struct stream *stream, const struct task_kind *kind, const struct value_task *values,
                  enum function_id function) {
    struct value_task *task = task_new(sizeof(*task), kind, function);
    if (!task)
        return ACL_ERROR_RT_RESOURCE_ALLOC_FAIL;
    task->addr = values->addr;
    task->value = values->value;
    task->compare = values->compare;
    task->task.awaits = &waiting;
    waiting++;
    return stream_submit(stream, &task->task);
}

int value_write(struct stream *stream, uint64_t addr, uint64_t value) {
    static const struct task_kind kind = {.ready = is_free, .coming = is_coming, .run = run_write, .end = end};
    struct value_task values = {.addr = addr, .value = value};
    return submit(stream, &kind, &values, FUNCTION_aclrtValueWrite);
}

int value_wait(struct stream *stream, uint64_t addr, uint64_t value, uint32_t compare) {
    static const struct task_kind kind = {.ready = is_there, .coming = is_coming, .run = run_wait, .end = end};
    struct value_task values = {.addr = addr, .value = value, .compare = compare};
    return submit(stream, &kind, &values, FUNCTION_aclrtValueWait);
}
