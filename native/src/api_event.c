/* Exported: events. A null stream is the default stream of the current context. Time-outs in the names ...WithTimeout
 * are milliseconds, -1 waits for ever; those of tasks are seconds, 0 is without limit.
 *
 * Thread safety: any thread, any time. */
#include "acl/acl.h"
#include "context.h"
#include "entry.h"
#include "errors.h"
#include "event.h"
#include "stream.h"
#include "table.h"
#include "timeouts.h"

#define FLAGS_OF_ALL (ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE)
#define MS_PER_S 1000u
#define NS_PER_US 1000u

static aclError create(enum event_kind kind, uint32_t flags, aclrtEvent *event) {
    table_lock();
    int code = event_create(kind, flags, event);
    table_unlock();
    return code;
}

static int refuse_flag(uint32_t flag) {
    return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "flag 0x%x makes no event", flag);
}

aclError aclrtCreateEvent(aclrtEvent *event) {
    ENTER(aclrtCreateEvent, event);
    return event ? create(EVENT_PLAIN, 0, event) : error_null("event");
}

aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag) {
    ENTER(aclrtCreateEventWithFlag, event, flag);
    if (!event)
        return error_null("event");
    if (flag == ACL_EVENT_DEVICE_USE_ONLY)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                           "the host runtime has no events for use on the device only");
    if (flag == ACL_EVENT_EXTERNAL)
        return create(EVENT_FLAGGED, flag | ACL_EVENT_SYNC, event);
    return flag && !(flag & ~FLAGS_OF_ALL) ? create(EVENT_FLAGGED, flag, event) : refuse_flag(flag);
}

aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag) {
    ENTER(aclrtCreateEventExWithFlag, event, flag);
    if (!event)
        return error_null("event");
    if (flag == ACL_EVENT_IPC)
        return create(EVENT_EXTENDED, flag | ACL_EVENT_SYNC, event);
    return flag && !(flag & ~FLAGS_OF_ALL) ? create(EVENT_EXTENDED, flag, event) : refuse_flag(flag);
}

/* The event of a call that needs a current context; null with the code. The table lock is held. */
static struct event *need(const void *handle, int *code) {
    struct event *event = context_need() ? event_need(handle) : NULL;
    *code = event ? ACL_SUCCESS : context_current() ? ACL_ERROR_RT_INVALID_HANDLE : ACL_ERROR_RT_CONTEXT_NULL;
    return event;
}

aclError aclrtDestroyEvent(aclrtEvent event) {
    ENTER(aclrtDestroyEvent, event);
    if (!event)
        return error_null("event");
    table_lock();
    struct event *found = event_need(event);
    if (found)
        event_destroy(found);
    table_unlock();
    return found ? ACL_SUCCESS : ACL_ERROR_RT_INVALID_HANDLE;
}

static aclError record(aclrtEvent event, aclrtStream stream, enum function_id function) {
    int code;
    if (!event)
        return error_null("event");
    table_lock();
    struct event *found = need(event, &code);
    struct stream *where = found ? stream_need(stream, true, &code) : NULL;
    if (where)
        code = event_record(found, where, function);
    table_unlock();
    return code;
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
    ENTER(aclrtRecordEvent, event, stream);
    return record(event, stream, FUNCTION_aclrtRecordEvent);
}

/* Both flags of a recording or wait mean the same outside of a captured model. */
static int check_external(uint32_t flag) {
    if (flag <= ACL_EVENT_RECORD_EXTERNAL)
        return ACL_SUCCESS;
    return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "flag %u is neither 0 nor 1", flag);
}

aclError aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream, uint32_t flag) {
    ENTER(aclrtRecordEventWithFlag, event, stream, flag);
    if (!event)
        return error_null("event");
    int code = check_external(flag);
    return code ? code : record(event, stream, FUNCTION_aclrtRecordEventWithFlag);
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
    ENTER(aclrtResetEvent, event, stream);
    int code;
    if (!event)
        return error_null("event");
    table_lock();
    struct event *found = need(event, &code);
    struct stream *where = found ? stream_need(stream, true, &code) : NULL;
    if (where)
        code = event_reset(found, where);
    table_unlock();
    return code;
}

static aclError wait_for(aclrtStream stream, aclrtEvent event, uint64_t timeout_ms, enum function_id function) {
    int code;
    if (!event)
        return error_null("event");
    table_lock();
    struct event *found = need(event, &code);
    struct stream *where = found ? stream_need(stream, true, &code) : NULL;
    if (where && !(found->flags & ACL_EVENT_SYNC))
        code = error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                           "event %p was made without ACL_EVENT_SYNC, so no stream can wait for it", event);
    else if (where)
        code = event_wait(found, where, timeout_ms, function);
    table_unlock();
    return code;
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
    ENTER(aclrtStreamWaitEvent, stream, event);
    return wait_for(stream, event, 0, FUNCTION_aclrtStreamWaitEvent);
}

aclError aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event, uint32_t timeout, uint32_t flag) {
    ENTER(aclrtStreamWaitEventWithFlag, stream, event, timeout, flag);
    if (!event)
        return error_null("event");
    int code = check_external(flag);
    return code ? code : wait_for(stream, event, (uint64_t)timeout * MS_PER_S, FUNCTION_aclrtStreamWaitEventWithFlag);
}

aclError aclrtSetOpWaitTimeout(uint32_t timeout) {
    ENTER(aclrtSetOpWaitTimeout, timeout);
    table_lock();
    event_set_wait_limit((uint64_t)timeout * MS_PER_S);
    table_unlock();
    return ACL_SUCCESS;
}

static aclError synchronize(aclrtEvent event, moment deadline) {
    int code;
    table_lock();
    struct event *found = need(event, &code);
    if (found)
        code = event_synchronize(found, deadline);
    table_unlock();
    return code;
}

aclError aclrtSynchronizeEvent(aclrtEvent event) {
    ENTER(aclrtSynchronizeEvent, event);
    return event ? synchronize(event, NEVER) : error_null("event");
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
    ENTER(aclrtSynchronizeEventWithTimeout, event, timeout);
    moment deadline;
    if (!event)
        return error_null("event");
    int code = timeout_read(timeout, &deadline);
    return code ? code : synchronize(event, deadline);
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status) {
    ENTER(aclrtQueryEventStatus, event, status);
    int code;
    if (!event || !status)
        return error_null(event ? "status" : "event");
    table_lock();
    struct event *found = need(event, &code);
    if (found)
        *status = event_done(found) ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    table_unlock();
    return code;
}

aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus *status) {
    ENTER(aclrtQueryEventWaitStatus, event, status);
    int code;
    if (!event || !status)
        return error_null(event ? "status" : "event");
    table_lock();
    const struct event *found = need(event, &code);
    if (found && found->kind == EVENT_EXTENDED)
        code = error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "event %p was made by the Ex call", event);
    else if (found)
        *status = found->waits ? ACL_EVENT_WAIT_STATUS_NOT_READY : ACL_EVENT_WAIT_STATUS_COMPLETE;
    table_unlock();
    return code;
}

aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent) {
    ENTER(aclrtEventElapsedTime, ms, startEvent, endEvent);
    int code;
    if (!ms || !startEvent || !endEvent)
        return error_null(!ms ? "ms" : startEvent ? "endEvent" : "startEvent");
    table_lock();
    const struct event *start = need(startEvent, &code);
    const struct event *end = start ? need(endEvent, &code) : NULL;
    if (end)
        code = event_elapsed(start, end, ms);
    table_unlock();
    return code;
}

aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t *timestamp) {
    ENTER(aclrtEventGetTimestamp, event, timestamp);
    int code;
    moment time = 0;
    if (!event || !timestamp)
        return error_null(event ? "timestamp" : "event");
    table_lock();
    const struct event *found = need(event, &code);
    if (found)
        code = event_time(found, &time);
    table_unlock();
    if (!code)
        *timestamp = time / NS_PER_US;
    return code;
}

aclError aclrtIpcGetEventHandle(aclrtEvent event, aclrtIpcEventHandle *handle) {
    ENTER(aclrtIpcGetEventHandle, event, handle);
    int code;
    if (!event || !handle)
        return error_null(event ? "handle" : "event");
    table_lock();
    const struct event *found = need(event, &code);
    if (found)
        code = event_export(found, handle);
    table_unlock();
    return code;
}

aclError aclrtIpcOpenEventHandle(aclrtIpcEventHandle handle, aclrtEvent *event) {
    ENTER(aclrtIpcOpenEventHandle, handle, event);
    if (!event)
        return error_null("event");
    table_lock();
    int code = event_open(&handle, event);
    table_unlock();
    return code;
}
