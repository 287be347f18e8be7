/* Exported: what streams are and how they fail. Thread safety: any thread, any time. */
#include <string.h>

#include "acl/acl.h"
#include "context.h"
#include "device.h"
#include "entry.h"
#include "errors.h"
#include "runtime.h"
#include "stream.h"
#include "stream_queue.h"
#include "table.h"

/* Copies what a stream is, for a call that works on streams of any context; returns a code. */
static int look_at(aclrtStream handle, struct stream *copy) {
    int code;
    table_lock();
    const struct stream *stream = stream_need(handle, false, &code);
    if (stream)
        *copy = *stream;
    table_unlock();
    return code;
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status) {
    ENTER(aclrtStreamQuery, stream, status);
    struct stream seen = {0};
    if (!status)
        return error_null("status");
    int code = look_at(stream, &seen);
    if (!code)
        *status = stream_idle(&seen) ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
    return code;
}

aclError aclrtStreamGetId(aclrtStream stream, int32_t *streamId) {
    ENTER(aclrtStreamGetId, stream, streamId);
    struct stream seen = {0};
    if (!streamId)
        return error_null("streamId");
    int code = look_at(stream, &seen);
    if (!code)
        *streamId = seen.id;
    return code;
}

aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t *priority) {
    ENTER(aclrtStreamGetPriority, stream, priority);
    struct stream seen = {0};
    if (!priority)
        return error_null("priority");
    int code = look_at(stream, &seen);
    if (!code)
        *priority = seen.priority;
    return code;
}

aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t *flags) {
    ENTER(aclrtStreamGetFlags, stream, flags);
    struct stream seen = {0};
    if (!flags)
        return error_null("flags");
    int code = look_at(stream, &seen);
    if (!code)
        *flags = seen.flags;
    return code;
}

aclError aclrtCtxGetCurrentDefaultStream(aclrtStream *stream) {
    ENTER(aclrtCtxGetCurrentDefaultStream, stream);
    struct stream seen = {0};
    if (!stream)
        return error_null("stream");
    int code = look_at(NULL, &seen);
    if (!code)
        *stream = seen.handle;
    return code;
}

aclError aclrtDeviceGetStreamPriorityRange(int32_t *leastPriority, int32_t *greatestPriority) {
    ENTER(aclrtDeviceGetStreamPriorityRange, leastPriority, greatestPriority);
    if (!leastPriority || !greatestPriority)
        return error_null(leastPriority ? "greatestPriority" : "leastPriority");
    table_lock();
    bool has_context = context_need();
    table_unlock();
    if (!has_context)
        return ACL_ERROR_RT_CONTEXT_NULL;
    *leastPriority = STREAM_PRIORITY_LOWEST;
    *greatestPriority = STREAM_PRIORITY_HIGHEST;
    return ACL_SUCCESS;
}

aclError aclrtGetThreadLastTaskId(uint32_t *taskId) {
    ENTER(aclrtGetThreadLastTaskId, taskId);
    if (!taskId)
        return error_null("taskId");
    *taskId = stream_last_task();
    return ACL_SUCCESS;
}

/* Whether the product lets a default stream stop on failure. */
static bool default_may_stop(void) {
    static const char *const families[] = {"Ascend910B", "Ascend910_93", "Ascend950"};
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        if (!strncmp(runtime_config()->soc_name, families[i], strlen(families[i])))
            return true;
    }
    return false;
}

static int set_mode(struct stream *stream, uint64_t mode) {
    if (stream->is_default && !default_may_stop())
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID,
                           "%s does not let the default stream stop on failure", runtime_config()->soc_name);
    if (stream->mode_set)
        return error_raise(ERROR_STATE, ACL_ERROR_RT_PARAM_INVALID, "the failure mode of stream %d was set before",
                           stream->id);
    stream->mode_set = true;
    stream->context->stops = stream->context->stops || mode == ACL_STOP_ON_FAILURE;
    return ACL_SUCCESS;
}

static int check_flag(uint64_t value, const char *name) {
    if (value <= 1)
        return ACL_SUCCESS;
    return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "%s %llu is neither 0 nor 1", name,
                       (unsigned long long)value);
}

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
    ENTER(aclrtSetStreamFailureMode, stream, mode);
    int code = check_flag(mode, "mode");
    if (code)
        return code;
    table_lock();
    struct stream *found = stream_need(stream, true, &code);
    if (found)
        code = set_mode(found, mode);
    table_unlock();
    return code;
}

/* Whether an attribute may have that value; returns a code. */
static int check_attribute(aclrtStreamAttr type, const aclrtStreamAttrValue *value) {
    switch ((int)type) {
    case ACL_STREAM_ATTR_FAILURE_MODE:
        return check_flag(value->failureMode, "failureMode");
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
        return check_flag(value->overflowSwitch, "overflowSwitch");
    case ACL_STREAM_ATTR_CACHE_OP_INFO:
        return check_flag(value->cacheOpInfoSwitch, "cacheOpInfoSwitch");
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
    case ACL_STREAM_ATTR_PRIORITY:
        return ACL_SUCCESS;
    default:
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "stmAttrType %d is no attribute", (int)type);
    }
}

/* Sets a checked attribute; a tag and the recording of operators have nothing to act on. */
static int set_attribute(struct stream *stream, aclrtStreamAttr type, const aclrtStreamAttrValue *value) {
    if (type == ACL_STREAM_ATTR_FAILURE_MODE)
        return set_mode(stream, value->failureMode);
    if (type == ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK)
        stream->overflow_switch = value->overflowSwitch;
    if (type == ACL_STREAM_ATTR_PRIORITY)
        stream->priority =
            value->streamPriority < STREAM_PRIORITY_LOWEST ? value->streamPriority : STREAM_PRIORITY_LOWEST;
    return ACL_SUCCESS;
}

aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType, aclrtStreamAttrValue *value) {
    ENTER(aclrtSetStreamAttribute, stream, stmAttrType, IN(value));
    if (!value)
        return error_null("value");
    int code = check_attribute(stmAttrType, value);
    if (code)
        return code;
    table_lock();
    struct stream *found = stream_need(stream, true, &code);
    if (found)
        code = set_attribute(found, stmAttrType, value);
    table_unlock();
    return code;
}

/* Only the structure of the caller changes. */
aclError aclrtSetStreamConfigOpt(aclrtStreamConfigHandle *handle, aclrtStreamConfigAttr attr, const void *attrValue,
                                 size_t valueSize) {
    ENTER(aclrtSetStreamConfigOpt, IN(handle), attr, attrValue, valueSize);
    if (!handle || !attrValue)
        return error_null(handle ? "attrValue" : "handle");
    struct {
        void *field;
        size_t bytes;
    } const fields[] = {[ACL_RT_STREAM_WORK_ADDR_PTR] = {&handle->workptr, sizeof(handle->workptr)},
                        [ACL_RT_STREAM_WORK_SIZE] = {&handle->workSize, sizeof(handle->workSize)},
                        [ACL_RT_STREAM_FLAG] = {&handle->flag, sizeof(handle->flag)},
                        [ACL_RT_STREAM_PRIORITY] = {&handle->priority, sizeof(handle->priority)}};
    if ((uint32_t)attr >= sizeof(fields) / sizeof(fields[0]) || valueSize != fields[attr].bytes)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "attr %d does not take a value of %zu bytes",
                           (int)attr, valueSize);
    memcpy(fields[attr].field, attrValue, valueSize);
    return ACL_SUCCESS;
}
