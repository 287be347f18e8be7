/* Reading protobuf messages field by field; see wire.c. */
#ifndef HOSTACL_WIRE_H
#define HOSTACL_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that lie elsewhere: a text, or a message. */
struct bytes {
    const uint8_t *at; /* first one */
    size_t size;       /* how many */
};

enum wire_type { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_GROUP = 3, WIRE_END_GROUP = 4, WIRE_32 = 5 };

/* The part of a message that is not read yet. */
struct wire {
    const uint8_t *at;  /* next byte */
    const uint8_t *end; /* behind the last one */
    int depth;          /* messages that may still open inside */
    bool bad;           /* what was read is no message */
};

/* One field. */
struct wire_field {
    uint32_t number;     /* of the field */
    enum wire_type type; /* a group is passed over: it has neither value nor bytes */
    uint64_t value;      /* of a number */
    struct bytes bytes;  /* of WIRE_BYTES */
};

/* A message that lies in the bytes. */
struct wire wire_open(struct bytes bytes);

/* The message in a field of a message. */
struct wire wire_inside(const struct wire *outer, const struct wire_field *field);

/* Reads the next field; false at the end, and with wire->bad where the bytes are no message. */
bool wire_next(struct wire *wire, struct wire_field *field);

/* Reads one more number of a packed list; false at its end, and with wire->bad where it is no list. */
bool wire_next_packed(struct wire *wire, uint64_t *value);

/* Looks for the last field of that number and type in a message; false when there is none. */
bool wire_find(struct wire wire, uint32_t number, enum wire_type type, struct wire_field *field);

/* Whether the bytes are a text of UTF-8. */
bool bytes_are_utf8(struct bytes bytes);

/* Whether the bytes are this text. */
bool bytes_equal(struct bytes bytes, const char *text);

#endif
