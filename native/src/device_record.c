/* Tasks that find in device memory what they are to do: copies and cache operations by a record that a program can
 * write once and use often, and copies between addresses that are words of memory themselves.
 *
 * A record or word in device memory is read when its task runs, so a task before it in the stream may still write it.
 * What a task finds there is checked like any argument: bytes that are no record, or addresses that are no device
 * memory, fail the task.
 *
 * Thread safety: as said in the header; bytes move without the table lock. */
#include "device_record.h"

#include <stdbool.h>
#include <string.h>

#include "acl/acl_base.h"
#include "copy.h"
#include "errors.h"
#include "pagetable.h"
#include "place.h"
#include "range_task.h"
#include "stream_queue.h"
#include "table.h"
#include "task.h"

#define MARK UINT64_C(0x44524f4345524e50)

_Static_assert(sizeof(struct device_record) == DEVICE_RECORD_BYTES, "a record has 64 bytes");

struct record_task {
    struct task task;
    uint64_t addr;         /* of the record */
    enum record_kind kind; /* what must be there */
};

/* A side of an indirect copy in a task. */
struct side {
    uint64_t word;   /* device address of the word; 0: the address is known */
    uint64_t addr;   /* the address, once known */
    uint64_t offset; /* added to it */
};

struct indirect_task {
    struct task task;
    struct side to;
    struct side from;
    uint64_t bytes; /* to copy */
};

static int refuse(uint64_t addr, const char *why) {
    return error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR, "0x%llx %s", (unsigned long long)addr, why);
}

static int check_place(uint64_t addr) {
    if (addr % DEVICE_RECORD_BYTES)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "0x%llx is not at a multiple of %d bytes",
                           (unsigned long long)addr, DEVICE_RECORD_BYTES);
    return pagetable_bytes(addr, DEVICE_RECORD_BYTES, ACCESS_READS) ? ACL_SUCCESS
                                                                    : refuse(addr, "is not in live device memory");
}

int device_record_write(uint64_t addr, const struct device_record *record) {
    table_lock();
    int code = check_place(addr);
    if (!code) {
        struct device_record marked = *record;
        marked.mark = MARK;
        memcpy(pagetable_bytes(addr, sizeof(marked), ACCESS_WRITES), &marked, sizeof(marked));
    }
    table_unlock();
    return code;
}

/* Copies between two places of device memory. The table lock is held and given up while bytes move. */
static int copy_on_device(uint64_t to, uint64_t from, uint64_t bytes) {
    if (!bytes)
        return ACL_SUCCESS;
    if (place_of(to).kind != PLACE_DEVICE || place_of(from).kind != PLACE_DEVICE)
        return refuse(place_of(to).kind != PLACE_DEVICE ? to : from, "is no live device memory");
    table_unlock();
    int code = copy_bytes(to, from, bytes);
    table_lock();
    return code;
}

static int run_record(struct task *task) {
    const struct record_task *wanted = (const struct record_task *)task;
    struct device_record record;
    const char *at = pagetable_bytes(wanted->addr, sizeof(record), ACCESS_READS);
    if (!at)
        return refuse(wanted->addr, "is not in live device memory");
    memcpy(&record, at, sizeof(record));
    if (record.mark != MARK || record.kind != (uint64_t)wanted->kind)
        return refuse(wanted->addr, "holds no description of such a task");
    if (wanted->kind == RECORD_CACHE)
        return range_check(record.source, record.bytes);
    return copy_on_device(record.destination, record.source, record.bytes);
}

static int check_record(struct task *task) {
    return check_place(((const struct record_task *)task)->addr);
}

int device_record_give(const void *handle, uint64_t addr, enum record_kind kind, enum function_id function) {
    static const struct task_kind record_kind = {.run = run_record};
    struct record_task wanted = {.addr = addr, .kind = kind};
    return stream_give(handle, &wanted.task, sizeof(wanted), &record_kind, function, check_record);
}

/* Reads the word of a side where that is in device memory. */
static int find(struct side *side) {
    if (!side->word)
        return ACL_SUCCESS;
    const char *at = pagetable_bytes(side->word, sizeof(side->addr), ACCESS_READS);
    if (!at)
        return refuse(side->word, "is not in live device memory");
    memcpy(&side->addr, at, sizeof(side->addr));
    return ACL_SUCCESS;
}

static int run_indirect(struct task *task) {
    struct indirect_task *copy = (struct indirect_task *)task;
    int code = find(&copy->to);
    if (!code)
        code = find(&copy->from);
    return code ? code
                : copy_on_device(copy->to.addr + copy->to.offset, copy->from.addr + copy->from.offset, copy->bytes);
}

/* Reads the word of a side at the time of the call, unless that is in device memory; returns a code. */
static int plan(struct side *side) {
    uint64_t word = side->word;
    enum place_kind place = place_of(word).kind;
    if (word % sizeof(uint64_t))
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "0x%llx is not at a multiple of 8 bytes",
                           (unsigned long long)word);
    if (place == PLACE_NOWHERE)
        return refuse(word, "is no live device memory");
    if (place != PLACE_DEVICE) {
        memcpy(&side->addr, (const void *)(uintptr_t)word, sizeof(side->addr));
        side->word = 0;
    }
    return ACL_SUCCESS;
}

static int plan_sides(struct task *task) {
    struct indirect_task *copy = (struct indirect_task *)task;
    int code = plan(&copy->to);
    return code ? code : plan(&copy->from);
}

static struct side side_of(const struct indirect_side *wanted) {
    return (struct side){.word = (uint64_t)(uintptr_t)wanted->word, .offset = wanted->offset};
}

int indirect_copy_give(const void *handle, const struct indirect_side *to, const struct indirect_side *from,
                       uint64_t bytes, enum function_id function) {
    static const struct task_kind kind = {.run = run_indirect};
    struct indirect_task wanted = {.to = side_of(to), .from = side_of(from), .bytes = bytes};
    return stream_give(handle, &wanted.task, sizeof(wanted), &kind, function, plan_sides);
}
