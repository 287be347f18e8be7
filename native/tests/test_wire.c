/* Reading protobuf: what is a message, and what is not. */
#include "wire.h"

#include "check.h"
#include "om_schema.h"

static bool is_message(const void *bytes, size_t size) {
    struct wire wire = wire_open((struct bytes){bytes, size});
    struct wire_field field;
    while (wire_next(&wire, &field))
        continue;
    return !wire.bad;
}

#define GOOD(text) CHECK(is_message(text, sizeof(text) - 1))
#define BAD(text) CHECK(!is_message(text, sizeof(text) - 1))

static void test_fields(void) {
    GOOD("");
    GOOD("\x08\x01");
    GOOD("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    GOOD("\x09"
         "12345678");
    GOOD("\x0d"
         "1234");
    GOOD("\x0a\x03"
         "abc");
    GOOD("\x0b\x08\x01\x0c");         /* a group with a field */
    GOOD("\x0b\x13\x14\x0c");         /* a group inside */
    GOOD("\x88\x80\x80\x80\x00\x01"); /* a tag of five bytes */
    BAD("\x08");
    BAD("\x08\xff");
    BAD("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    BAD("\x09"
        "1234567");
    BAD("\x0d"
        "123");
    BAD("\x0a\x04"
        "abc");
    BAD("\x0a\xff\xff\xff\xff\x0f");
    BAD("\x00\x01"); /* field 0 */
    BAD("\x0e");     /* type 6 */
    BAD("\x0f");
    BAD("\x0c");         /* an end without a group */
    BAD("\x0b\x08\x01"); /* a group without an end */
    BAD("\x0b\x14");     /* the end of another group */
    BAD("\x88\x80\x80\x80\x80\x00\x01");
    BAD("\x88\x80\x80\x80\x70\x01"); /* a tag above 32 bits */
}

static void test_groups_have_a_depth(void) {
    char text[300];
    for (size_t depth = 99; depth < 103; depth++) {
        memset(text, 0x0b, depth);
        memset(text + depth, 0x0c, depth);
        CHECK_EQ(is_message(text, 2 * depth), depth <= 100);
    }
}

static void test_utf8(void) {
    static const struct {
        const char *text;
        bool good;
    } rows[] = {
        {"plain", true},
        {"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80", true},
        {"\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", true},
        {"\xed\x9f\xbf\xee\x80\x80", true},
        {"\x80", false},
        {"\xc3", false},
        {"\xc0\xaf", false},
        {"\xe0\x9f\xbf", false},
        {"\xed\xa0\x80", false},
        {"\xf0\x8f\xbf\xbf", false},
        {"\xf4\x90\x80\x80", false},
        {"\xf8\x88\x80\x80\x80", false},
        {"\xe2\x82", false},
        {"\xe2(\xac", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bytes bytes = {(const uint8_t *)rows[i].text, strlen(rows[i].text)};
        if (!CHECK_EQ(bytes_are_utf8(bytes), rows[i].good))
            printf("    row %zu\n", i);
    }
    CHECK(bytes_are_utf8((struct bytes){NULL, 0}));
}

#define MODEL(text) om_schema_is_model((struct bytes){(const uint8_t *)(text), sizeof(text) - 1})

static void test_schema(void) {
    CHECK(MODEL(""));
    CHECK(MODEL("\x0a\x01x"));
    CHECK(!MODEL("\x0a\x01\xff"));                     /* the name is no text */
    CHECK(MODEL("\x08\x01"));                          /* a field of another type is of no interest */
    CHECK(MODEL("\x7a\x01\xff"));                      /* nor is one that nobody knows */
    CHECK(MODEL("\x3a\x02\x0a\x00"));                  /* a graph with an empty name */
    CHECK(!MODEL("\x3a\x02\x0a\x01"));                 /* cut inside */
    CHECK(MODEL("\x3a\x06\x32\x04\xea\x01\x01\x05"));  /* output_i, one number packed */
    CHECK(!MODEL("\x3a\x06\x32\x04\xea\x01\x01\x85")); /* and cut in the number */
    CHECK(MODEL("\x5a\x0a\x12\x08\x0a\x06\x22\x04"
                "1234"));
    CHECK(!MODEL("\x5a\x09\x12\x07\x0a\x05\x22\x03"
                 "123")); /* a list of floats that is none */
    CHECK(om_schema_is_task_list((struct bytes){(const uint8_t *)"\x58\x05", 2}));
    CHECK(!om_schema_is_task_list((struct bytes){(const uint8_t *)"\x52\x01\x08", 3}));
}

/* Graphs in attributes of graphs: a message opens three more for each level, and a hundred may open. */
static void test_messages_have_a_depth(void) {
    uint8_t text[2048];
    for (unsigned levels = 1; levels <= 40; levels++) {
        size_t size = 0, at = sizeof(text);
        for (unsigned i = 0; i < levels; i++) {
            static const uint8_t tags[] = {0x6a, 0x12, 0x5a}; /* g of AttrDef, value of the entry, attr of the graph */
            for (size_t k = 0; k < sizeof(tags); k++) {
                if (size > 0x7f)
                    text[--at] = (uint8_t)(size >> 7);
                text[--at] = size > 0x7f ? (uint8_t)(size | 0x80) : (uint8_t)size;
                text[--at] = tags[k];
                size = sizeof(text) - at;
            }
        }
        CHECK_EQ(om_schema_is_model((struct bytes){text + at, size}), 3 * levels <= 100);
    }
}

int main(void) {
    test_fields();
    test_groups_have_a_depth();
    test_utf8();
    test_schema();
    test_messages_have_a_depth();
    return check_done();
}
