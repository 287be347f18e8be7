/* Exported: random numbers written to device memory in stream order.
 *
 * Seed, number of numbers and the parameters of the distribution are values or lie in device memory, then they are read
 * when the task runs. Where there is a counter, 16 bytes of device memory, its lower half is the position of the first
 * number, and the numbers drawn are added to it. Thread safety: any thread, any time. */
#include <string.h>

#include "acl/acl.h"
#include "copy.h"
#include "entry.h"
#include "errors.h"
#include "pagetable.h"
#include "random_numbers.h"
#include "range_task.h"
#include "stream.h"
#include "stream_queue.h"
#include "table.h"
#include "task.h"

#define PIECE_BYTES 4096
#define COUNTER_BYTES 16

_Static_assert(sizeof(aclrtRandomNumTaskInfo) == 104, "the layout is that of the interface");

struct random_task {
    struct task task;
    aclrtRandomNumTaskInfo info; /* as given */
};

/* The bits of a parameter; returns a code. The table lock is held. */
static int read_parameter(const aclrtRandomParaInfo *parameter, uint64_t *bits) {
    uint64_t addr;
    const void *at = parameter->valueOrAddr;
    *bits = 0;
    if (!parameter->size || parameter->size > sizeof(*bits))
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "a parameter of %u bytes is not one of 1 to 8",
                           parameter->size);
    memcpy(&addr, parameter->valueOrAddr, sizeof(addr));
    if (parameter->isAddr &&
        !(at = addr % parameter->size ? NULL : pagetable_bytes(addr, parameter->size, ACCESS_READS)))
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR,
                           "the parameter at 0x%llx is not in live device memory, or not at a multiple of its size",
                           (unsigned long long)addr);
    memcpy(bits, at, parameter->size);
    return ACL_SUCCESS;
}

/* The two parameters of the distribution; a ratio has one. */
static int read_parameters(const aclrtRandomNumTaskInfo *info, struct random_plan *plan) {
    const aclrtUniformDisInfo *two = &info->randomNumFuncParaInfo.paramInfo.uniformDisInfo;
    uint64_t first, second = 0;
    int code = read_parameter(&two->min, &first);
    if (!code && plan->function != ACL_RT_RANDOM_NUM_FUNC_TYPE_DROPOUT_BITMASK)
        code = read_parameter(&two->max, &second);
    if (code)
        return code;
    plan->first = random_read(plan->type, first);
    plan->second = random_read(plan->type, second);
    plan->whole_first = first;
    plan->whole_span = second - first;
    if (random_number_bytes(plan->type) == sizeof(uint32_t))
        plan->whole_span = (uint32_t)plan->whole_span;
    return ACL_SUCCESS;
}

/* The counter in device memory; null where there is none. Returns a code. */
static int find_counter(const aclrtRandomNumTaskInfo *info, char **counter) {
    uint64_t addr = (uint64_t)(uintptr_t)info->randomCounterAddr;
    *counter = addr && addr % COUNTER_BYTES == 0 ? pagetable_bytes(addr, COUNTER_BYTES, ACCESS_WRITES) : NULL;
    if (!addr || *counter)
        return ACL_SUCCESS;
    return error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR,
                       "the counter at 0x%llx is not in live device memory, or not at a multiple of 16",
                       (unsigned long long)addr);
}

/* Writes the numbers piece by piece; the table lock is given up. */
static int write_numbers(const struct random_plan *plan, uint64_t addr, uint64_t count) {
    char piece[PIECE_BYTES];
    uint64_t step = plan->function == ACL_RT_RANDOM_NUM_FUNC_TYPE_DROPOUT_BITMASK
                        ? 8 * PIECE_BYTES
                        : PIECE_BYTES / random_number_bytes(plan->type);
    int code = ACL_SUCCESS;
    table_unlock();
    for (uint64_t index = 0; index < count && !code; index += step) {
        uint64_t some = count - index < step ? count - index : step;
        random_write(plan, index, some, piece);
        code = copy_bytes(addr + random_bytes(plan, index), (uint64_t)(uintptr_t)piece, random_bytes(plan, some));
    }
    table_lock();
    return code;
}

static int run(struct task *task) {
    const aclrtRandomNumTaskInfo *info = &((const struct random_task *)task)->info;
    struct random_plan plan = {.function = info->randomNumFuncParaInfo.funcType, .type = info->dataType};
    uint64_t count, addr = (uint64_t)(uintptr_t)info->randomResultAddr;
    char *counter = NULL;
    int code = read_parameter(&info->randomSeed, &plan.seed);
    if (!code)
        code = read_parameter(&info->randomNum, &count);
    if (!code)
        code = read_parameters(info, &plan);
    if (!code)
        code = find_counter(info, &counter);
    if (!code && count > UINT64_MAX / sizeof(uint64_t))
        code = error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "%llu numbers are too many",
                           (unsigned long long)count);
    if (!code)
        code = range_check(addr, random_bytes(&plan, count));
    if (code)
        return code;
    if (counter) {
        memcpy(&plan.position, counter, sizeof(plan.position));
        uint64_t next = plan.position + count;
        memcpy(counter, &next, sizeof(next));
    }
    return write_numbers(&plan, addr, count);
}

static int check(const aclrtRandomNumTaskInfo *info, const void *reserve) {
    if (!info || !info->randomResultAddr)
        return error_null(info ? "randomResultAddr" : "taskInfo");
    if (reserve)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "reserve is not null");
    aclrtRandomNumFuncType function = info->randomNumFuncParaInfo.funcType;
    if ((uint32_t)function > ACL_RT_RANDOM_NUM_FUNC_TYPE_TRUNCATED_NORMAL_DIS)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "funcType %d is not in 0..3", (int)function);
    if (!random_can(function, info->dataType))
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                           "numbers of type %d cannot be drawn by function %d", (int)info->dataType, (int)function);
    return ACL_SUCCESS;
}

aclError aclrtRandomNumAsync(const aclrtRandomNumTaskInfo *taskInfo, const aclrtStream stream, void *reserve) {
    ENTER(aclrtRandomNumAsync, taskInfo, stream, reserve);
    static const struct task_kind kind = {.run = run};
    int code = check(taskInfo, reserve);
    if (code)
        return code;
    struct random_task wanted = {.info = *taskInfo};
    return stream_give(stream, &wanted.task, sizeof(wanted), &kind, FUNCTION_aclrtRandomNumAsync, NULL);
}
