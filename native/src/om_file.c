/* Header and partition tables.
 *
 *   header, 256 bytes: magic "IMOD" 0 | headsize 4 | version 8 | length u32 76 | is_encrypt 80 | modeltype 82 |
 *                      model_num u32 156 | model_length u64 184 | is_unknow_model 193      (the last three: version 2)
 *   then per model:    count u32, entries of 12 bytes (type, offset, size: u32 each), or where model_length is set
 *                      4 bytes more, entries of 24 (type u32, 4 bytes, offset u64, size u64), and the partitions
 *
 * The order of the checks and their codes are those of the graph engine's loader. Like that, partitions are taken one
 * after the other in the order of the table; the offsets stored there say the same in plain files. No length of the
 * file is believed before it was compared with what is there.
 *
 * Thread safety: no state outside the caller's. */
#include "om_file.h"

#include <stdlib.h>
#include <string.h>

#include "acl/acl_mdl.h"
#include "errors.h"

#define HEADER_BYTES 256
#define MAGIC 0x444f4d49u
#define VERSION_2 0x20000000u
#define MAX_PARTITIONS 8
#define MAX_FLOW_PARTITIONS 4096
#define WIDE_ENTRY 24
#define NARROW_ENTRY 12
#define SMALLEST_REST 8

enum model_type { TYPE_FLOW = 3, TYPE_BUNDLE = 5 };

struct header {
    uint32_t version;      /* of the form */
    uint8_t type;          /* what the body is */
    uint32_t models;       /* how many */
    uint64_t model_length; /* bytes behind the header; 0: the other field counts */
    bool unknown_shapes;   /* is_unknow_model */
};

static uint32_t u32_at(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

static uint64_t u64_at(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

static int size_invalid(const char *what) {
    return error_raise(ERROR_MODEL, ACL_ERROR_GE_EXEC_MODEL_DATA_SIZE_INVALID, "%s", what);
}

/* Whatever is wrong with a header has one code. */
static int read_header(const struct om_source *source, struct header *header) {
    uint8_t raw[HEADER_BYTES];
    if (source->size < HEADER_BYTES || !om_source_read(source, 0, raw, HEADER_BYTES))
        return error_raise(ERROR_MODEL, ACL_ERROR_GE_PARAM_INVALID, "the header of %d bytes is not there",
                           HEADER_BYTES);
    header->version = u32_at(raw + 8);
    header->type = raw[82];
    header->model_length = u64_at(raw + 184);
    header->models = u32_at(raw + 156);
    header->unknown_shapes = raw[193] == 1;
    if (header->type == TYPE_BUNDLE && header->version != 0x10000000u)
        return error_raise(ERROR_MODEL, ACL_ERROR_GE_FAILURE, "a bundle is loaded by calls of its own");
    uint64_t length = header->model_length ? header->model_length : u32_at(raw + 76);
    if (u32_at(raw) != MAGIC || length != source->size - HEADER_BYTES)
        return error_raise(ERROR_MODEL, ACL_ERROR_GE_PARAM_INVALID,
                           "no model file: magic 0x%x, %llu bytes said to be behind the header, %llu there",
                           u32_at(raw), (unsigned long long)length, (unsigned long long)(source->size - HEADER_BYTES));
    if (raw[80])
        return error_raise(ERROR_MODEL, ACL_ERROR_GE_EXEC_LOAD_MODEL_PARTITION_FAILED, "the model is encrypted");
    return ACL_SUCCESS;
}

/* Notes a partition that lies at *offset and moves on. */
static int take_partition(const struct om_source *source, uint32_t type, uint64_t size, struct om_entry *entry,
                          uint64_t *offset) {
    if (size > source->size - *offset)
        return size_invalid("a partition is larger than what is left of the file");
    if (type < OM_PARTITIONS && !entry->parts[type].offset)
        entry->parts[type] = (struct om_partition){*offset, size};
    *offset += size;
    return ACL_SUCCESS;
}

static int read_partitions(const struct om_source *source, bool wide, struct om_entry *entry, uint64_t *offset) {
    uint64_t entry_bytes = wide ? WIDE_ENTRY : NARROW_ENTRY;
    uint64_t at = *offset + (wide ? 8 : 4);
    uint64_t table_bytes = entry->partitions * entry_bytes;
    if (at >= source->size || table_bytes >= source->size - at)
        return size_invalid("the partition table reaches the end of the file");
    *offset = at + table_bytes;
    for (uint32_t i = 0; i < entry->partitions; i++, at += entry_bytes) {
        uint8_t raw[WIDE_ENTRY];
        if (!om_source_read(source, at, raw, (size_t)entry_bytes))
            return size_invalid("the file became shorter");
        int code = take_partition(source, u32_at(raw), wide ? u64_at(raw + 16) : u32_at(raw + 8), entry, offset);
        if (code)
            return code;
    }
    return ACL_SUCCESS;
}

static int read_entry(const struct om_source *source, const struct header *header, struct om_entry *entry,
                      uint64_t *offset) {
    uint8_t raw[4];
    uint32_t most = header->type == TYPE_FLOW ? MAX_FLOW_PARTITIONS : MAX_PARTITIONS;
    if (source->size - *offset <= SMALLEST_REST)
        return size_invalid("no room for a partition table is left");
    if (!om_source_read(source, *offset, raw, sizeof(raw)))
        return size_invalid("the file became shorter");
    *entry = (struct om_entry){.partitions = u32_at(raw)};
    if (!entry->partitions || entry->partitions > most)
        return error_raise(ERROR_MODEL, ACL_ERROR_GE_PARAM_INVALID, "a partition table has %u entries, not 1 to %u",
                           entry->partitions, most);
    return read_partitions(source, header->type == TYPE_FLOW || header->model_length, entry, offset);
}

/* Reads model after model; the list grows with what was found, not with what the header says. */
static int read_entries(struct om_file *file, const struct header *header, uint32_t models) {
    uint64_t offset = HEADER_BYTES;
    size_t room = 0;
    while (file->count < models) {
        if (file->count == room) {
            room = room ? room * 2 : 1;
            struct om_entry *larger = realloc(file->models, room * sizeof(*larger));
            if (!larger)
                return error_raise(ERROR_MODEL, ACL_ERROR_GE_MEMORY_ALLOCATION, "the host is out of memory");
            file->models = larger;
        }
        int code = read_entry(&file->source, header, &file->models[file->count], &offset);
        if (code)
            return code;
        file->count++;
    }
    file->left = file->source.size - offset;
    if (file->dynamic && file->left)
        return error_raise(ERROR_MODEL, ACL_ERROR_GE_FAILURE, "%llu bytes are left behind the last model",
                           (unsigned long long)file->left);
    return ACL_SUCCESS;
}

int om_file_read(struct om_file *file, const struct om_source *source) {
    struct header header = {.version = 0};
    *file = (struct om_file){.source = *source};
    int code = read_header(source, &header);
    if (!code) {
        file->dynamic = header.version >= VERSION_2 && (header.models > 1 || header.unknown_shapes);
        code = read_entries(file, &header, file->dynamic ? header.models : 1);
    }
    if (!code && header.type == TYPE_FLOW)
        code = error_raise(ERROR_MODEL, ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "flow models are not loaded here");
    if (!code && !file->count)
        code = error_raise(ERROR_MODEL, ACL_ERROR_GE_PARAM_INVALID, "the file says that it holds no model");
    if (code)
        om_file_close(file);
    return code;
}

int om_file_open(struct om_file *file, const char *path, const void *model, size_t size) {
    struct om_source source;
    int code = path ? om_source_open(&source, path) : om_source_of_memory(&source, model, size);
    return code ? code : om_file_read(file, &source);
}

void om_file_close(struct om_file *file) {
    free(file->models);
    om_source_close(&file->source);
    file->models = NULL;
    file->count = 0;
}

uint64_t om_file_weight_size(const struct om_file *file) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < file->count; i++)
        bytes += file->models[i].parts[OM_WEIGHTS].size;
    return bytes;
}
