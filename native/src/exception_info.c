/* Exported: the function that is called when a task fails, and the questions it may ask about the failure.
 *
 * Thread safety: any thread, any time. The function is called by the worker of the stream, without a lock; what it is
 * given lives until it returns. */
#include "exception_info.h"

#include "acl/acl.h"
#include "device.h"
#include "entry.h"
#include "stream.h"
#include "table.h"
#include "task.h"

/* Answer where there is nothing to tell. */
#define NO_ANSWER 0xffffffffu

struct rtExceptionInfo {
    uint32_t task;   /* number of the task in its stream */
    uint32_t stream; /* number of the stream */
    uint32_t thread; /* thread that made the call */
    uint32_t device; /* number of the device */
    uint32_t code;   /* how the task failed */
};

static aclrtExceptionInfoCallback registered;

void exception_reset(void) {
    registered = NULL;
}

void exception_report(const struct stream *stream, const struct task *task, int code) {
    aclrtExceptionInfoCallback call = registered;
    struct rtExceptionInfo info = {.task = (uint32_t)task->position, .stream = (uint32_t)stream->id};
    if (!call)
        return;
    info.thread = task->thread;
    info.device = (uint32_t)stream->device->id;
    info.code = (uint32_t)code;
    table_unlock();
    call(&info);
    table_lock();
}

aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback) {
    ENTER(aclrtSetExceptionInfoCallback, callback);
    table_lock();
    registered = callback;
    table_unlock();
    return ACL_SUCCESS;
}

uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo *info) {
    ENTER_OR(NO_ANSWER, aclrtGetTaskIdFromExceptionInfo, info);
    return info ? info->task : NO_ANSWER;
}

uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo *info) {
    ENTER_OR(NO_ANSWER, aclrtGetStreamIdFromExceptionInfo, info);
    return info ? info->stream : NO_ANSWER;
}

uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo *info) {
    ENTER_OR(NO_ANSWER, aclrtGetThreadIdFromExceptionInfo, info);
    return info ? info->thread : NO_ANSWER;
}

uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo *info) {
    ENTER_OR(NO_ANSWER, aclrtGetDeviceIdFromExceptionInfo, info);
    return info ? info->device : NO_ANSWER;
}

uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo *info) {
    ENTER_OR(NO_ANSWER, aclrtGetErrorCodeFromExceptionInfo, info);
    return info ? info->code : NO_ANSWER;
}
