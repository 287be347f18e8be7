/* Model files for the C tests, byte by byte. What is made lasts until the process ends. */
#ifndef HOSTACL_TESTS_OM_WRITER_H
#define HOSTACL_TESTS_OM_WRITER_H

#include "check.h"

struct out {
    uint8_t *bytes; /* on the heap */
    size_t size;    /* written */
    size_t room;    /* of bytes */
};

/* Every piece of memory that was taken, so that the process can be seen to lose none. */
struct piece {
    struct piece *next;
    uint8_t bytes[];
};

static struct piece *pieces;

enum { HEADER_BYTES = 256, WEIGHT_BYTES = 1536, WORK_BYTES = 4096 };
enum { PART_DEFINITION = 0, PART_WEIGHTS = 1, PART_TASKS = 2, PART_KERNELS = 3 };

static void put(struct out *out, const void *bytes, size_t size) {
    if (out->size + size > out->room) {
        out->room = 2 * (out->size + size);
        struct piece *piece = malloc(sizeof(*piece) + out->room);
        if (!piece)
            abort();
        piece->next = pieces;
        pieces = piece;
        if (out->size)
            memcpy(piece->bytes, out->bytes, out->size);
        out->bytes = piece->bytes;
    }
    if (size)
        memcpy(out->bytes + out->size, bytes, size);
    out->size += size;
}

static void put_varint(struct out *out, uint64_t value) {
    for (; value > 0x7f; value >>= 7)
        put(out, &(uint8_t){(uint8_t)(value | 0x80)}, 1);
    put(out, &(uint8_t){(uint8_t)value}, 1);
}

static void put_number(struct out *out, unsigned field, uint64_t value) {
    put_varint(out, (uint64_t)field << 3);
    put_varint(out, value);
}

static void put_blob(struct out *out, unsigned field, const void *bytes, size_t size) {
    put_varint(out, (uint64_t)field << 3 | 2);
    put_varint(out, size);
    put(out, bytes, size);
}

static void put_text(struct out *out, unsigned field, const char *text) {
    put_blob(out, field, text, strlen(text));
}

static void put_inside(struct out *out, unsigned field, const struct out *inside) {
    put_blob(out, field, inside->bytes, inside->size);
}

/* An entry of a map of attributes: the name and the message AttrDef. */
static void put_attr(struct out *out, unsigned field, const char *name, const struct out *value) {
    struct out entry = {0};
    put_text(&entry, 1, name);
    put_inside(&entry, 2, value);
    put_inside(out, field, &entry);
}

static void put_attr_number(struct out *out, unsigned field, const char *name, uint64_t number) {
    struct out value = {0};
    put_number(&value, 3, number);
    put_attr(out, field, name, &value);
}

static void put_attr_text(struct out *out, unsigned field, const char *name, const char *text) {
    struct out value = {0};
    put_text(&value, 2, text);
    put_attr(out, field, name, &value);
}

__attribute__((unused)) static void put_attr_texts(struct out *out, unsigned field, const char *name, size_t count,
                                                   const char *const *texts) {
    struct out list = {0}, value = {0};
    for (size_t i = 0; i < count; i++)
        put_text(&list, 2, texts[i]);
    put_inside(&value, 1, &list);
    put_attr(out, field, name, &value);
}

/* A tensor: number of its type in the file, its format, shape and stored size. */
static void put_tensor(struct out *op, unsigned field, unsigned type, const char *layout, size_t count,
                       const int64_t *dims, uint64_t size) {
    struct out tensor = {0}, shape = {0}, packed = {0};
    for (size_t i = 0; i < count; i++)
        put_varint(&packed, (uint64_t)dims[i]);
    put_inside(&shape, 1, &packed);
    put_number(&tensor, 2, type);
    put_inside(&tensor, 3, &shape);
    put_text(&tensor, 4, layout);
    put_number(&tensor, 10, size);
    put_inside(op, field, &tensor);
}

static struct out start_op(const char *name, const char *type) {
    struct out op = {0};
    put_text(&op, 1, name);
    put_text(&op, 2, type);
    return op;
}

/* The graph of a small model: inputs "late" and "early" in the wrong order, two outputs, and with external one piece of
 * weights in the file "far.bin", 96 bytes from offset 32 on. */
static struct out make_graph(bool external) {
    static const int64_t square[] = {2, 3}, open[] = {-1, 8};
    struct out graph = {0}, op = start_op("late", "Data");
    put_text(&graph, 1, "main");
    put_attr_number(&op, 10, "index", 1);
    put_tensor(&op, 33, 2, "NHWC", 2, open, 0);
    put_inside(&graph, 6, &op);
    op = start_op("early", "Data");
    put_attr_number(&op, 10, "index", 0);
    put_tensor(&op, 33, 1, "NCHW", 2, square, 64);
    put_inside(&graph, 6, &op);
    if (external) {
        op = start_op("weights", "FileConstant");
        put_attr_text(&op, 10, "location", "some/folder/far.bin");
        put_attr_number(&op, 10, "offset", 32);
        put_attr_number(&op, 10, "length", 24);
        put_tensor(&op, 34, 1, "ND", 2, square, 64);
        put_inside(&graph, 6, &op);
    }
    op = start_op("end", "NetOutput");
    put_text(&op, 24, "relu");
    put_text(&op, 24, "sum");
    put_number(&op, 25, 0);
    put_number(&op, 25, 3);
    put_tensor(&op, 33, 2, "FRACTAL_Z:4", 2, square, 96);
    put_tensor(&op, 33, 28, "ND", 2, square, 96);
    put_inside(&graph, 6, &op);
    return graph;
}

static struct out make_definition(bool external) {
    struct out model = {0}, graph = make_graph(external);
    put_text(&model, 1, "small");
    put_inside(&model, 7, &graph);
    put_attr_number(&model, 11, "memory_size", WORK_BYTES);
    return model;
}

static struct out make_tasks(void) {
    struct out tasks = {0};
    put_text(&tasks, 1, "1");
    put_number(&tasks, 11, WORK_BYTES);
    return tasks;
}

static struct out make_weights(void) {
    struct out weights = {0};
    for (size_t i = 0; i < WEIGHT_BYTES; i++)
        put(&weights, &(uint8_t){(uint8_t)(i * 7 + i / 256)}, 1);
    return weights;
}

/* One part of a file. */
struct part {
    uint32_t type;
    struct out bytes;
};

static void put_table(struct out *file, bool wide, size_t count, const struct part *parts) {
    uint64_t offset = 0;
    put(file, &(uint32_t){(uint32_t)count}, 4);
    put(file, &(uint32_t){0}, wide ? 4 : 0);
    for (size_t i = 0; i < count; i++) {
        const uint64_t place[] = {offset, parts[i].bytes.size};
        const uint32_t narrow[] = {(uint32_t)offset, (uint32_t)parts[i].bytes.size};
        put(file, &parts[i].type, 4);
        put(file, &(uint32_t){0}, wide ? 4 : 0);
        put(file, wide ? (const void *)place : narrow, wide ? sizeof(place) : sizeof(narrow));
        offset += parts[i].bytes.size;
    }
    for (size_t i = 0; i < count; i++)
        put(file, parts[i].bytes.bytes, parts[i].bytes.size);
}

/* Writes the lengths again after the bytes behind the header changed. */
static void set_length(struct out *file, bool wide) {
    uint64_t length = file->size - HEADER_BYTES;
    memcpy(file->bytes + (wide ? 184 : 76), &length, wide ? 8 : 4);
}

/* A file of so many models with equal parts; models 1 is a static one. */
static struct out make_file(bool wide, uint32_t models, size_t count, const struct part *parts) {
    static const uint8_t zeros[HEADER_BYTES];
    struct out file = {0};
    put(&file, zeros, HEADER_BYTES);
    memcpy(file.bytes, "IMOD", 4);
    memcpy(file.bytes + 4, &(uint32_t){HEADER_BYTES}, 4);
    memcpy(file.bytes + 8, &(uint32_t){0x20000000}, 4);
    memcpy(file.bytes + 156, &models, 4);
    for (uint32_t i = 0; i < models; i++)
        put_table(&file, wide, count, parts);
    set_length(&file, wide);
    return file;
}

static struct out make_model(bool wide, uint32_t models, bool external) {
    const struct part parts[] = {{PART_DEFINITION, make_definition(external)},
                                 {PART_WEIGHTS, make_weights()},
                                 {PART_KERNELS, make_tasks()},
                                 {PART_TASKS, make_tasks()}};
    return make_file(wide, models, 4, parts);
}

/* A copy with one byte changed. */
__attribute__((unused)) static struct out with_byte(const struct out *file, size_t at, uint8_t byte) {
    struct out copy = {0};
    put(&copy, file->bytes, file->size);
    copy.bytes[at] = byte;
    return copy;
}

static char folder[] = "/tmp/hostacl-model-XXXXXX";

__attribute__((unused)) static void remove_folder(void) {
    remove(folder);
}

/* Writes a file of that name, to be removed by the test, into a folder that goes with the process; the path lasts until
 * the next call. */
__attribute__((unused)) static const char *save(const char *name, const void *bytes, size_t size) {
    static char path[256];
    static bool made;
    if (!made)
        made = mkdtemp(folder) && !atexit(remove_folder);
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *stream = fopen(path, "wb");
    CHECK(stream && fwrite(bytes, 1, size, stream) == size);
    if (stream)
        fclose(stream);
    return path;
}

/* Loads a model in memory with what else was set in the configuration. */
__attribute__((unused)) static int load_memory(aclmdlConfigHandle *config, const struct out *file, size_t type,
                                               uint32_t *id) {
    const void *bytes = file->bytes;
    OK(aclmdlSetConfigOpt(config, ACL_MDL_LOAD_TYPE_SIZET, &type, sizeof(type)));
    OK(aclmdlSetConfigOpt(config, ACL_MDL_MEM_ADDR_PTR, &bytes, sizeof(bytes)));
    OK(aclmdlSetConfigOpt(config, ACL_MDL_MEM_SIZET, &file->size, sizeof(file->size)));
    return aclmdlLoadWithConfig(config, id);
}

/* A configuration, loaded and destroyed. */
__attribute__((unused)) static int load(const struct out *file, uint32_t *id) {
    aclmdlConfigHandle *config = aclmdlCreateConfigHandle();
    int code = load_memory(config, file, ACL_MDL_LOAD_FROM_MEM, id);
    OK(aclmdlDestroyConfigHandle(config));
    return code;
}

#endif
