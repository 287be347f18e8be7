/* Tasks that name memory and leave its bytes alone: operations on caches, which do not exist here, prefetches of memory
 * that is everywhere, and what resets a status that never changes. What they check is that the memory is there when
 * they run. Thread safety: as said in the header. */
#include "range_task.h"

#include "acl/acl_base.h"
#include "errors.h"
#include "pagetable.h"
#include "stream_queue.h"
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

static int check(struct task *task) {
    const struct range_task *range = (const struct range_task *)task;
    return range->bytes ? range_check(range->addr, range->bytes) : ACL_SUCCESS;
}

int range_task_give(const void *handle, uint64_t addr, uint64_t bytes, enum function_id function) {
    static const struct task_kind kind = {.run = check};
    struct range_task wanted = {.addr = addr, .bytes = bytes};
    return stream_give(handle, &wanted.task, sizeof(wanted), &kind, function, check);
}
