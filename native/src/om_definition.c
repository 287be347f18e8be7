/* Model definitions: what a loader and a description need of them.
 *
 * Inputs are the data nodes of the root graph by their index, with the size that the model says. Outputs are what its
 * first NetOutput reads, with the size of the elements; their names are those the model lists, else made of the node
 * that gives them. The time follows the size of the message, whatever is in it.
 *
 * Source: GE source, runtime/v1/graph/load/model_manager/davinci_model.cc. Thread safety: no state outside the
 * caller's.
 */
#include "om_definition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl_mdl.h"
#include "errors.h"

#define NAME_ROOM 512
#define OUT_NAMES "attr_model_out_nodes_name"

/* Fields of ge.proto. */
enum { MODEL_GRAPH = 7, GRAPH_OPERATOR = 6 };
enum { OP_NAME = 1, OP_TYPE = 2, OP_SOURCE_NAME = 24, OP_SOURCE_INDEX = 25, OP_INPUT = 33, OP_OUTPUT = 34 };

static const struct bytes nothing = {NULL, 0};

static struct attrs attrs_of(const struct definition *definition, struct wire message, uint32_t field) {
    return (struct attrs){.tables = {&definition->table, definition->root}, .message = message, .field = field};
}

static struct om_tensor tensor_of(const struct definition *definition, struct wire message) {
    const struct attrs description = attrs_of(definition, message, DESCRIPTION_ATTRS);
    return om_tensor_read(&description);
}

static struct bytes text_of(const struct wire *message, uint32_t number) {
    struct wire_field field;
    return wire_find(*message, number, WIRE_BYTES, &field) ? field.bytes : nothing;
}

/* Moves to the next message or text of a field in wire; false behind the last, then it is empty. */
static bool next_inside(struct wire *wire, uint32_t number, struct wire *inside) {
    struct wire_field field;
    while (wire_next(wire, &field)) {
        if (field.number == number && field.type == WIRE_BYTES) {
            *inside = wire_inside(wire, &field);
            return true;
        }
    }
    *inside = wire_open(nothing);
    return false;
}

/* Moves to the next number of a repeated field in wire; 0 behind the last. *packed starts empty. */
static uint64_t next_number(struct wire *wire, uint32_t number, struct wire *packed) {
    struct wire_field field;
    uint64_t value;
    while (!wire_next_packed(packed, &value)) {
        if (!wire_next(wire, &field))
            return 0;
        if (field.number == number && field.type == WIRE_VARINT)
            return field.value;
        if (field.number == number && field.type == WIRE_BYTES)
            *packed = wire_open(field.bytes);
    }
    return value;
}

static int add_input(struct model_info *info, const struct definition *definition, const struct wire *op) {
    const struct attrs attrs = attrs_of(definition, *op, OPERATOR_ATTRS);
    struct tensor_info input = {.index = (int64_t)info->counts[MODEL_INPUTS]};
    struct wire wire = *op, message;
    attr_number(&attrs, "index", &input.index);
    next_inside(&wire, OP_INPUT, &message);
    const struct om_tensor tensor = tensor_of(definition, message);
    input.size = tensor.stored_size > 0 ? (uint64_t)tensor.stored_size : 0;
    return model_info_add_tensor(info, MODEL_INPUTS, text_of(op, OP_NAME), &tensor, &input);
}

static int compare_inputs(const void *left, const void *right) {
    const struct tensor_info *a = left, *b = right;
    if (a->index != b->index)
        return a->index < b->index ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

/* Name of an output: what the model lists, or null, with the number of the output at its producer where it has none. */
static void output_name(size_t index, const struct bytes *listed, const struct wire *producer, int64_t number,
                        char *text) {
    if (listed && listed->size && memchr(listed->at, ':', listed->size))
        snprintf(text, NAME_ROOM, "%.*s", (int)listed->size, (const char *)listed->at);
    else if (listed)
        snprintf(text, NAME_ROOM, "%.*s:%lld", (int)listed->size, listed->size ? (const char *)listed->at : "",
                 (long long)number);
    else
        snprintf(text, NAME_ROOM, "output_%zu_%.*s_%lld", index, (int)(producer->end - producer->at),
                 producer->at ? (const char *)producer->at : "", (long long)number);
}

static size_t count_inside(struct wire wire, uint32_t number) {
    struct wire inside;
    size_t count = 0;
    while (next_inside(&wire, number, &inside))
        count++;
    return count;
}

static int add_outputs(struct model_info *info, const struct definition *definition, const struct wire *op) {
    const struct attrs model = {.message = wire_open(definition->bytes), .field = MODEL_ATTRS};
    size_t listed_count = attr_texts(&model, OUT_NAMES, NULL, 0);
    bool listed = listed_count && listed_count == count_inside(*op, OP_INPUT);
    struct bytes *names = listed ? calloc(listed_count, sizeof(*names)) : NULL;
    struct wire tensors = *op, producers = *op, numbers = *op, packed = wire_open(nothing), message, producer;
    char name[NAME_ROOM];
    int code = ACL_SUCCESS;
    if (listed && !names)
        return error_raise(ERROR_MODEL, ACL_ERROR_GE_MEMORY_ALLOCATION, "the host is out of memory");
    if (names)
        attr_texts(&model, OUT_NAMES, names, listed_count);
    for (size_t i = 0; !code && next_inside(&tensors, OP_INPUT, &message); i++) {
        const struct om_tensor tensor = tensor_of(definition, message);
        const struct tensor_info output = {.size = om_tensor_bytes(&tensor)};
        next_inside(&producers, OP_SOURCE_NAME, &producer);
        int64_t number = (int64_t)next_number(&numbers, OP_SOURCE_INDEX, &packed);
        output_name(i, names ? &names[i] : NULL, &producer, number, name);
        const struct bytes text = {(const uint8_t *)name, strlen(name)};
        code = model_info_add_tensor(info, MODEL_OUTPUTS, text, &tensor, &output);
    }
    free(names);
    return code;
}

/* Notes what a FileConstant needs of which file. */
static int add_external(struct model_info *info, const struct definition *definition, const struct wire *op) {
    const struct attrs attrs = attrs_of(definition, *op, OPERATOR_ATTRS);
    struct wire wire = *op, message;
    struct bytes file = nothing;
    struct external_need need = {.moves = true};
    int64_t offset = 0, length = 0;
    if (attr_text(&attrs, "location", &file) && file.size) {
        attr_number(&attrs, "offset", &offset);
        attr_number(&attrs, "length", &length);
    } else if (!attr_text(&attrs, "file_path", &file) || !file.size) {
        return ACL_SUCCESS; /* named by an identifier, which only options of a compiler resolve */
    } else {
        need.moves = false;
    }
    next_inside(&wire, OP_OUTPUT, &message);
    const struct om_tensor tensor = tensor_of(definition, message);
    uint64_t bytes = om_tensor_bytes(&tensor);
    if (!bytes && length > 0)
        bytes = (uint64_t)length;
    if (offset < 0 || length < 0 || bytes > INT64_MAX - (uint64_t)offset)
        return error_raise(ERROR_MODEL, ACL_ERROR_GE_PARAM_INVALID, "external weights from %lld on, %lld bytes long",
                           (long long)offset, (long long)length);
    need.bytes = (uint64_t)offset + bytes;
    return model_info_add_external(info, file, &need);
}

static bool is_data(struct bytes type) {
    static const char *const types[] = {"Data", "RefData", "AippData", "AnnData"};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (bytes_equal(type, types[i]))
            return true;
    }
    return false;
}

/* Whether compressed names of an operator and its tensors can be restored. */
static bool is_restorable(const struct definition *definition, const struct wire *op) {
    static const uint32_t sides[] = {OP_INPUT, OP_OUTPUT};
    const struct attrs own = attrs_of(definition, *op, OPERATOR_ATTRS);
    if (!definition->table.used && !(definition->root && definition->root->used))
        return true;
    if (!attrs_are_known(&own))
        return false;
    for (size_t side = 0; side < 2; side++) {
        struct wire wire = *op, message;
        while (next_inside(&wire, sides[side], &message)) {
            const struct attrs description = attrs_of(definition, message, DESCRIPTION_ATTRS);
            if (!attrs_are_known(&description))
                return false;
        }
    }
    return true;
}

/* An operator; *ended says that the outputs were seen. */
static int read_operator(struct model_info *info, const struct definition *definition, const struct wire *op,
                         bool root_graph, bool *ended) {
    struct bytes type = text_of(op, OP_TYPE);
    if (!is_restorable(definition, op))
        return error_raise(ERROR_MODEL, ACL_ERROR_GE_EXEC_LOAD_MODEL_PARTITION_FAILED,
                           "a compressed attribute stands in no table of the model");
    if (bytes_equal(type, "FileConstant"))
        return add_external(info, definition, op);
    if (root_graph && is_data(type))
        return add_input(info, definition, op);
    if (!root_graph || *ended || !bytes_equal(type, "NetOutput"))
        return ACL_SUCCESS;
    *ended = true;
    return add_outputs(info, definition, op);
}

int om_definition_read(const struct definition *definition, struct model_info *info) {
    struct wire model = wire_open(definition->bytes), graph, op;
    bool root_graph = !definition->root, ended = false;
    while (next_inside(&model, MODEL_GRAPH, &graph)) {
        while (next_inside(&graph, GRAPH_OPERATOR, &op)) {
            int code = read_operator(info, definition, &op, root_graph, &ended);
            if (code)
                return code;
        }
        root_graph = false;
    }
    if (definition->root)
        return ACL_SUCCESS;
    const struct attrs attrs = {.message = wire_open(definition->bytes), .field = MODEL_ATTRS};
    int64_t work_size = 0;
    attr_number(&attrs, "memory_size", &work_size);
    info->work_size = info->dynamic ? 0 : (uint64_t)work_size;
    if (info->counts[MODEL_INPUTS])
        qsort(info->tensors[MODEL_INPUTS], info->counts[MODEL_INPUTS], sizeof(struct tensor_info), compare_inputs);
    return ACL_SUCCESS;
}
