/* Exported: what a load of a model is told. The handle is a token like all others, so a destroyed one is refused.
 * Thread safety: any thread, any time; the inner functions need the table lock unless the header says otherwise. */
#include <stdlib.h>

#include "acl/acl.h"
#include "entry.h"
#include "errors.h"
#include "handles.h"
#include "model_config.h"
#include "model_handles.h"
#include "table.h"

static uint64_t count;

static int not_alive(const void *handle) {
    return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "model configuration %p is not alive", handle);
}

static void end(const void *handle) {
    struct model_config *config = handle_object(HANDLE_MODEL_CONFIG, handle);
    model_config_clear(config);
    free(config);
    handle_end(handle);
    count--;
}

aclmdlConfigHandle *aclmdlCreateConfigHandle(void) {
    ENTER_OR(NULL, aclmdlCreateConfigHandle);
    struct model_config *config = calloc(1, sizeof(*config));
    table_lock();
    void *handle = config ? handle_new(HANDLE_MODEL_CONFIG, config) : NULL;
    count += handle != NULL;
    table_unlock();
    if (handle)
        return handle;
    free(config);
    error_raise(ERROR_VALUE, ACL_ERROR_BAD_ALLOC, "the host is out of memory");
    return NULL;
}

aclError aclmdlDestroyConfigHandle(aclmdlConfigHandle *handle) {
    ENTER(aclmdlDestroyConfigHandle, handle);
    if (!handle)
        return error_null("handle");
    table_lock();
    bool alive = handle_object(HANDLE_MODEL_CONFIG, handle);
    if (alive)
        end(handle);
    table_unlock();
    return alive ? ACL_SUCCESS : not_alive(handle);
}

aclError aclmdlSetConfigOpt(aclmdlConfigHandle *handle, aclmdlConfigAttr attr, const void *attrValue,
                            size_t valueSize) {
    ENTER(aclmdlSetConfigOpt, handle, attr, attrValue, valueSize);
    if (!handle || !attrValue)
        return error_null(handle ? "attrValue" : "handle");
    table_lock();
    struct model_config *config = handle_object(HANDLE_MODEL_CONFIG, handle);
    int code = config ? model_config_set(config, attr, attrValue, valueSize) : not_alive(handle);
    table_unlock();
    return code;
}

aclError aclmdlSetExternalWeightAddress(aclmdlConfigHandle *handle, const char *weightFileName, void *devPtr,
                                        size_t size) {
    ENTER(aclmdlSetExternalWeightAddress, handle, weightFileName, devPtr, size);
    if (!handle || !weightFileName || !devPtr)
        return error_null(!handle ? "handle" : !weightFileName ? "weightFileName" : "devPtr");
    table_lock();
    struct model_config *config = handle_object(HANDLE_MODEL_CONFIG, handle);
    int code = config ? model_config_add_external(config, weightFileName, devPtr, size) : not_alive(handle);
    table_unlock();
    return code;
}

int model_config_of_handle(const aclmdlConfigHandle *handle, struct model_config *copy) {
    table_lock();
    const struct model_config *config = handle_object(HANDLE_MODEL_CONFIG, handle);
    int code = !config                            ? not_alive(handle)
               : !model_config_copy(config, copy) ? error_raise(ERROR_VALUE, ACL_ERROR_BAD_ALLOC, "no memory")
                                                  : ACL_SUCCESS;
    table_unlock();
    return code;
}

uint64_t model_configs_count(void) {
    return count;
}

void model_configs_drop_all(void) {
    size_t position = 0;
    for (void *handle; (handle = handle_next(HANDLE_MODEL_CONFIG, &position));)
        end(handle);
}
