/* Tasks that name memory and leave its bytes alone: operations on caches, which do not exist here, prefetches of memory
 * that is everywhere, and what resets a status that never changes. What they check is that the memory is there when
 * they run. Thread safety: as said in the header. */
#include "range_task.h"

#include "acl/acl_base.h"
#include "errors.h"
#include "pagetable.h"
#include "stream.h"
#include "stream_queue.h"
#include "table.h"
#include "task.h"

struct range_task {
    struct task task;
    uint64_t addr;  /* first byte */
    uint64_t bytes; /* 0: no memory */
};

int range_check(uint64_t addr, uint64_t bytes) {
    if (pagetable_covers(addr, bytes, ACCESS_READS))
        return ACL_SUCCESS;
    return error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR,
                       "0x%llx + %llu bytes is not all inside live memory of one device", (unsigned long long)addr,
                       (unsigned long long)bytes);
}

static int run(struct task *task) {
    const struct range_task *range = (const struct range_task *)task;
    return range->bytes ? range_check(range->addr, range->bytes) : ACL_SUCCESS;
}

int range_task_give(const void *handle, uint64_t addr, uint64_t bytes, enum function_id function) {
    static const struct task_kind kind = {.run = run};
    int code;
    table_lock();
    struct stream *stream = stream_need(handle, true, &code);
    if (stream && bytes)
        code = range_check(addr, bytes);
    struct range_task *task = code ? NULL : task_new(sizeof(*task), &kind, function);
    if (task) {
        task->addr = addr;
        task->bytes = bytes;
        code = stream_submit(stream, &task->task);
    } else if (!code) {
        code = ACL_ERROR_RT_RESOURCE_ALLOC_FAIL;
    }
    table_unlock();
    return code;
}
