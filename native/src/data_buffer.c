/* Exported: data buffers, which hand memory to operators and models: an address and a size under one handle. The memory
 * stays the caller's. The handle is a token like all others, so a destroyed one is refused.
 *
 * Thread safety: any thread, any time; the inner functions need the table lock. */
#include "data_buffer.h"

#include <stdlib.h>

#include "acl/acl.h"
#include "entry.h"
#include "errors.h"
#include "handles.h"
#include "table.h"

static uint64_t count;

/* A new buffer; null when the host has no memory. */
static void *make(void *data, size_t size) {
    struct data_buffer *buffer = malloc(sizeof(*buffer));
    void *handle = buffer ? handle_new(HANDLE_DATA_BUFFER, buffer) : NULL;
    if (!handle) {
        free(buffer);
        return NULL;
    }
    *buffer = (struct data_buffer){data, size};
    count++;
    return handle;
}

static void end(const void *handle) {
    free(handle_object(HANDLE_DATA_BUFFER, handle));
    handle_end(handle);
    count--;
}

/* What is behind a handle; all zero when it is not alive. */
static struct data_buffer look_up(const void *handle) {
    struct data_buffer found = {NULL, 0};
    table_lock();
    const struct data_buffer *buffer = handle_object(HANDLE_DATA_BUFFER, handle);
    if (buffer)
        found = *buffer;
    table_unlock();
    return found;
}

aclDataBuffer *aclCreateDataBuffer(void *data, size_t size) {
    ENTER_OR(NULL, aclCreateDataBuffer, data, size);
    table_lock();
    void *handle = make(data, size);
    table_unlock();
    if (!handle)
        error_raise(ERROR_VALUE, ACL_ERROR_BAD_ALLOC, "the host is out of memory");
    return handle;
}

aclError aclDestroyDataBuffer(const aclDataBuffer *dataBuffer) {
    ENTER(aclDestroyDataBuffer, dataBuffer);
    if (!dataBuffer)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "dataBuffer is null");
    table_lock();
    bool alive = handle_object(HANDLE_DATA_BUFFER, dataBuffer);
    if (alive)
        end(dataBuffer);
    table_unlock();
    if (alive)
        return ACL_SUCCESS;
    return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "data buffer %p is not alive", (const void *)dataBuffer);
}

void *aclGetDataBufferAddr(const aclDataBuffer *dataBuffer) {
    ENTER_OR(NULL, aclGetDataBufferAddr, dataBuffer);
    return look_up(dataBuffer).data;
}

size_t aclGetDataBufferSizeV2(const aclDataBuffer *dataBuffer) {
    ENTER_OR(0, aclGetDataBufferSizeV2, dataBuffer);
    return look_up(dataBuffer).size;
}

uint32_t aclGetDataBufferSize(const aclDataBuffer *dataBuffer) {
    ENTER_OR(0, aclGetDataBufferSize, dataBuffer);
    return (uint32_t)look_up(dataBuffer).size;
}

const struct data_buffer *data_buffers_next(size_t *position, void **handle) {
    *handle = handle_next(HANDLE_DATA_BUFFER, position);
    return *handle ? handle_object(HANDLE_DATA_BUFFER, *handle) : NULL;
}

uint64_t data_buffers_count(void) {
    return count;
}

void data_buffers_drop_all(void) {
    size_t position = 0;
    for (void *handle; data_buffers_next(&position, &handle);)
        end(handle);
}
