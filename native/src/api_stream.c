/* Exported: making and ending streams, waiting for them, asking about them.
 *
 * A null stream is the default stream of the current context, except where a stream is destroyed. Waiting and asking
 * work for streams of any context, the rest for those of the current one. Time-outs are milliseconds, -1 waits for
 * ever.
 *
 * Thread safety: any thread, any time. A stream that one thread destroys while another waits for it lets that one go.
 */
#include "acl/acl.h"
#include "context.h"
#include "device.h"
#include "entry.h"
#include "errors.h"
#include "runtime.h"
#include "stream.h"
#include "stream_queue.h"
#include "stream_state.h"
#include "table.h"
#include "timeouts.h"

static aclError create(aclrtStream *out, uint32_t priority, uint32_t flags) {
    struct stream *stream = NULL;
    if (!out)
        return error_null("stream");
    table_lock();
    struct context *context = context_need();
    int code = context ? stream_create(context, priority, flags, &stream) : ACL_ERROR_RT_CONTEXT_NULL;
    void *handle = code ? NULL : stream->handle;
    table_unlock();
    if (code)
        return code;
    *out = handle;
    stream_state_tell(handle, ACL_RT_STREAM_STATE_CREATE_POST);
    return ACL_SUCCESS;
}

aclError aclrtCreateStream(aclrtStream *stream) {
    ENTER(aclrtCreateStream, stream);
    return create(stream, STREAM_PRIORITY_HIGHEST, 0);
}

aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag) {
    ENTER(aclrtCreateStreamWithConfig, stream, priority, flag);
    return create(stream, priority, flag);
}

/* The stream to destroy or abort; null is none. The table lock is held. */
static struct stream *own_stream(const void *handle, int *code) {
    struct stream *stream = stream_need(handle, true, code);
    if (!stream || !stream->is_default || runtime_config()->profile->default_stream_ends)
        return stream;
    *code = error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID,
                        "stream %p is the default stream of its context and ends with it", handle);
    return NULL;
}

static aclError destroy(aclrtStream handle, bool force) {
    int code;
    if (!handle)
        return error_null("stream");
    table_lock();
    bool good = own_stream(handle, &code);
    table_unlock();
    if (!good)
        return code;
    stream_state_tell(handle, ACL_RT_STREAM_STATE_DESTROY_PRE);
    table_lock();
    struct stream *stream = own_stream(handle, &code);
    if (stream)
        code = stream_destroy(stream, force);
    table_unlock();
    return code;
}

aclError aclrtDestroyStream(aclrtStream stream) {
    ENTER(aclrtDestroyStream, stream);
    return destroy(stream, false);
}

aclError aclrtDestroyStreamForce(aclrtStream stream) {
    ENTER(aclrtDestroyStreamForce, stream);
    return destroy(stream, true);
}

/* Does something to a stream that may not be null; returns a code. */
static int act_on(aclrtStream handle, void (*act)(struct stream *)) {
    int code;
    if (!handle)
        return error_null("stream");
    table_lock();
    struct stream *found = stream_need(handle, true, &code);
    if (found)
        act(found);
    table_unlock();
    return code;
}

aclError aclrtStreamAbort(aclrtStream stream) {
    ENTER(aclrtStreamAbort, stream);
    return act_on(stream, stream_abort);
}

aclError aclrtStreamStop(aclrtStream stream) {
    ENTER(aclrtStreamStop, stream);
    return act_on(stream, stream_stop);
}

/* Everything after the entry; the table lock is held. */
static int abort_device(int32_t id, moment deadline) {
    struct device *device = device_at(id);
    if (!device)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_INVALID_DEVICEID, "device id %d is not in 0..%u", id,
                           runtime_config()->devices - 1);
    if (!device->open || device->ending)
        return error_raise(ERROR_STATE, ACL_ERROR_RT_CONTEXT_NULL, "device %d is not set in this process", id);
    return streams_abort(device, deadline);
}

aclError aclrtDeviceTaskAbort(int32_t deviceId, uint32_t timeout) {
    ENTER(aclrtDeviceTaskAbort, deviceId, timeout);
    moment deadline = timeout ? table_after_ms(timeout) : NEVER;
    table_lock();
    int code = abort_device(deviceId, deadline);
    table_unlock();
    return code;
}

static aclError synchronize(aclrtStream handle, moment deadline) {
    int code;
    table_lock();
    struct stream *stream = stream_need(handle, false, &code);
    if (stream)
        code = stream_synchronize(stream, deadline);
    table_unlock();
    return code;
}

aclError aclrtSynchronizeStream(aclrtStream stream) {
    ENTER(aclrtSynchronizeStream, stream);
    return synchronize(stream, NEVER);
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
    ENTER(aclrtSynchronizeStreamWithTimeout, stream, timeout);
    moment deadline;
    int code = timeout_read(timeout, &deadline);
    return code ? code : synchronize(stream, deadline);
}

static aclError synchronize_device(moment deadline) {
    table_lock();
    const struct context *context = context_need();
    int code = context ? streams_synchronize(context, deadline) : ACL_ERROR_RT_CONTEXT_NULL;
    table_unlock();
    return code;
}

aclError aclrtSynchronizeDevice(void) {
    ENTER(aclrtSynchronizeDevice);
    return synchronize_device(NEVER);
}

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
    ENTER(aclrtSynchronizeDeviceWithTimeout, timeout);
    moment deadline;
    int code = timeout_read(timeout, &deadline);
    return code ? code : synchronize_device(deadline);
}
