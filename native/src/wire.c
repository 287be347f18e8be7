/* The wire form of protobuf.
 *
 *   field: tag varint (number << 3 | type), then
 *          type 0 varint | 1 eight bytes | 2 length varint, bytes | 3 fields, end tag of the same number | 5 four bytes
 *
 * Refused is what protobuf refuses: tags and lengths of more than five bytes, numbers of more than ten, the field
 * number 0, lengths beyond 2 GiB - 1 or the end, groups that do not close, and more than 100 messages and groups inside
 * each other. Nothing is copied.
 *
 * Thread safety: no state outside the caller's. */
#include "wire.h"

#include <string.h>

#define MAX_DEPTH 100
#define NUMBER_BYTES 10
#define TAG_BYTES 5

struct wire wire_open(struct bytes bytes) {
    return (struct wire){.at = bytes.at, .end = bytes.at + bytes.size, .depth = MAX_DEPTH};
}

struct wire wire_inside(const struct wire *outer, const struct wire_field *field) {
    struct wire wire = wire_open(field->bytes);
    wire.depth = outer->depth - 1;
    wire.bad = wire.depth < 0;
    return wire;
}

static bool read_varint(struct wire *wire, int most_bytes, uint64_t *value) {
    *value = 0;
    for (int i = 0; i < most_bytes && wire->at < wire->end; i++) {
        uint8_t byte = *wire->at++;
        *value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80)
            return true;
    }
    wire->bad = true;
    return false;
}

/* Passes over bytes and says where they were. */
static bool take(struct wire *wire, uint64_t size, struct bytes *bytes) {
    if (size > (uint64_t)(wire->end - wire->at)) {
        wire->bad = true;
        return false;
    }
    *bytes = (struct bytes){wire->at, (size_t)size};
    wire->at += size;
    return true;
}

static bool read_tag(struct wire *wire, struct wire_field *field) {
    uint64_t tag;
    if (!read_varint(wire, TAG_BYTES, &tag))
        return false;
    field->number = (uint32_t)(tag >> 3);
    field->type = (enum wire_type)(tag & 7);
    wire->bad = tag > UINT32_MAX || !field->number || field->type > WIRE_32;
    return !wire->bad;
}

static bool read_content(struct wire *wire, struct wire_field *field) {
    uint64_t size;
    switch (field->type) {
    case WIRE_VARINT:
        return read_varint(wire, NUMBER_BYTES, &field->value);
    case WIRE_64:
        return take(wire, 8, &field->bytes);
    case WIRE_32:
        return take(wire, 4, &field->bytes);
    case WIRE_BYTES:
        if (!read_varint(wire, TAG_BYTES, &size))
            return false;
        wire->bad = size > INT32_MAX;
        return !wire->bad && take(wire, size, &field->bytes);
    default:
        return true;
    }
}

/* Passes over the fields of a group and its end. */
static bool skip_group(struct wire *wire, uint32_t number) {
    struct wire_field field = {0};
    if (--wire->depth < 0) {
        wire->bad = true;
        return false;
    }
    while (read_tag(wire, &field)) {
        if (field.type == WIRE_END_GROUP) {
            wire->depth++;
            wire->bad = field.number != number;
            return !wire->bad;
        }
        if (field.type == WIRE_GROUP ? !skip_group(wire, field.number) : !read_content(wire, &field))
            return false;
    }
    return false;
}

bool wire_next(struct wire *wire, struct wire_field *field) {
    *field = (struct wire_field){0};
    if (wire->bad || wire->at == wire->end || !read_tag(wire, field))
        return false;
    if (field->type == WIRE_END_GROUP) {
        wire->bad = true;
        return false;
    }
    return field->type == WIRE_GROUP ? skip_group(wire, field->number) : read_content(wire, field);
}

bool wire_next_packed(struct wire *wire, uint64_t *value) {
    return !wire->bad && wire->at < wire->end && read_varint(wire, NUMBER_BYTES, value);
}

bool wire_find(struct wire wire, uint32_t number, enum wire_type type, struct wire_field *field) {
    struct wire_field next;
    bool found = false;
    while (wire_next(&wire, &next)) {
        if (next.number == number && next.type == type) {
            *field = next;
            found = true;
        }
    }
    return found;
}

/* Bytes of the character that starts here; 0 when it is none. */
static size_t character(const uint8_t *at, size_t left) {
    static const uint32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t size = *at < 0x80 ? 1 : *at >> 5 == 6 ? 2 : *at >> 4 == 14 ? 3 : *at >> 3 == 30 ? 4 : 0;
    if (!size || size > left)
        return 0;
    uint32_t code = size == 1 ? *at : *at & (0x7fu >> size);
    for (size_t i = 1; i < size; i++) {
        if (at[i] >> 6 != 2)
            return 0;
        code = code << 6 | (at[i] & 0x3fu);
    }
    bool wrong = code < lowest[size] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000);
    return wrong ? 0 : size;
}

bool bytes_are_utf8(struct bytes bytes) {
    for (size_t i = 0, size; i < bytes.size; i += size) {
        size = character(bytes.at + i, bytes.size - i);
        if (!size)
            return false;
    }
    return true;
}

bool bytes_equal(struct bytes bytes, const char *text) {
    return bytes.size == strlen(text) && (!bytes.size || !memcmp(bytes.at, text, bytes.size));
}
