/* Exported: what goes in and out of a loaded model. A description keeps what it shows alive, so its texts stay when the
 * model is unloaded, until it is destroyed or shows another model. Without a model it has no inputs and no outputs.
 * Thread safety: any thread, any time; the inner functions need the table lock. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "entry.h"
#include "errors.h"
#include "handles.h"
#include "init_state.h"
#include "model_handles.h"
#include "model_info.h"
#include "models.h"
#include "table.h"

struct model_desc {
    struct model_info *info; /* of the model; null: none yet */
    uint32_t id;             /* of the model */
};

static uint64_t count;

static int not_alive(const void *handle) {
    return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "model description %p is not alive", handle);
}

static void end(const void *handle) {
    struct model_desc *desc = handle_object(HANDLE_MODEL_DESC, handle);
    if (desc->info)
        model_info_release(desc->info);
    free(desc);
    handle_end(handle);
    count--;
}

aclmdlDesc *aclmdlCreateDesc(void) {
    ENTER_OR(NULL, aclmdlCreateDesc);
    struct model_desc *desc = calloc(1, sizeof(*desc));
    table_lock();
    void *handle = desc ? handle_new(HANDLE_MODEL_DESC, desc) : NULL;
    count += handle != NULL;
    table_unlock();
    if (handle)
        return handle;
    free(desc);
    error_raise(ERROR_VALUE, ACL_ERROR_BAD_ALLOC, "the host is out of memory");
    return NULL;
}

aclError aclmdlDestroyDesc(aclmdlDesc *modelDesc) {
    ENTER(aclmdlDestroyDesc, modelDesc);
    if (!modelDesc)
        return error_null("modelDesc");
    table_lock();
    bool alive = handle_object(HANDLE_MODEL_DESC, modelDesc);
    if (alive)
        end(modelDesc);
    table_unlock();
    return alive ? ACL_SUCCESS : not_alive(modelDesc);
}

/* Makes the description show a loaded model. The table lock is held. */
static int show(const void *handle, uint32_t id) {
    struct model_desc *desc = handle_object(HANDLE_MODEL_DESC, handle);
    const struct model *model = model_find(id);
    if (!desc)
        return not_alive(handle);
    if (!model)
        return error_raise(ERROR_MODEL, ACL_ERROR_GE_EXEC_MODEL_ID_INVALID, "no model %u is loaded", id);
    model_info_hold(model->info);
    if (desc->info)
        model_info_release(desc->info);
    *desc = (struct model_desc){model->info, id};
    return ACL_SUCCESS;
}

aclError aclmdlGetDesc(aclmdlDesc *modelDesc, uint32_t modelId) {
    ENTER(aclmdlGetDesc, modelDesc, modelId);
    if (!modelDesc)
        return error_null("modelDesc");
    int code = init_state_need();
    if (code)
        return code;
    table_lock();
    code = show(modelDesc, modelId);
    table_unlock();
    return code;
}

static size_t tensors(const void *handle, int side) {
    table_lock();
    const struct model_desc *desc = handle_object(HANDLE_MODEL_DESC, handle);
    size_t found = desc && desc->info ? desc->info->counts[side] : 0;
    table_unlock();
    return found;
}

/* One input or output; false, with the refusal recorded, when there is none. What it points to lasts as the description
 * does. */
static bool find(const void *handle, int side, size_t index, struct tensor_info *tensor) {
    table_lock();
    const struct model_desc *desc = handle_object(HANDLE_MODEL_DESC, handle);
    size_t all = desc && desc->info ? desc->info->counts[side] : 0;
    if (index < all)
        *tensor = desc->info->tensors[side][index];
    table_unlock();
    if (index < all)
        return true;
    error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "index %zu of %zu %s", index, all,
                side == MODEL_INPUTS ? "inputs" : "outputs");
    return false;
}

static int dims_of(const void *handle, int side, size_t index, aclmdlIODims *dims) {
    int code = ACL_SUCCESS;
    if (!handle || !dims)
        return error_null(handle ? "dims" : "modelDesc");
    table_lock();
    const struct model_desc *desc = handle_object(HANDLE_MODEL_DESC, handle);
    size_t all = desc && desc->info ? desc->info->counts[side] : 0;
    const struct tensor_info *tensor = index < all ? &desc->info->tensors[side][index] : NULL;
    if (!desc) {
        code = not_alive(handle);
    } else if (!tensor) {
        code = error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "index %zu of %zu %s", index, all,
                           side == MODEL_INPUTS ? "inputs" : "outputs");
    } else if (tensor->dim_count > ACL_MAX_DIM_CNT) {
        code = error_raise(ERROR_VALUE, ACL_ERROR_STORAGE_OVER_LIMIT, "%zu dimensions, at most %d can be told",
                           tensor->dim_count, ACL_MAX_DIM_CNT);
    } else {
        memset(dims, 0, sizeof(*dims));
        if (strlen(tensor->name) < ACL_MAX_TENSOR_NAME_LEN)
            memcpy(dims->name, tensor->name, strlen(tensor->name));
        else
            snprintf(dims->name, sizeof(dims->name), "acl_modelId_%u_%s_%zu", desc->id,
                     side == MODEL_INPUTS ? "input" : "output", index);
        dims->dimCount = tensor->dim_count;
        memcpy(dims->dims, tensor->dims, tensor->dim_count * sizeof(*dims->dims));
    }
    table_unlock();
    return code;
}

size_t aclmdlGetNumInputs(aclmdlDesc *modelDesc) {
    ENTER_OR(0, aclmdlGetNumInputs, modelDesc);
    return tensors(modelDesc, MODEL_INPUTS);
}

size_t aclmdlGetNumOutputs(aclmdlDesc *modelDesc) {
    ENTER_OR(0, aclmdlGetNumOutputs, modelDesc);
    return tensors(modelDesc, MODEL_OUTPUTS);
}

size_t aclmdlGetInputSizeByIndex(aclmdlDesc *modelDesc, size_t index) {
    struct tensor_info tensor;
    ENTER_OR(0, aclmdlGetInputSizeByIndex, modelDesc, index);
    return find(modelDesc, MODEL_INPUTS, index, &tensor) ? tensor.size : 0;
}

size_t aclmdlGetOutputSizeByIndex(aclmdlDesc *modelDesc, size_t index) {
    struct tensor_info tensor;
    ENTER_OR(0, aclmdlGetOutputSizeByIndex, modelDesc, index);
    return find(modelDesc, MODEL_OUTPUTS, index, &tensor) ? tensor.size : 0;
}

const char *aclmdlGetInputNameByIndex(const aclmdlDesc *modelDesc, size_t index) {
    struct tensor_info tensor;
    ENTER_OR("", aclmdlGetInputNameByIndex, modelDesc, index);
    return find(modelDesc, MODEL_INPUTS, index, &tensor) ? tensor.name : "";
}

const char *aclmdlGetOutputNameByIndex(const aclmdlDesc *modelDesc, size_t index) {
    struct tensor_info tensor;
    ENTER_OR("", aclmdlGetOutputNameByIndex, modelDesc, index);
    return find(modelDesc, MODEL_OUTPUTS, index, &tensor) ? tensor.name : "";
}

aclError aclmdlGetInputDims(const aclmdlDesc *modelDesc, size_t index, aclmdlIODims *dims) {
    ENTER(aclmdlGetInputDims, modelDesc, index, dims);
    return dims_of(modelDesc, MODEL_INPUTS, index, dims);
}

aclError aclmdlGetOutputDims(const aclmdlDesc *modelDesc, size_t index, aclmdlIODims *dims) {
    ENTER(aclmdlGetOutputDims, modelDesc, index, dims);
    return dims_of(modelDesc, MODEL_OUTPUTS, index, dims);
}

aclFormat aclmdlGetInputFormat(const aclmdlDesc *modelDesc, size_t index) {
    struct tensor_info tensor;
    ENTER_OR(ACL_FORMAT_UNDEFINED, aclmdlGetInputFormat, modelDesc, index);
    return find(modelDesc, MODEL_INPUTS, index, &tensor) ? (aclFormat)tensor.format : ACL_FORMAT_UNDEFINED;
}

aclFormat aclmdlGetOutputFormat(const aclmdlDesc *modelDesc, size_t index) {
    struct tensor_info tensor;
    ENTER_OR(ACL_FORMAT_UNDEFINED, aclmdlGetOutputFormat, modelDesc, index);
    return find(modelDesc, MODEL_OUTPUTS, index, &tensor) ? (aclFormat)tensor.format : ACL_FORMAT_UNDEFINED;
}

aclDataType aclmdlGetInputDataType(const aclmdlDesc *modelDesc, size_t index) {
    struct tensor_info tensor;
    ENTER_OR(ACL_DT_UNDEFINED, aclmdlGetInputDataType, modelDesc, index);
    return find(modelDesc, MODEL_INPUTS, index, &tensor) ? (aclDataType)tensor.type : ACL_DT_UNDEFINED;
}

aclDataType aclmdlGetOutputDataType(const aclmdlDesc *modelDesc, size_t index) {
    struct tensor_info tensor;
    ENTER_OR(ACL_DT_UNDEFINED, aclmdlGetOutputDataType, modelDesc, index);
    return find(modelDesc, MODEL_OUTPUTS, index, &tensor) ? (aclDataType)tensor.type : ACL_DT_UNDEFINED;
}

uint64_t model_descs_count(void) {
    return count;
}

void model_descs_drop_all(void) {
    size_t position = 0;
    for (void *handle; (handle = handle_next(HANDLE_MODEL_DESC, &position));)
        end(handle);
}
