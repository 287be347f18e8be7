/* Loaded models.
 *
 * A load reads and checks the file, sees to it that the memory is there (the caller's, or blocks of its own), and
 * copies the weights of all models of the file into one place, one after the other. Kernels, tasks, variables and files
 * of external weights are looked at as far as the checks need, and not loaded: nothing runs here.
 *
 * Thread safety: the list needs the table lock. A load holds its device, so a tear-down waits for it. */
#include "models.h"

#include <stdlib.h>

#include "acl/acl_base.h"
#include "blocks.h"
#include "context.h"
#include "copy.h"
#include "device.h"
#include "errors.h"
#include "external_weights.h"
#include "model_config.h"
#include "model_info.h"
#include "range_task.h"
#include "table.h"

#define COPY_BYTES MIB

enum { WORK, WEIGHTS };

/* Which options give memory of a kind. */
static const struct {
    const char *name;      /* for messages */
    uint8_t address, size; /* options */
} memory[] = {
    [WORK] = {"work memory", ACL_MDL_WORKSPACE_ADDR_PTR, ACL_MDL_WORKSPACE_SIZET},
    [WEIGHTS] = {"memory for weights", ACL_MDL_WEIGHT_ADDR_PTR, ACL_MDL_WEIGHT_SIZET},
};

static struct model *first;
static uint32_t last_id;

/* Where the list points to the model; null when there is none of that number. */
static struct model **find_link(uint32_t id) {
    struct model **link = &first;
    while (*link && (*link)->id != id)
        link = &(*link)->next;
    return *link ? link : NULL;
}

struct model *model_find(uint32_t id) {
    struct model **link = find_link(id);
    return link ? *link : NULL;
}

const struct model *models_first(void) {
    return first;
}

uint64_t models_count(void) {
    uint64_t count = 0;
    for (const struct model *model = first; model; model = model->next)
        count++;
    return count;
}

void models_drop_device(const struct device *device) {
    for (struct model **link = &first; *link;) {
        struct model *model = *link;
        if (model->device != device) {
            link = &model->next;
            continue;
        }
        *link = model->next;
        model_info_release(model->info);
        free(model);
    }
}

/* Gives up a model that is not in the list, with its blocks. May give the table lock up. */
static void end(struct model *model) {
    for (int kind = WORK; kind <= WEIGHTS; kind++) {
        if (model->own[kind])
            block_free(model->own[kind]);
    }
    if (model->info)
        model_info_release(model->info);
    free(model);
}

/* A block of the library's own. The table lock is held. */
static int take_block(struct device *device, uint64_t bytes, uint64_t *addr) {
    struct block_request request = {.asked = bytes, .fall_back = true};
    request.rounded = bytes > INT64_MAX ? 0 : (bytes + 31) & ~(uint64_t)31;
    request.cls = request.rounded > MIB ? PAGE_2M : PAGE_4K;
    if (request.rounded && block_malloc(device, &request, addr))
        return ACL_SUCCESS;
    *addr = 0;
    return error_raise(ERROR_MODEL, ACL_ERROR_GE_MEMORY_ALLOCATION, "%llu bytes do not fit device %d",
                       (unsigned long long)bytes, device->id);
}

/* Sees to the memory of one kind: that of the caller where there is some, else a block of the library. */
static int provide(struct model *model, int kind, const struct model_config *config, uint64_t bytes, uint64_t *addr) {
    uint64_t type = config->values[ACL_MDL_LOAD_TYPE_SIZET];
    uint64_t given = config->values[memory[kind].address], size = config->values[memory[kind].size];
    *addr = 0;
    if (!bytes)
        return ACL_SUCCESS;
    if (!given || (type != ACL_MDL_LOAD_FROM_FILE_WITH_MEM && type != ACL_MDL_LOAD_FROM_MEM_WITH_MEM)) {
        int code = take_block(model->device, bytes, addr);
        model->own[kind] = *addr;
        return code;
    }
    *addr = given;
    if (size < bytes)
        return error_raise(ERROR_MODEL, ACL_ERROR_GE_PARAM_INVALID, "%s of %llu bytes is given, %llu are needed",
                           memory[kind].name, (unsigned long long)size, (unsigned long long)bytes);
    return range_check(given, size);
}

/* Copies a part of the file to the device, a piece at a time. */
static int copy_part(const struct om_source *source, const struct om_partition *part, uint64_t addr, void *buffer) {
    for (uint64_t done = 0; done < part->size;) {
        uint64_t piece = part->size - done < COPY_BYTES ? part->size - done : COPY_BYTES;
        if (!om_source_read(source, part->offset + done, buffer, (size_t)piece))
            return error_raise(ERROR_MODEL, ACL_ERROR_GE_EXEC_LOAD_WEIGHT_PARTITION_FAILED,
                               "weights of %llu bytes cannot be read", (unsigned long long)part->size);
        int code = copy_bytes(addr + done, (uint64_t)(uintptr_t)buffer, piece);
        if (code)
            return code;
        done += piece;
    }
    return ACL_SUCCESS;
}

static int copy_weights(const struct om_file *file, uint64_t addr) {
    void *buffer = malloc(COPY_BYTES);
    int code = buffer ? ACL_SUCCESS : error_raise(ERROR_MODEL, ACL_ERROR_GE_MEMORY_ALLOCATION, "no buffer");
    for (size_t i = 0; !code && i < file->count; i++) {
        const struct om_partition *part = &file->models[i].parts[OM_WEIGHTS];
        code = copy_part(&file->source, part, addr, buffer);
        addr += part->size;
    }
    free(buffer);
    return code;
}

/* Fills a model: what it is, its memory, its weights. What it got when it fails is in it. */
static int fill(struct model *model, const struct om_file *file, const struct model_config *config) {
    uint64_t work = 0, weights = 0;
    int code = model_info_read(file, &model->info);
    if (!code && model->info->dynamic && config->values[ACL_MDL_WITHOUT_GRAPH_INT32])
        code = error_raise(ERROR_MODEL, ACL_ERROR_GE_PARAM_INVALID, "a dynamic model needs its graph");
    if (!code)
        code = external_weights_check(config, model->info);
    if (code)
        return code;
    table_lock();
    code = provide(model, WORK, config, model->info->work_size, &work);
    if (!code)
        code = provide(model, WEIGHTS, config, model->info->weight_size, &weights);
    table_unlock();
    return code ? code : copy_weights(file, weights);
}

int model_load(const struct model_config *config, uint32_t *id) {
    struct om_file file;
    struct model *model = calloc(1, sizeof(*model));
    if (!model)
        return error_raise(ERROR_MODEL, ACL_ERROR_GE_MEMORY_ALLOCATION, "the host is out of memory");
    table_lock();
    struct context *context = context_need();
    if (context) {
        model->device = context->device;
        device_hold(model->device);
    }
    table_unlock();
    if (!context) {
        free(model);
        return ACL_ERROR_RT_CONTEXT_NULL;
    }
    const char *path = model_config_from_file(config) ? config->paths[ACL_MDL_PATH_PTR] : NULL;
    int code = om_file_open(&file, path, (const void *)(uintptr_t)config->values[ACL_MDL_MEM_ADDR_PTR],
                            (size_t)config->values[ACL_MDL_MEM_SIZET]);
    if (!code) {
        code = fill(model, &file, config);
        om_file_close(&file);
    }
    table_lock();
    device_release(model->device);
    if (code) {
        end(model);
    } else {
        model->id = *id = ++last_id;
        model->next = first;
        first = model;
    }
    table_unlock();
    return code;
}

int model_unload(uint32_t id) {
    table_lock();
    struct model **link = find_link(id), *model = link ? *link : NULL;
    if (model) {
        *link = model->next;
        end(model);
    }
    table_unlock();
    return model ? ACL_SUCCESS
                 : error_raise(ERROR_MODEL, ACL_ERROR_GE_EXEC_MODEL_ID_INVALID, "no model %u is loaded", id);
}
