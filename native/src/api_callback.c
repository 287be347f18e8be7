/* Exported: functions of the program that run in stream order.
 *
 * A callback runs on the thread that subscribed to its stream, inside aclrtProcessReport; a host function on a thread
 * of the runtime, or inside aclrtProcessHostFunc on the thread that subscribed to the host functions of its stream.
 * Neither holds a lock. Thread safety: any thread, any time. */
#include "acl/acl.h"
#include "callback.h"
#include "entry.h"
#include "errors.h"
#include "stream.h"
#include "table.h"
#include "timeouts.h"

static int subscribe(enum reporter_kind kind, uint64_t thread, aclrtStream stream) {
    int code;
    table_lock();
    struct stream *found = stream_need(stream, true, &code);
    if (found)
        code = callback_subscribe(kind, thread, found);
    table_unlock();
    return code;
}

static int unsubscribe(enum reporter_kind kind, uint64_t thread, aclrtStream stream) {
    int code;
    table_lock();
    struct stream *found = stream_need(stream, true, &code);
    if (found)
        code = callback_unsubscribe(kind, thread, found);
    table_unlock();
    return code;
}

static int process(enum reporter_kind kind, int32_t timeout) {
    moment deadline;
    int code = timeout_read(timeout, &deadline);
    if (code)
        return code;
    table_lock();
    code = callback_process(kind, deadline);
    table_unlock();
    return code;
}

aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream) {
    ENTER(aclrtSubscribeReport, threadId, stream);
    return subscribe(REPORTS, threadId, stream);
}

aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream) {
    ENTER(aclrtUnSubscribeReport, threadId, stream);
    return unsubscribe(REPORTS, threadId, stream);
}

aclError aclrtLaunchCallback(aclrtCallback fn, void *userData, aclrtCallbackBlockType blockType, aclrtStream stream) {
    ENTER(aclrtLaunchCallback, fn, userData, blockType, stream);
    int code;
    if (!fn)
        return error_null("fn");
    if ((uint32_t)blockType > ACL_CALLBACK_BLOCK)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "blockType %d is neither 0 nor 1", (int)blockType);
    table_lock();
    struct stream *found = stream_need(stream, true, &code);
    if (found)
        code = callback_launch(found, fn, userData, blockType == ACL_CALLBACK_BLOCK);
    table_unlock();
    return code;
}

aclError aclrtProcessReport(int32_t timeout) {
    ENTER(aclrtProcessReport, timeout);
    return process(REPORTS, timeout);
}

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void *args) {
    ENTER(aclrtLaunchHostFunc, stream, fn, args);
    int code;
    if (!fn)
        return error_null("fn");
    table_lock();
    struct stream *found = stream_need(stream, true, &code);
    if (found)
        code = host_function_launch(found, fn, args);
    table_unlock();
    return code;
}

aclError aclrtSubscribeHostFunc(uint64_t hostFuncThreadId, aclrtStream exeStream) {
    ENTER(aclrtSubscribeHostFunc, hostFuncThreadId, exeStream);
    return subscribe(HOST_FUNCTIONS, hostFuncThreadId, exeStream);
}

aclError aclrtUnSubscribeHostFunc(uint64_t hostFuncThreadId, aclrtStream exeStream) {
    ENTER(aclrtUnSubscribeHostFunc, hostFuncThreadId, exeStream);
    return unsubscribe(HOST_FUNCTIONS, hostFuncThreadId, exeStream);
}

aclError aclrtProcessHostFunc(int32_t timeout) {
    ENTER(aclrtProcessHostFunc, timeout);
    return process(HOST_FUNCTIONS, timeout);
}
