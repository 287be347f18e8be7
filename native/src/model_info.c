/* What is kept of a model: the definitions are checked as a whole, read, and given up.
 *
 * Thread safety: reading has no state outside the caller's; the number of users needs the table lock. */
#include "model_info.h"

#include <stdlib.h>
#include <string.h>

#include "acl/acl_mdl.h"
#include "errors.h"
#include "om_definition.h"
#include "om_schema.h"

static int out_of_memory(void) {
    return error_raise(ERROR_MODEL, ACL_ERROR_GE_MEMORY_ALLOCATION, "the host is out of memory");
}

static char *copy_text(struct bytes text) {
    char *copy = malloc(text.size + 1);
    if (copy) {
        if (text.size)
            memcpy(copy, text.at, text.size);
        copy[text.size] = 0;
    }
    return copy;
}

/* Room for one more item of a list; null when the host has no memory, then the list is as before. */
static void *grown(void *items, size_t count, size_t item_bytes) {
    bool full = !(count & (count - 1));
    return full ? realloc(items, (count ? count * 2 : 1) * item_bytes) : items;
}

int model_info_add_tensor(struct model_info *info, int side, struct bytes name, const struct om_tensor *tensor,
                          const struct tensor_info *more) {
    size_t count = info->counts[side];
    struct tensor_info added = *more;
    struct tensor_info *tensors = grown(info->tensors[side], count, sizeof(*tensors));
    if (!tensors)
        return out_of_memory();
    info->tensors[side] = tensors;
    added.format = tensor->format;
    added.type = tensor->type;
    added.order = count;
    added.dim_count = om_tensor_dims(tensor, NULL, 0);
    size_t kept = added.dim_count <= ACL_MAX_DIM_CNT ? added.dim_count : 0;
    added.dims = malloc((kept + 1) * sizeof(*added.dims));
    added.name = copy_text(name);
    if (!added.dims || !added.name) {
        free(added.dims);
        free(added.name);
        return out_of_memory();
    }
    om_tensor_dims(tensor, added.dims, kept);
    tensors[count] = added;
    info->counts[side]++;
    return ACL_SUCCESS;
}

int model_info_add_external(struct model_info *info, struct bytes file, const struct external_need *need) {
    struct external_need *externals = grown(info->externals, info->external_count, sizeof(*externals));
    if (externals)
        info->externals = externals;
    char *name = externals ? copy_text(file) : NULL;
    if (!name)
        return out_of_memory();
    externals[info->external_count] = *need;
    externals[info->external_count++].file = name;
    return ACL_SUCCESS;
}

static void end(struct model_info *info) {
    for (int side = MODEL_INPUTS; side <= MODEL_OUTPUTS; side++) {
        for (size_t i = 0; i < info->counts[side]; i++) {
            free(info->tensors[side][i].name);
            free(info->tensors[side][i].dims);
        }
        free(info->tensors[side]);
    }
    for (size_t i = 0; i < info->external_count; i++)
        free(info->externals[i].file);
    free(info->externals);
    free(info);
}

/* Brings one kind of part into memory and checks it; a part that is not there has 0 bytes. */
static int take_part(const struct om_file *file, const struct om_partition *part, bool (*is_good)(struct bytes),
                     int code, struct om_piece *piece) {
    *piece = (struct om_piece){.owned = NULL};
    if (part->size > INT32_MAX)
        return error_raise(ERROR_MODEL, code, "a message of %llu bytes is too large", (unsigned long long)part->size);
    if (!om_source_take(&file->source, part->offset, part->size, piece))
        return error_raise(ERROR_MODEL, code, "%llu bytes cannot be read", (unsigned long long)part->size);
    if (is_good(piece->bytes))
        return ACL_SUCCESS;
    om_piece_end(piece);
    return error_raise(ERROR_MODEL, code, "%llu bytes from %llu on are no message of their kind",
                       (unsigned long long)part->size, (unsigned long long)part->offset);
}

static int check_tasks(const struct om_file *file, const struct om_entry *entry) {
    struct om_piece piece;
    int code = take_part(file, &entry->parts[OM_TASKS], om_schema_is_task_list,
                         ACL_ERROR_GE_EXEC_LOAD_TASK_PARTITION_FAILED, &piece);
    om_piece_end(&piece);
    return code;
}

/* Reads one model. The piece and table of the first one stay in *root, for the names of the others. */
static int read_model(const struct om_file *file, size_t index, struct definition *root, struct om_piece *root_piece,
                      struct model_info *info) {
    const struct om_entry *entry = &file->models[index];
    struct definition own = {.root = index ? &root->table : NULL}, *definition = index ? &own : root;
    struct om_piece own_piece, *piece = index ? &own_piece : root_piece;
    if (!entry->parts[OM_DEFINITION].offset)
        return error_raise(ERROR_MODEL, ACL_ERROR_GE_EXEC_LOAD_MODEL_PARTITION_FAILED, "model %zu has no definition",
                           index);
    int code = take_part(file, &entry->parts[OM_DEFINITION], om_schema_is_model,
                         ACL_ERROR_GE_EXEC_LOAD_MODEL_PARTITION_FAILED, piece);
    if (code)
        return code;
    definition->bytes = piece->bytes;
    code = attr_table_read(&definition->table, wire_open(definition->bytes));
    if (!code)
        code = om_definition_read(definition, info);
    if (!code)
        code = check_tasks(file, entry);
    if (index) {
        attr_table_end(&own.table);
        om_piece_end(&own_piece);
    }
    return code;
}

int model_info_read(const struct om_file *file, struct model_info **info) {
    struct definition root = {.root = NULL};
    struct om_piece root_piece = {.owned = NULL};
    struct model_info *found = calloc(1, sizeof(*found));
    if (!found)
        return out_of_memory();
    found->users = 1;
    found->dynamic = file->dynamic;
    found->weight_size = om_file_weight_size(file);
    int code = ACL_SUCCESS;
    for (size_t i = 0; !code && i < file->count; i++)
        code = read_model(file, i, &root, &root_piece, found);
    attr_table_end(&root.table);
    om_piece_end(&root_piece);
    if (code)
        end(found);
    else
        *info = found;
    return code;
}

void model_info_hold(struct model_info *info) {
    info->users++;
}

void model_info_release(struct model_info *info) {
    if (!--info->users)
        end(info);
}
