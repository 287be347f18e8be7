/* Copies and sets as tasks.
 *
 * Device memory and pinned host memory are left to the stream: the task looks the ranges up again when it runs, so what
 * was freed meanwhile is an error of the task. A pinned block is told from a later one at the same place by its serial
 * number. Unregistered host memory may go away at any time without anybody saying so; a copy or set that involves it
 * waits for its task before it returns.
 *
 * Thread safety: as said in the header; the bytes move without the table lock. */
#include "async_copy.h"

#include <stdlib.h>

#include "errors.h"
#include "place.h"
#include "stream.h"
#include "stream_queue.h"
#include "table.h"
#include "task.h"

struct copy_task {
    struct task task;
    struct copy copy;
    void *buffer; /* source that belongs to the task, or null */
};

struct fill_task {
    struct task task;
    struct fill fill;
};

static int run_copy(struct task *task) {
    table_unlock();
    int code = copy_run(&((const struct copy_task *)task)->copy);
    table_lock();
    return code;
}

static void end_copy(struct task *task) {
    free(((struct copy_task *)task)->buffer);
}

static int run_fill(struct task *task) {
    table_unlock();
    int code = fill_run(&((const struct fill_task *)task)->fill);
    table_lock();
    return code;
}

/* The kinds a caller may name when unregistered memory takes part, one bit per kind. */
static unsigned kinds_allowed(enum place_kind to, enum place_kind from) {
    enum { H2H = 1 << 0, H2D = 1 << 1, D2H = 1 << 2, D2D = 1 << 3, ANY = 1 << 4, ALL = 31 };
    if (from == PLACE_UNREGISTERED)
        return to == PLACE_DEVICE ? H2D | D2D | ANY : to == PLACE_PINNED ? H2H | D2H | ANY : ALL;
    if (to == PLACE_UNREGISTERED)
        return from == PLACE_DEVICE ? D2H | D2D | ANY : H2H | H2D | ANY;
    return ALL;
}

static int refuse_kind(aclrtMemcpyKind kind, enum place_kind to, enum place_kind from) {
    return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "kind %d does not fit a copy from %s to %s",
                       (int)kind, place_name(from), place_name(to));
}

static int check_places(enum place_kind to, enum place_kind from, aclrtMemcpyKind kind) {
    if (to == PLACE_NOWHERE || from == PLACE_NOWHERE)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR, "the %s is %s",
                           to == PLACE_NOWHERE ? "destination" : "source", place_name(PLACE_NOWHERE));
    bool host_only = to != PLACE_DEVICE && from != PLACE_DEVICE;
    bool unregistered = to == PLACE_UNREGISTERED || from == PLACE_UNREGISTERED;
    bool between_hosts = kind == ACL_MEMCPY_HOST_TO_HOST || kind == ACL_MEMCPY_DEFAULT;
    if (kind == ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE && !(host_only && !unregistered))
        return to == PLACE_DEVICE && from != PLACE_DEVICE ? ACL_SUCCESS : refuse_kind(kind, to, from);
    if (unregistered && !(kinds_allowed(to, from) >> kind & 1))
        return refuse_kind(kind, to, from);
    if (host_only && (!unregistered || between_hosts))
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                           "copies from host to host are not done by a stream");
    return ACL_SUCCESS;
}

int async_copy_plan(struct copy *copy, aclrtMemcpyKind kind, struct copy_route *route) {
    struct place to = place_of(copy->to.addr);
    struct place from = place_of(copy->from.addr);
    copy->to.block = to.block;
    copy->from.block = from.block;
    route->buffered = kind == ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE;
    route->at_once = !route->buffered && (to.kind == PLACE_UNREGISTERED || from.kind == PLACE_UNREGISTERED);
    return check_places(to.kind, from.kind, kind);
}

int async_copy_submit(struct stream *stream, const struct copy *copy, void *buffer, enum function_id function) {
    static const struct task_kind kind = {.run = run_copy, .end = end_copy};
    struct copy_task *task = task_new(sizeof(*task), &kind, function);
    if (!task) {
        free(buffer);
        return ACL_ERROR_RT_RESOURCE_ALLOC_FAIL;
    }
    task->copy = *copy;
    task->buffer = buffer;
    if (buffer)
        task->copy.from = (struct copy_side){.addr = (uint64_t)(uintptr_t)buffer};
    return stream_submit(stream, &task->task);
}

/* Copies the source of a plain copy into a buffer; returns a code. The table lock is not held. */
static int fill_buffer(const struct copy *copy, void **buffer) {
    struct copy into = *copy;
    *buffer = malloc(copy->width);
    if (!*buffer)
        return error_raise(ERROR_MEMORY, ACL_ERROR_RT_MEMORY_ALLOCATION, "the host has no %llu bytes for a buffer",
                           (unsigned long long)copy->width);
    into.to = (struct copy_side){.addr = (uint64_t)(uintptr_t)*buffer};
    int code = copy_run(&into);
    if (!code)
        return ACL_SUCCESS;
    free(*buffer);
    *buffer = NULL;
    return code;
}

int async_copy(struct copy *copy, aclrtMemcpyKind kind, const void *handle, enum function_id function) {
    struct copy_route route;
    void *buffer = NULL;
    int code;
    table_lock();
    struct stream *stream = stream_need(handle, true, &code);
    if (stream)
        code = async_copy_plan(copy, kind, &route);
    if (!code && route.at_once)
        code = stream_check_wait(stream);
    if (!code && route.buffered) {
        table_unlock();
        code = fill_buffer(copy, &buffer);
        table_lock();
        stream = code ? NULL : stream_need(handle, true, &code);
    }
    if (!code)
        code = async_copy_submit(stream, copy, buffer, function);
    else
        free(buffer);
    if (!code && route.at_once)
        code = stream_wait(stream, NEVER);
    table_unlock();
    return code;
}

/* Whether a set may go to a place; returns a code. */
static int check_fill(enum place_kind place, bool acl_only, const struct stream *stream) {
    if (place == PLACE_NOWHERE || (acl_only && place == PLACE_UNREGISTERED))
        return error_raise(ERROR_DRIVER, acl_only ? ACL_ERROR_RT_PARAM_INVALID : ACL_ERROR_RT_DRV_INTERNAL_ERROR,
                           "the destination is %s", place_name(place));
    return place == PLACE_UNREGISTERED ? stream_check_wait(stream) : ACL_SUCCESS;
}

static int submit_fill(struct stream *stream, const struct fill *fill, uint64_t block, enum function_id function) {
    static const struct task_kind kind = {.run = run_fill};
    struct fill_task wanted = {.fill = *fill};
    wanted.fill.block = block;
    return stream_submit_copy(stream, &wanted.task, sizeof(wanted), &kind, function);
}

int async_fill(const struct fill *fill, bool acl_only, const void *handle, enum function_id function) {
    int code;
    table_lock();
    struct stream *stream = stream_need(handle, true, &code);
    struct place place = place_of(fill->addr);
    if (!code)
        code = check_fill(place.kind, acl_only, stream);
    if (!code)
        code = submit_fill(stream, fill, place.block, function);
    if (!code && place.kind == PLACE_UNREGISTERED)
        code = stream_wait(stream, NEVER);
    table_unlock();
    return code;
}
