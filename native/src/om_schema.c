/* Checks a whole message as a protobuf library does that knows its fields: every message inside is well-formed, every
 * text is UTF-8, every packed list ends where its bytes end. Fields that are not in the tables, or have another wire
 * type than theirs, are well-formed and else of no interest.
 *
 * After this check a reader may take what it needs without looking at errors again. Thread safety: constant data only.
 */
#include "om_schema.h"

enum message {
    MODEL,
    GRAPH,
    OPERATOR,
    ATTRIBUTE_ENTRY,
    ATTRIBUTE,
    LIST,
    NAMED,
    DESCRIPTION,
    TENSOR,
    SHAPE,
    INT_LISTS,
    FLOAT_LISTS,
    FLOAT_LIST,
    GROUPS,
    OTHER_GROUP,
    OTHER_ENTRY,
    GROUP,
    SYMBOL_GROUP,
    SHAPE_ENVIRONMENT,
    NUMBER_ENTRY,
    SYMBOLS_ENTRY,
    SOURCE_ENTRY,
    REPLACEMENT_ENTRY,
    REPLACEMENT,
    CHECK_INFO,
    SYMBOLS,
    EMPTY,
    TASK_LIST,
    TEXT_ENTRY,
};

enum content { TEXT = 1, NUMBERS, FLOATS, MESSAGE };

/* What lies in a field of wire type bytes. */
struct rule {
    uint8_t number;  /* of the field; 0 ends a table */
    uint8_t content; /* what it holds */
    uint8_t message; /* which one, for MESSAGE */
};

#define RULES(...)                                                                                                     \
    (const struct rule[]) {                                                                                            \
        __VA_ARGS__, {0}                                                                                               \
    }
#define TEXT_IN(number) {number, TEXT, 0}
#define NUMBERS_IN(number) {number, NUMBERS, 0}
#define FLOATS_IN(number) {number, FLOATS, 0}
#define IN_FIELD(number, message) {number, MESSAGE, message}

/* Source: GE source, graph_metadef/proto/ge_ir.proto and task.proto. */
static const struct rule *const rules[] = {
    [MODEL] = RULES(TEXT_IN(1), TEXT_IN(3), IN_FIELD(7, GRAPH), IN_FIELD(11, ATTRIBUTE_ENTRY), IN_FIELD(12, GROUPS)),
    [GRAPH] = RULES(TEXT_IN(1), TEXT_IN(4), TEXT_IN(5), IN_FIELD(6, OPERATOR), IN_FIELD(11, ATTRIBUTE_ENTRY),
                    IN_FIELD(12, GROUPS)),
    [OPERATOR] =
        RULES(TEXT_IN(1), TEXT_IN(2), TEXT_IN(5), IN_FIELD(10, ATTRIBUTE_ENTRY), IN_FIELD(11, GROUPS), TEXT_IN(23),
              TEXT_IN(24), NUMBERS_IN(25), TEXT_IN(26), NUMBERS_IN(27), NUMBERS_IN(28), NUMBERS_IN(29), NUMBERS_IN(30),
              NUMBERS_IN(31), NUMBERS_IN(32), IN_FIELD(33, DESCRIPTION), IN_FIELD(34, DESCRIPTION), TEXT_IN(35)),
    [ATTRIBUTE_ENTRY] = RULES(TEXT_IN(1), IN_FIELD(2, ATTRIBUTE)),
    [ATTRIBUTE] = RULES(IN_FIELD(1, LIST), IN_FIELD(10, NAMED), IN_FIELD(11, DESCRIPTION), IN_FIELD(12, TENSOR),
                        IN_FIELD(13, GRAPH), IN_FIELD(14, INT_LISTS), IN_FIELD(16, FLOAT_LISTS)),
    [LIST] = RULES(NUMBERS_IN(3), FLOATS_IN(4), NUMBERS_IN(5), IN_FIELD(8, DESCRIPTION), IN_FIELD(9, TENSOR),
                   IN_FIELD(10, GRAPH), IN_FIELD(11, NAMED), NUMBERS_IN(12)),
    [NAMED] = RULES(TEXT_IN(1), IN_FIELD(2, ATTRIBUTE_ENTRY)),
    [DESCRIPTION] = RULES(TEXT_IN(1), IN_FIELD(3, SHAPE), TEXT_IN(4), IN_FIELD(5, ATTRIBUTE_ENTRY), IN_FIELD(6, GROUPS),
                          TEXT_IN(14), TEXT_IN(20)),
    [TENSOR] = RULES(IN_FIELD(1, DESCRIPTION)),
    [SHAPE] = RULES(NUMBERS_IN(1)),
    [INT_LISTS] = RULES(IN_FIELD(1, SHAPE)),
    [FLOAT_LISTS] = RULES(IN_FIELD(1, FLOAT_LIST)),
    [FLOAT_LIST] = RULES(FLOATS_IN(1)),
    [GROUPS] = RULES(IN_FIELD(1, OTHER_GROUP), IN_FIELD(2, GROUP)),
    [OTHER_GROUP] = RULES(IN_FIELD(1, OTHER_ENTRY)),
    [OTHER_ENTRY] = RULES(TEXT_IN(1), IN_FIELD(2, EMPTY)),
    [GROUP] = RULES(IN_FIELD(3, SYMBOL_GROUP), IN_FIELD(4, SHAPE_ENVIRONMENT)),
    [SYMBOL_GROUP] = RULES(TEXT_IN(1), TEXT_IN(2)),
    [SHAPE_ENVIRONMENT] =
        RULES(IN_FIELD(1, NUMBER_ENTRY), IN_FIELD(2, SYMBOLS_ENTRY), IN_FIELD(3, SOURCE_ENTRY),
              IN_FIELD(4, REPLACEMENT_ENTRY), IN_FIELD(5, CHECK_INFO), IN_FIELD(6, CHECK_INFO), IN_FIELD(7, EMPTY)),
    [NUMBER_ENTRY] = RULES(TEXT_IN(1)),
    [SYMBOLS_ENTRY] = RULES(IN_FIELD(2, SYMBOLS)),
    [SOURCE_ENTRY] = RULES(TEXT_IN(1), IN_FIELD(2, EMPTY)),
    [REPLACEMENT_ENTRY] = RULES(TEXT_IN(1), IN_FIELD(2, REPLACEMENT)),
    [REPLACEMENT] = RULES(TEXT_IN(1)),
    [CHECK_INFO] = RULES(TEXT_IN(1), TEXT_IN(2), TEXT_IN(4)),
    [SYMBOLS] = RULES(TEXT_IN(1)),
    [EMPTY] = (const struct rule[]){{0}},
    [TASK_LIST] = RULES(TEXT_IN(1), IN_FIELD(9, TEXT_ENTRY), IN_FIELD(10, EMPTY)),
    [TEXT_ENTRY] = RULES(TEXT_IN(1), TEXT_IN(2)),
};

static const struct rule *find_rule(enum message message, uint32_t number) {
    const struct rule *rule = rules[message];
    while (rule->number && rule->number != number)
        rule++;
    return rule->number ? rule : NULL;
}

static bool is_packed(struct bytes bytes) {
    struct wire wire = wire_open(bytes);
    uint64_t value;
    while (wire_next_packed(&wire, &value))
        continue;
    return !wire.bad;
}

static bool is_message(struct wire wire, enum message message) {
    struct wire_field field;
    while (wire_next(&wire, &field)) {
        const struct rule *rule = field.type == WIRE_BYTES ? find_rule(message, field.number) : NULL;
        bool good = true;
        if (rule && rule->content == TEXT)
            good = bytes_are_utf8(field.bytes);
        else if (rule && rule->content == NUMBERS)
            good = is_packed(field.bytes);
        else if (rule && rule->content == FLOATS)
            good = field.bytes.size % sizeof(float) == 0;
        else if (rule)
            good = is_message(wire_inside(&wire, &field), (enum message)rule->message);
        if (!good)
            return false;
    }
    return !wire.bad;
}

bool om_schema_is_model(struct bytes bytes) {
    return is_message(wire_open(bytes), MODEL);
}

bool om_schema_is_task_list(struct bytes bytes) {
    return is_message(wire_open(bytes), TASK_LIST);
}
