/* Attributes by name.
 *
 * A compressed name is a zero byte and digits of base 127, lowest first, each plus 1: the number of a name in the
 * model's list. A flag for each name says that a number stands for a text of another list. In a file of several models
 * a name may still be compressed after that; then the lists of the first model come second. A name that is there in
 * plain form as well counts in that form.
 *
 * Source: GE source, base/common/model/model_compress_manager.cc. Messages have passed om_schema.c. Thread safety: no
 * state outside the caller's. */
#include "om_attr.h"

#include <stdlib.h>

#include "acl/acl_mdl.h"
#include "errors.h"

#define BASE 127
#define MAX_DIGITS 5 /* no list has 127^5 names */

/* Fields of ge.proto: AttrDef and its ListValue. */
enum { ATTR_LIST = 1, ATTR_TEXT = 2, ATTR_NUMBER = 3 };
enum { LIST_TEXTS = 2, LIST_NUMBERS = 3, LIST_FLAGS = 5 };

/* The key and value of the next attribute; false behind the last. */
static bool next_attr(struct wire *message, uint32_t field, struct bytes *key, struct wire *value) {
    struct wire_field entry, part;
    while (wire_next(message, &entry)) {
        if (entry.number != field || entry.type != WIRE_BYTES)
            continue;
        struct wire inside = wire_inside(message, &entry);
        *key = wire_find(inside, 1, WIRE_BYTES, &part) ? part.bytes : (struct bytes){NULL, 0};
        *value = wire_open((struct bytes){NULL, 0});
        if (wire_find(inside, 2, WIRE_BYTES, &part))
            *value = wire_inside(&inside, &part);
        return true;
    }
    return false;
}

static bool is_compressed(struct bytes name) {
    return name.size && !name.at[0];
}

/* Number of a compressed name; count when it is none below count. */
static size_t name_number(struct bytes name, size_t count) {
    uint64_t number = 0;
    if (name.size < 2 || name.size > 1 + MAX_DIGITS)
        return count;
    for (size_t i = name.size; i-- > 1;) {
        if (!name.at[i] || name.at[i] > BASE)
            return count;
        number = number * BASE + name.at[i] - 1;
    }
    return number < count ? (size_t)number : count;
}

/* Replaces a compressed name by the plain one; *texts becomes the table whose texts its values stand for, or null.
 * False when no table has it. */
static bool restore(const struct attrs *attrs, struct bytes *name, const struct attr_table **texts) {
    *texts = NULL;
    for (int i = 0; i < 2 && is_compressed(*name); i++) {
        const struct attr_table *table = attrs->tables[i];
        if (!table || !table->used)
            continue;
        size_t number = name_number(*name, table->count);
        if (number == table->count)
            return false;
        if (table->texts[number])
            *texts = table;
        *name = table->names[number];
    }
    return !is_compressed(*name);
}

/* Calls for each item of a repeated field of numbers, packed or not; false when one call is. */
typedef bool number_fn(void *user, uint64_t number);

static bool each_number(struct wire list, uint32_t field, number_fn *call, void *user) {
    struct wire_field item;
    uint64_t value;
    while (wire_next(&list, &item)) {
        if (item.number != field)
            continue;
        if (item.type == WIRE_VARINT && !call(user, item.value))
            return false;
        struct wire packed = wire_open(item.type == WIRE_BYTES ? item.bytes : (struct bytes){NULL, 0});
        while (wire_next_packed(&packed, &value)) {
            if (!call(user, value))
                return false;
        }
    }
    return true;
}

static bool is_text_number(void *user, uint64_t number) {
    return number < ((const struct attr_table *)user)->value_count;
}

/* Whether a value that stands for texts is a number, or numbers, of the table. */
static bool stands_for_texts(struct wire value, const struct attr_table *table) {
    struct wire_field field;
    if (wire_find(value, ATTR_NUMBER, WIRE_VARINT, &field))
        return is_text_number((void *)(uintptr_t)table, field.value);
    return wire_find(value, ATTR_LIST, WIRE_BYTES, &field) &&
           each_number(wire_inside(&value, &field), LIST_NUMBERS, is_text_number, (void *)(uintptr_t)table);
}

bool attrs_are_known(const struct attrs *attrs) {
    struct wire message = attrs->message;
    const struct attr_table *texts;
    struct bytes key;
    struct wire value;
    while (next_attr(&message, attrs->field, &key, &value)) {
        if (!restore(attrs, &key, &texts) || (texts && !stands_for_texts(value, texts)))
            return false;
    }
    return true;
}

/* Finds an attribute by its plain name, the plain form first. */
static bool find(const struct attrs *attrs, const char *name, struct wire *value, const struct attr_table **texts) {
    struct wire message = attrs->message, next_value;
    struct bytes key;
    bool found = false, plain = false;
    while (next_attr(&message, attrs->field, &key, &next_value)) {
        const struct attr_table *next_texts;
        bool next_plain = !is_compressed(key);
        if (!restore(attrs, &key, &next_texts) || !bytes_equal(key, name) || (plain && !next_plain))
            continue;
        *value = next_value;
        *texts = next_texts;
        plain = next_plain;
        found = true;
    }
    return found;
}

bool attr_number(const struct attrs *attrs, const char *name, int64_t *value) {
    const struct attr_table *texts;
    struct wire_field field;
    struct wire attr;
    if (!find(attrs, name, &attr, &texts) || texts || !wire_find(attr, ATTR_NUMBER, WIRE_VARINT, &field))
        return false;
    *value = (int64_t)field.value;
    return true;
}

bool attr_text(const struct attrs *attrs, const char *name, struct bytes *value) {
    const struct attr_table *texts;
    struct wire_field field;
    struct wire attr;
    if (!find(attrs, name, &attr, &texts))
        return false;
    if (texts && wire_find(attr, ATTR_NUMBER, WIRE_VARINT, &field) && field.value < texts->value_count)
        *value = texts->values[field.value];
    else if (wire_find(attr, ATTR_TEXT, WIRE_BYTES, &field))
        *value = field.bytes;
    else
        return false;
    return true;
}

/* The texts of a list in a message; as many as there are, the first ones in texts. */
static size_t list_texts(struct wire list, struct bytes *texts, size_t room) {
    struct wire_field item;
    size_t count = 0;
    while (wire_next(&list, &item)) {
        if (item.number != LIST_TEXTS || item.type != WIRE_BYTES)
            continue;
        if (count < room)
            texts[count] = item.bytes;
        count++;
    }
    return count;
}

static struct wire list_of(const struct attrs *attrs, const char *name) {
    const struct attr_table *texts;
    struct wire_field field;
    struct wire attr;
    if (find(attrs, name, &attr, &texts) && wire_find(attr, ATTR_LIST, WIRE_BYTES, &field))
        return wire_inside(&attr, &field);
    return wire_open((struct bytes){NULL, 0});
}

size_t attr_texts(const struct attrs *attrs, const char *name, struct bytes *texts, size_t room) {
    return list_texts(list_of(attrs, name), texts, room);
}

/* Where flags of a list go. */
struct flags {
    bool *flags;  /* room for count */
    size_t room;  /* of them */
    size_t count; /* how many came */
};

static bool add_flag(void *user, uint64_t number) {
    struct flags *flags = user;
    if (flags->count < flags->room)
        flags->flags[flags->count] = number != 0;
    flags->count++;
    return true;
}

int attr_table_read(struct attr_table *table, struct wire model) {
    const struct attrs attrs = {.message = model, .field = MODEL_ATTRS};
    int64_t version;
    *table = (struct attr_table){.used = attr_number(&attrs, "om_compress_version", &version)};
    if (!table->used)
        return ACL_SUCCESS;
    table->count = attr_texts(&attrs, "attr_name_enum", NULL, 0);
    table->value_count = attr_texts(&attrs, "attr_value_enum", NULL, 0);
    table->names = calloc(table->count + 1, sizeof(*table->names));
    table->texts = calloc(table->count + 1, sizeof(*table->texts));
    table->values = calloc(table->value_count + 1, sizeof(*table->values));
    if (!table->names || !table->texts || !table->values) {
        attr_table_end(table);
        return error_raise(ERROR_MODEL, ACL_ERROR_GE_MEMORY_ALLOCATION, "the host is out of memory");
    }
    attr_texts(&attrs, "attr_name_enum", table->names, table->count);
    attr_texts(&attrs, "attr_value_enum", table->values, table->value_count);
    struct flags flags = {table->texts, table->count, 0};
    each_number(list_of(&attrs, "attrs_use_string_value"), LIST_FLAGS, add_flag, &flags);
    if (flags.count == table->count)
        return ACL_SUCCESS;
    int code = error_raise(ERROR_MODEL, ACL_ERROR_GE_EXEC_LOAD_MODEL_PARTITION_FAILED,
                           "%zu compressed attribute names have %zu flags", table->count, flags.count);
    attr_table_end(table);
    return code;
}

void attr_table_end(struct attr_table *table) {
    free(table->names);
    free(table->texts);
    free(table->values);
    *table = (struct attr_table){.used = false};
}
