/* A JSON reader that checks the whole document and reports scalar members by path. It keeps no tree: aclInit looks for
 * two members and passes over the rest. Strings are reported without resolving escapes, which the members looked for do
 * not need. Depth and path length are bounded; deeper documents are refused.
 *
 * Thread safety: no state outside the call. */
#include "json.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define MAX_DEPTH 32
#define MAX_PATH 256
#define MAX_TEXT 128

struct reader {
    const char *at;        /* next character */
    int depth;             /* objects and arrays open */
    int arrays;            /* arrays open: members inside are not reported */
    char path[MAX_PATH];   /* dotted path of the value being read */
    json_value_fn *report; /* who is told */
    void *user;            /* handed to report */
};

static bool read_value(struct reader *reader);

static void skip_space(struct reader *reader) {
    while (*reader->at && strchr(" \t\r\n", *reader->at))
        reader->at++;
}

static bool take(struct reader *reader, char wanted) {
    skip_space(reader);
    if (*reader->at != wanted)
        return false;
    reader->at++;
    return true;
}

/* One escape sequence after the backslash. */
static bool skip_escape(struct reader *reader) {
    char kind = *reader->at++;
    if (kind && strchr("\"\\/bfnrt", kind))
        return true;
    for (int i = 0; kind == 'u' && i < 4; i++) {
        if (!isxdigit((unsigned char)*reader->at++))
            return false;
    }
    return kind == 'u';
}

/* A string; its text, cut to the room, goes to out. */
static bool read_string(struct reader *reader, char out[MAX_TEXT]) {
    if (!take(reader, '"'))
        return false;
    const char *start = reader->at;
    while (*reader->at != '"') {
        unsigned char c = (unsigned char)*reader->at;
        if (c < 0x20)
            return false;
        reader->at++;
        if (c == '\\' && !skip_escape(reader))
            return false;
    }
    snprintf(out, MAX_TEXT, "%.*s", (int)(reader->at - start < MAX_TEXT ? reader->at - start : MAX_TEXT), start);
    reader->at++;
    return true;
}

static void skip_digits(struct reader *reader) {
    while (isdigit((unsigned char)*reader->at))
        reader->at++;
}

/* Digits, at least one. */
static bool read_digits(struct reader *reader) {
    const char *start = reader->at;
    skip_digits(reader);
    return reader->at > start;
}

static bool read_number(struct reader *reader) {
    const char *start = reader->at;
    char text[MAX_TEXT];
    if (*reader->at == '-')
        reader->at++;
    const char *digits = reader->at;
    if (!read_digits(reader) || (digits[0] == '0' && reader->at > digits + 1))
        return false;
    if (*reader->at == '.') {
        reader->at++;
        if (!read_digits(reader))
            return false;
    }
    if (*reader->at == 'e' || *reader->at == 'E') {
        reader->at++;
        if (*reader->at == '+' || *reader->at == '-')
            reader->at++;
        if (!read_digits(reader))
            return false;
    }
    snprintf(text, sizeof(text), "%.*s", (int)(reader->at - start < MAX_TEXT ? reader->at - start : MAX_TEXT), start);
    if (!reader->arrays)
        reader->report(reader->user, reader->path, text, false);
    return true;
}

static bool read_word(struct reader *reader, const char *word) {
    size_t len = strlen(word);
    if (strncmp(reader->at, word, len))
        return false;
    reader->at += len;
    return true;
}

/* "name": value; the name is part of the path while the value is read. */
static bool read_member(struct reader *reader) {
    char name[MAX_TEXT];
    size_t len = strlen(reader->path);
    skip_space(reader);
    if (!read_string(reader, name) || !take(reader, ':') || len + strlen(name) + 2 > MAX_PATH)
        return false;
    snprintf(reader->path + len, MAX_PATH - len, "%s%s", len ? "." : "", name);
    bool good = read_value(reader);
    reader->path[len] = 0;
    return good;
}

/* Items up to the closing character; the opening one was taken. */
static bool read_items(struct reader *reader, char closing, bool (*item)(struct reader *)) {
    if (++reader->depth > MAX_DEPTH)
        return false;
    if (!take(reader, closing)) {
        do {
            if (!item(reader))
                return false;
        } while (take(reader, ','));
        if (!take(reader, closing))
            return false;
    }
    reader->depth--;
    return true;
}

static bool read_array(struct reader *reader) {
    reader->arrays++;
    bool good = read_items(reader, ']', read_value);
    reader->arrays--;
    return good;
}

static bool read_value(struct reader *reader) {
    char text[MAX_TEXT];
    if (take(reader, '{'))
        return read_items(reader, '}', read_member);
    if (take(reader, '['))
        return read_array(reader);
    if (*reader->at == '"') {
        if (!read_string(reader, text))
            return false;
        if (!reader->arrays)
            reader->report(reader->user, reader->path, text, true);
        return true;
    }
    if (*reader->at == '-' || isdigit((unsigned char)*reader->at))
        return read_number(reader);
    return read_word(reader, "true") || read_word(reader, "false") || read_word(reader, "null");
}

bool json_read(const char *text, json_value_fn *report, void *user) {
    struct reader reader = {.at = text, .report = report, .user = user};
    if (!read_value(&reader))
        return false;
    skip_space(&reader);
    return *reader.at == 0;
}
