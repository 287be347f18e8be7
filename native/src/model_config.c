/* Options of a load. A value is checked for its size first, then for its range; texts are copied. Options that this
 * release of the interface names but does not act on (prepared parts of a model, queues of buffers, policies) are kept.
 *
 * Thread safety: callers keep other threads away from the object. */
#include "model_config.h"

#include <stdlib.h>
#include <string.h>

#include "errors.h"
#include "stream.h"

#define EXTERNAL_MULTIPLE 32

enum value_kind { VALUE_INT32, VALUE_SIZE, VALUE_POINTER, VALUE_PATH, VALUE_ANY_NUMBER };

static const struct {
    uint8_t kind;      /* a value_kind */
    bool ranged;       /* low and high count */
    int64_t low, high; /* of a number */
    const char *name;  /* without the prefix */
} options[MODEL_OPTIONS] = {
    [ACL_MDL_PRIORITY_INT32] = {VALUE_INT32, true, STREAM_PRIORITY_HIGHEST, STREAM_PRIORITY_LOWEST, "PRIORITY"},
    [ACL_MDL_LOAD_TYPE_SIZET] = {VALUE_SIZE, true, ACL_MDL_LOAD_FROM_FILE, ACL_MDL_LOAD_FROM_MEM_WITH_Q, "LOAD_TYPE"},
    [ACL_MDL_PATH_PTR] = {.kind = VALUE_PATH, .name = "PATH"},
    [ACL_MDL_MEM_ADDR_PTR] = {.kind = VALUE_POINTER, .name = "MEM_ADDR"},
    [ACL_MDL_MEM_SIZET] = {.kind = VALUE_SIZE, .name = "MEM"},
    [ACL_MDL_WEIGHT_ADDR_PTR] = {.kind = VALUE_POINTER, .name = "WEIGHT_ADDR"},
    [ACL_MDL_WEIGHT_SIZET] = {.kind = VALUE_SIZE, .name = "WEIGHT"},
    [ACL_MDL_WORKSPACE_ADDR_PTR] = {.kind = VALUE_POINTER, .name = "WORKSPACE_ADDR"},
    [ACL_MDL_WORKSPACE_SIZET] = {.kind = VALUE_SIZE, .name = "WORKSPACE"},
    [ACL_MDL_INPUTQ_NUM_SIZET] = {.kind = VALUE_SIZE, .name = "INPUTQ_NUM"},
    [ACL_MDL_INPUTQ_ADDR_PTR] = {.kind = VALUE_POINTER, .name = "INPUTQ_ADDR"},
    [ACL_MDL_OUTPUTQ_NUM_SIZET] = {.kind = VALUE_SIZE, .name = "OUTPUTQ_NUM"},
    [ACL_MDL_OUTPUTQ_ADDR_PTR] = {.kind = VALUE_POINTER, .name = "OUTPUTQ_ADDR"},
    [ACL_MDL_WORKSPACE_MEM_OPTIMIZE] = {VALUE_SIZE, true, 0, 1, "WORKSPACE_MEM_OPTIMIZE"},
    [ACL_MDL_WEIGHT_PATH_PTR] = {.kind = VALUE_PATH, .name = "WEIGHT_PATH"},
    [ACL_MDL_MODEL_DESC_PTR] = {.kind = VALUE_POINTER, .name = "MODEL_DESC"},
    [ACL_MDL_MODEL_DESC_SIZET] = {.kind = VALUE_SIZE, .name = "MODEL_DESC_SIZET"},
    [ACL_MDL_KERNEL_PTR] = {.kind = VALUE_POINTER, .name = "KERNEL"},
    [ACL_MDL_KERNEL_SIZET] = {.kind = VALUE_SIZE, .name = "KERNEL_SIZET"},
    [ACL_MDL_KERNEL_ARGS_PTR] = {.kind = VALUE_POINTER, .name = "KERNEL_ARGS"},
    [ACL_MDL_KERNEL_ARGS_SIZET] = {.kind = VALUE_SIZE, .name = "KERNEL_ARGS_SIZET"},
    [ACL_MDL_STATIC_TASK_PTR] = {.kind = VALUE_POINTER, .name = "STATIC_TASK"},
    [ACL_MDL_STATIC_TASK_SIZET] = {.kind = VALUE_SIZE, .name = "STATIC_TASK_SIZET"},
    [ACL_MDL_DYNAMIC_TASK_PTR] = {.kind = VALUE_POINTER, .name = "DYNAMIC_TASK"},
    [ACL_MDL_DYNAMIC_TASK_SIZET] = {.kind = VALUE_SIZE, .name = "DYNAMIC_TASK_SIZET"},
    [ACL_MDL_MEM_MALLOC_POLICY_SIZET] = {.kind = VALUE_SIZE, .name = "MEM_MALLOC_POLICY"},
    [ACL_MDL_FIFO_PTR] = {.kind = VALUE_POINTER, .name = "FIFO"},
    [ACL_MDL_FIFO_SIZET] = {.kind = VALUE_SIZE, .name = "FIFO_SIZET"},
    [ACL_MDL_WITHOUT_GRAPH_INT32] = {VALUE_INT32, true, 0, 1, "WITHOUT_GRAPH"},
    [ACL_NPU_PERF_MODE] = {.kind = VALUE_ANY_NUMBER, .name = "NPU_PERF_MODE"},
};

static int refuse(const char *name, const char *reason) {
    return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "%s %s", name, reason);
}

static bool is_right_size(unsigned kind, size_t size) {
    if (kind == VALUE_ANY_NUMBER)
        return size == sizeof(int32_t) || size == sizeof(size_t);
    return size == (kind == VALUE_INT32 ? sizeof(int32_t) : sizeof(size_t));
}

static int set_path(struct model_config *config, unsigned option, const char *path) {
    if (!path || !*path)
        return refuse(options[option].name, "is no path");
    char *copy = strdup(path);
    if (!copy)
        return error_raise(ERROR_VALUE, ACL_ERROR_BAD_ALLOC, "the host is out of memory");
    free(config->paths[option]);
    config->paths[option] = copy;
    config->given[option] = true;
    return ACL_SUCCESS;
}

int model_config_set(struct model_config *config, aclmdlConfigAttr attr, const void *value, size_t size) {
    unsigned option = (unsigned)attr;
    uint64_t number = 0;
    if (option >= MODEL_OPTIONS)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "attr %d is none of 0..%d", (int)attr,
                           MODEL_OPTIONS - 1);
    if (!is_right_size(options[option].kind, size))
        return refuse(options[option].name, "has a value of another size");
    memcpy(&number, value, size);
    if (options[option].kind == VALUE_PATH)
        return set_path(config, option, (const char *)(uintptr_t)number);
    int64_t whole = size == sizeof(int32_t) ? (int32_t)(uint32_t)number : (int64_t)number;
    if (options[option].ranged && (whole < options[option].low || whole > options[option].high))
        return refuse(options[option].name, "is out of its range");
    config->values[option] = number;
    config->given[option] = true;
    return ACL_SUCCESS;
}

const char *file_name_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const struct external_weight *model_config_external(const struct model_config *config, const char *file) {
    for (size_t i = 0; i < config->external_count; i++) {
        if (!strcmp(config->externals[i].file, file_name_of(file)))
            return &config->externals[i];
    }
    return NULL;
}

int model_config_add_external(struct model_config *config, const char *file, void *ptr, size_t size) {
    if (!*file || file != file_name_of(file))
        return refuse("weightFileName", "is empty or has folders; give the name alone");
    if (!size || size % EXTERNAL_MULTIPLE)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "size %zu is 0 or no multiple of %d", size,
                           EXTERNAL_MULTIPLE);
    const struct external_weight *known = model_config_external(config, file);
    if (known) {
        struct external_weight *replaced = &config->externals[known - config->externals];
        replaced->addr = (uint64_t)(uintptr_t)ptr;
        replaced->size = size;
        return ACL_SUCCESS;
    }
    struct external_weight *larger = realloc(config->externals, (config->external_count + 1) * sizeof(*larger));
    if (larger)
        config->externals = larger;
    char *name = larger ? strdup(file) : NULL;
    if (!name)
        return error_raise(ERROR_VALUE, ACL_ERROR_BAD_ALLOC, "the host is out of memory");
    larger[config->external_count++] = (struct external_weight){name, (uint64_t)(uintptr_t)ptr, size};
    return ACL_SUCCESS;
}

bool model_config_from_file(const struct model_config *config) {
    uint64_t type = config->values[ACL_MDL_LOAD_TYPE_SIZET];
    return type == ACL_MDL_LOAD_FROM_FILE || type == ACL_MDL_LOAD_FROM_FILE_WITH_MEM ||
           type == ACL_MDL_LOAD_FROM_FILE_WITH_Q;
}

int model_config_check(const struct model_config *config) {
    uint64_t type = config->values[ACL_MDL_LOAD_TYPE_SIZET];
    if (!config->given[ACL_MDL_LOAD_TYPE_SIZET])
        return refuse("LOAD_TYPE", "is not set");
    if (model_config_from_file(config) && !config->given[ACL_MDL_PATH_PTR])
        return refuse("PATH", "is not set");
    if (!model_config_from_file(config) &&
        (!config->values[ACL_MDL_MEM_ADDR_PTR] || !config->values[ACL_MDL_MEM_SIZET]))
        return refuse("MEM_ADDR or MEM", "is not set, null or 0");
    if (type < ACL_MDL_LOAD_FROM_FILE_WITH_Q)
        return ACL_SUCCESS;
    for (unsigned option = ACL_MDL_INPUTQ_NUM_SIZET; option <= ACL_MDL_OUTPUTQ_ADDR_PTR; option++) {
        if (!config->values[option])
            return refuse(options[option].name, "is not set, null or 0");
    }
    return error_raise(ERROR_VALUE, ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "models with queues are not loaded here");
}

bool model_config_copy(const struct model_config *config, struct model_config *copy) {
    bool good = true;
    *copy = *config;
    copy->externals = NULL;
    copy->external_count = 0;
    for (unsigned option = 0; option < MODEL_OPTIONS; option++) {
        copy->paths[option] = config->paths[option] ? strdup(config->paths[option]) : NULL;
        good = good && !config->paths[option] == !copy->paths[option];
    }
    for (size_t i = 0; good && i < config->external_count; i++) {
        const struct external_weight *block = &config->externals[i];
        good = !model_config_add_external(copy, block->file, (void *)(uintptr_t)block->addr, block->size);
    }
    if (!good)
        model_config_clear(copy);
    return good;
}

void model_config_clear(struct model_config *config) {
    for (unsigned option = 0; option < MODEL_OPTIONS; option++)
        free(config->paths[option]);
    for (size_t i = 0; i < config->external_count; i++)
        free(config->externals[i].file);
    free(config->externals);
    *config = (struct model_config){.external_count = 0};
}
