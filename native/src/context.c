/* Contexts. What a thread has as current is a handle, looked up at every use: a context that another thread destroyed
 * or that went with its device is simply not found any more. The default context of a device is one object shared by
 * all threads. A context takes its streams and events with it.
 *
 * Thread safety: callers hold the table lock, which is given up while streams end; the current handle belongs to the
 * thread. */
#include "context.h"

#include <stdlib.h>

#include "acl/acl_base.h"
#include "device.h"
#include "errors.h"
#include "event.h"
#include "handles.h"
#include "init_state.h"
#include "stream.h"

static _Thread_local void *current;
static uint64_t explicit_contexts;

struct context *context_current(void) {
    return current ? handle_object(HANDLE_CONTEXT, current) : NULL;
}

void *context_current_handle(void) {
    return current;
}

/* The thread's current context changes; one that had none starts with an empty message list. */
static void make_current(void *handle) {
    if (!context_current())
        error_forget_messages();
    current = handle;
}

struct context *context_need(void) {
    struct context *context = context_current();
    struct device *device = context ? NULL : device_at(init_state_default_device());
    if (device && device->set_count && !device->closing) {
        make_current(device->default_context);
    } else if (device) {
        context_set_device(device);
    }
    context = context_current();
    if (!context)
        error_raise(ERROR_STATE, ACL_ERROR_RT_CONTEXT_NULL, "no device is set on this thread; call aclrtSetDevice");
    return context;
}

static int no_host_memory(const struct device *device) {
    return error_raise(ERROR_MEMORY, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL,
                       "device %d cannot be opened: the host has no memory or address space for it", device->id);
}

/* Makes a context with its default stream; returns a code. */
static int new_context(struct device *device, bool explicit_one, void **made) {
    struct context *context = calloc(1, sizeof(*context));
    void *handle = context ? handle_new(HANDLE_CONTEXT, context) : NULL;
    if (!handle) {
        free(context);
        return no_host_memory(device);
    }
    *context = (struct context){.device = device, .explicit_one = explicit_one};
    int code = stream_create_default(context);
    if (code) {
        handle_end(handle);
        free(context);
        return code;
    }
    *made = handle;
    return ACL_SUCCESS;
}

/* The handle dies: the context is current nowhere any more. */
static struct context *end_handle(const void *handle) {
    struct context *context = handle_object(HANDLE_CONTEXT, handle);
    explicit_contexts -= context->explicit_one;
    handle_end(handle);
    return context;
}

/* What belongs to a context whose streams have ended goes with it. */
static void end_context(struct context *context) {
    events_end(context);
    free(context);
}

int context_set_device(struct device *device) {
    if (!device_open(device))
        return no_host_memory(device);
    int code = device->set_count ? ACL_SUCCESS : new_context(device, false, &device->default_context);
    if (code)
        return code;
    device->set_count++;
    make_current(device->default_context);
    return ACL_SUCCESS;
}

int context_create(struct device *device, void **handle) {
    if (!device_open(device))
        return no_host_memory(device);
    void *made;
    int code = new_context(device, true, &made);
    if (code)
        return code;
    device->contexts++;
    explicit_contexts++;
    make_current(made);
    *handle = made;
    return ACL_SUCCESS;
}

int context_destroy(const void *handle) {
    struct context *context = handle_object(HANDLE_CONTEXT, handle);
    if (!context)
        return error_raise(ERROR_STATE, ACL_ERROR_RT_CONTEXT_NULL, "context %p is not alive", handle);
    if (!context->explicit_one)
        return error_raise(ERROR_STATE, ACL_ERROR_RT_CONTEXT_NULL,
                           "context %p is the default context of device %d; reset the device instead", handle,
                           context->device->id);
    struct device *device = context->device;
    end_handle(handle);
    device->contexts--;
    streams_end(device, context, false);
    end_context(context);
    if (device->open && !device->contexts && !device->set_count && !device->ending)
        device_close(device, false);
    return ACL_SUCCESS;
}

bool context_make_current(void *handle) {
    if (!handle_object(HANDLE_CONTEXT, handle))
        return false;
    make_current(handle);
    return true;
}

void context_end_device(struct device *device, bool force) {
    size_t position = 0;
    struct context *ended = NULL;
    for (void *handle; (handle = handle_next(HANDLE_CONTEXT, &position));) {
        struct context *context = handle_object(HANDLE_CONTEXT, handle);
        if (context->device != device)
            continue;
        end_handle(handle);
        context->next = ended;
        ended = context;
    }
    device->contexts = 0;
    device->default_context = NULL;
    streams_end(device, NULL, force);
    while (ended) {
        struct context *next = ended->next;
        end_context(ended);
        ended = next;
    }
}

uint64_t context_count(void) {
    return explicit_contexts;
}
