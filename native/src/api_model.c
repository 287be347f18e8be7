/* Exported: how much memory a model needs, loading and unloading it. All of them need aclInit before, as the engine
 * that loads models on a card does. Thread safety: any thread, any time. */
#include <stdlib.h>

#include "acl/acl.h"
#include "entry.h"
#include "errors.h"
#include "init_state.h"
#include "model_config.h"
#include "model_handles.h"
#include "models.h"
#include "om_file.h"
#include "om_schema.h"
#include "table.h"

/* Field of domi.ModelTaskDef. */
enum { TASKS_MEMORY_SIZE = 11 };

/* Work memory of a static model: what its list of tasks says. */
static int read_work_size(const struct om_file *file, size_t *size) {
    const struct om_partition *part = &file->models[0].parts[OM_TASKS];
    struct om_piece piece;
    struct wire_field field = {.value = 0};
    *size = 0;
    if (file->dynamic || !part->size)
        return ACL_SUCCESS;
    bool good = part->size <= INT32_MAX && om_source_take(&file->source, part->offset, part->size, &piece);
    if (good) {
        good = om_schema_is_task_list(piece.bytes);
        if (good)
            wire_find(wire_open(piece.bytes), TASKS_MEMORY_SIZE, WIRE_VARINT, &field);
        om_piece_end(&piece);
    }
    *size = (size_t)field.value;
    return good ? ACL_SUCCESS
                : error_raise(ERROR_MODEL, ACL_ERROR_GE_EXEC_LOAD_TASK_PARTITION_FAILED,
                              "%llu bytes are no list of tasks", (unsigned long long)part->size);
}

static int query(const char *path, const void *model, size_t size, size_t *work, size_t *weight) {
    struct om_file file;
    int code = init_state_need();
    if (!code)
        code = om_file_open(&file, path, model, size);
    if (code)
        return code;
    if (file.left)
        code = error_raise(ERROR_MODEL, ACL_ERROR_GE_FAILURE, "%llu bytes are left behind the model",
                           (unsigned long long)file.left);
    else if (!file.dynamic && file.models[0].partitions == 1)
        code = error_raise(ERROR_MODEL, ACL_ERROR_GE_PARAM_INVALID, "the model has a graph only and cannot be run");
    size_t found = 0;
    if (!code)
        code = read_work_size(&file, &found);
    if (!code) {
        *work = found;
        *weight = (size_t)om_file_weight_size(&file);
    }
    om_file_close(&file);
    return code;
}

aclError aclmdlQuerySize(const char *fileName, size_t *workSize, size_t *weightSize) {
    ENTER(aclmdlQuerySize, fileName, workSize, weightSize);
    if (!fileName || !workSize || !weightSize)
        return error_null(!fileName ? "fileName" : !workSize ? "workSize" : "weightSize");
    return query(fileName, NULL, 0, workSize, weightSize);
}

aclError aclmdlQuerySizeFromMem(const void *model, size_t modelSize, size_t *workSize, size_t *weightSize) {
    ENTER(aclmdlQuerySizeFromMem, model, modelSize, workSize, weightSize);
    if (!model || !workSize || !weightSize)
        return error_null(!model ? "model" : !workSize ? "workSize" : "weightSize");
    if (!modelSize)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "modelSize is 0");
    return query(NULL, model, modelSize, workSize, weightSize);
}

aclError aclmdlLoadWithConfig(const aclmdlConfigHandle *handle, uint32_t *modelId) {
    struct model_config config;
    ENTER(aclmdlLoadWithConfig, handle, modelId);
    if (!handle || !modelId)
        return error_null(handle ? "modelId" : "handle");
    int code = model_config_of_handle(handle, &config);
    if (code)
        return code;
    code = model_config_check(&config);
    if (!code)
        code = init_state_need();
    if (!code)
        code = model_load(&config, modelId);
    model_config_clear(&config);
    return code;
}

aclError aclmdlUnload(uint32_t modelId) {
    ENTER(aclmdlUnload, modelId);
    int code = init_state_need();
    return code ? code : model_unload(modelId);
}
