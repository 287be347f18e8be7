/* External weights: a block of device memory that the caller named, else a file. The file lies in the folder that the
 * caller names, else in "weight" beside the model, else where the model says. Blocks must be large enough and live,
 * files must be there and long enough; what is in them is not loaded.
 *
 * Source: GE source, base/common/file_constant_utils. Thread safety: no state of its own. */
#include "external_weights.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "errors.h"
#include "model_config.h"
#include "model_info.h"
#include "range_task.h"
#include "table.h"

static int path_invalid(const char *path, const char *reason) {
    return error_raise(ERROR_MODEL, ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID, "%.100s %s", path, reason);
}

/* The path of a file of weights; false when it is too long. */
static bool weight_path(const struct model_config *config, const struct external_need *need, char *path) {
    const char *folder = config->paths[ACL_MDL_WEIGHT_PATH_PTR];
    const char *model = model_config_from_file(config) ? config->paths[ACL_MDL_PATH_PTR] : NULL;
    int length;
    if (need->moves && folder)
        length = snprintf(path, PATH_MAX, "%s/%s", folder, file_name_of(need->file));
    else if (need->moves && model)
        length = snprintf(path, PATH_MAX, "%.*sweight/%s", (int)(file_name_of(model) - model), model,
                          file_name_of(need->file));
    else
        length = snprintf(path, PATH_MAX, "%s", need->file);
    return length < PATH_MAX;
}

static int check_file(const struct model_config *config, const struct external_need *need) {
    char path[PATH_MAX];
    struct stat status;
    if (!weight_path(config, need, path) || stat(path, &status) || !S_ISREG(status.st_mode))
        return path_invalid(path, "is no file of weights");
    return (uint64_t)status.st_size >= need->bytes ? ACL_SUCCESS : path_invalid(path, "is too short");
}

static int check_block(const struct external_weight *block, const struct external_need *need) {
    if (block->size < need->bytes)
        return error_raise(ERROR_MODEL, ACL_ERROR_GE_PARAM_INVALID, "%.60s has a block of %llu bytes, %llu are needed",
                           block->file, (unsigned long long)block->size, (unsigned long long)need->bytes);
    table_lock();
    int code = range_check(block->addr, block->size);
    table_unlock();
    return code;
}

int external_weights_check(const struct model_config *config, const struct model_info *info) {
    const char *folder = config->paths[ACL_MDL_WEIGHT_PATH_PTR];
    struct stat status;
    if (folder && (stat(folder, &status) || !S_ISDIR(status.st_mode)))
        return path_invalid(folder, "is no folder");
    if (folder && !info->external_count)
        return error_raise(ERROR_MODEL, ACL_ERROR_GE_PARAM_INVALID, "the model has no external weights");
    for (size_t i = 0; i < info->external_count; i++) {
        const struct external_need *need = &info->externals[i];
        const struct external_weight *block = model_config_external(config, need->file);
        int code = block ? check_block(block, need) : check_file(config, need);
        if (code)
            return code;
    }
    return ACL_SUCCESS;
}
