/* The trace of calls.
 *
 * A traced call runs twice through its first statement, ENTER: the outer pass notes arguments and time, calls the
 * function again, and writes the line when that returns; the inner pass finds the mark of the outer one, takes it away
 * and does the work. So the arguments are named once, in ENTER, calls made from callbacks are traced as well, and a
 * call that is not traced costs one load and one branch. How a value is shown follows from its type: a pointer to a
 * number or a known structure that is not const is something the call writes, so the line shows the pointer among the
 * arguments and, when the call succeeded, its target under "out".
 *
 *   {"ns":5123,"thread":77,"function":"aclrtMalloc","arguments":{"devPtr":"0x7ffd2","size":64,"policy":0},
 *    "code":0,"out":{"devPtr":"0x100000000000"},"took_ns":1804}
 *
 * Thread safety: the mark belongs to the thread; the sink writes whole lines. A forked child traces nothing. */
#include "trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "runtime.h"
#include "sink.h"

#define LINE_BYTES 8192
#define TEXT_BYTES 200

struct trace_field {
    const char *name; /* dotted path inside the structure */
    size_t offset;    /* bytes from its start */
    size_t bytes;     /* 4 or 8 */
};

struct trace_layout {
    const struct trace_field *fields; /* in the order they are shown */
    size_t count;                     /* of the fields */
};

#define FIELD(type, path) {#path, offsetof(type, path), sizeof(((type *)0)->path)}
#define LAYOUT(type, ...)                                                                                              \
    static const struct trace_field fields_##type[] = {__VA_ARGS__};                                                   \
    const struct trace_layout trace_layout_##type = {fields_##type, sizeof(fields_##type) / sizeof(struct trace_field)};

LAYOUT(aclrtPtrAttributes, FIELD(aclrtPtrAttributes, location.id), FIELD(aclrtPtrAttributes, location.type),
       FIELD(aclrtPtrAttributes, pageSize))
LAYOUT(aclrtMallocConfig, FIELD(aclrtMallocConfig, numAttrs))
LAYOUT(aclrtMemLocation, FIELD(aclrtMemLocation, id), FIELD(aclrtMemLocation, type))
LAYOUT(aclrtPhysicalMemProp, FIELD(aclrtPhysicalMemProp, handleType), FIELD(aclrtPhysicalMemProp, allocationType),
       FIELD(aclrtPhysicalMemProp, memAttr), FIELD(aclrtPhysicalMemProp, location.id),
       FIELD(aclrtPhysicalMemProp, location.type))
LAYOUT(aclrtMemAccessDesc, FIELD(aclrtMemAccessDesc, flags), FIELD(aclrtMemAccessDesc, location.id),
       FIELD(aclrtMemAccessDesc, location.type))

struct line {
    size_t used;           /* bytes of the text */
    char text[LINE_BYTES]; /* the longest call needs a third of it */
};

atomic_bool trace_on = true;
static struct sink sink = SINK_START("trace");
static _Thread_local bool inside;
static _Thread_local pid_t thread_id;

bool trace_to(const char *place, struct complaint *complaint) {
    if (!sink_open(&sink, place, complaint))
        return false;
    atomic_store(&trace_on, strcmp(place, "off") != 0);
    return true;
}

bool trace_take(void) {
    if (inside) {
        inside = false;
        return false;
    }
    runtime_start();
    return atomic_load(&trace_on) && !runtime_forked();
}

struct trace_value trace_event_handle(aclrtIpcEventHandle handle) {
    char text[sizeof(handle.reserved) + 1] = "";
    memcpy(text, handle.reserved, sizeof(handle.reserved));
    const char *number = strrchr(text, '-');
    return trace_unsigned(number ? strtoull(number + 1, NULL, 16) : 0);
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

void trace_begin(struct trace_call *call) {
    call->start = now();
}

void trace_mark(void) {
    inside = true;
}

__attribute__((format(printf, 2, 3))) static void add(struct line *line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int written = vsnprintf(line->text + line->used, sizeof(line->text) - line->used, format, args);
    va_end(args);
    line->used += (size_t)written;
    if (line->used > sizeof(line->text) - 1)
        line->used = sizeof(line->text) - 1;
}

/* A string of JSON, cut to TEXT_BYTES. Bytes above 127 become the surrogates that Python's surrogateescape uses. */
static void add_text(struct line *line, const char *text) {
    add(line, "\"");
    for (size_t i = 0; text[i] && i < TEXT_BYTES; i++) {
        unsigned byte = (unsigned char)text[i];
        if (byte >= 0x80)
            add(line, "\\udc%02x", byte);
        else if (byte < 0x20 || byte == '"' || byte == '\\' || byte == 0x7f)
            add(line, "\\u%04x", byte);
        else
            add(line, "%c", byte);
    }
    add(line, "\"");
}

static void add_address(struct line *line, const void *address) {
    if (address)
        add(line, "\"0x%" PRIxPTR "\"", (uintptr_t)address);
    else
        add(line, "null");
}

static void add_real(struct line *line, double real) {
    if (isfinite(real))
        add(line, "%.9g", real);
    else
        add(line, "null");
}

/* The bits of a number of 4 or 8 bytes at a place. */
static uint64_t bits_at(const char *place, size_t bytes) {
    uint64_t whole = 0;
    memcpy(&whole, place, bytes); /* the low bytes come first on every machine with a card */
    return whole;
}

static void add_fields(struct line *line, const struct trace_value *value) {
    for (size_t i = 0; i < value->layout->count; i++) {
        const struct trace_field *field = &value->layout->fields[i];
        const char *place = (const char *)value->pointer + field->offset;
        add(line, "%s\"%s\":%" PRIu64, i ? "," : "{", field->name, bits_at(place, field->bytes));
    }
    add(line, "}");
}

/* What an out pointer points to. */
static void add_target(struct line *line, const struct trace_value *value) {
    int64_t whole = (int64_t)bits_at(value->pointer, value->bytes);
    switch (value->kind) {
    case TRACE_OUT_SIGNED:
        add(line, "%" PRId64, value->bytes == 4 ? (int32_t)whole : whole);
        break;
    case TRACE_OUT_UNSIGNED:
        add(line, "%" PRIu64, (uint64_t)whole);
        break;
    case TRACE_OUT_REAL:
        add_real(line, *(const float *)value->pointer);
        break;
    case TRACE_OUT_ADDRESS:
        add_address(line, (const void *)(uintptr_t)whole);
        break;
    default:
        add_fields(line, value);
    }
}

static void add_value(struct line *line, const struct trace_value *value, bool readable) {
    switch (value->kind) {
    case TRACE_SIGNED:
        add(line, "%" PRId64, value->whole);
        break;
    case TRACE_UNSIGNED:
        add(line, "%" PRIu64, (uint64_t)value->whole);
        break;
    case TRACE_REAL:
        add_real(line, value->real);
        break;
    case TRACE_TEXT:
        if (value->pointer)
            add_text(line, value->pointer);
        else
            add(line, "null");
        break;
    case TRACE_STRUCT:
        if (readable && value->pointer) {
            add_fields(line, value);
            break;
        }
        __attribute__((fallthrough));
    default:
        add_address(line, value->pointer);
    }
}

/* The next name of a list such as "a, IN(b), &c"; role tells whether IN was around it. */
static const char *next_name(const char *names, const char **name, int *len, bool *is_in) {
    size_t whole = strcspn(names, ",");
    const char *end = names + whole;
    *is_in = !strncmp(names, "IN(", 3);
    *name = names + (*is_in ? 3 : 0);
    *len = (int)(end - *name) - (*is_in ? 1 : 0);
    return end + strspn(end, ", ");
}

/* The arguments, or with outs set what they point to; succeeded tells whether pointers may be followed. */
static void add_arguments(struct line *line, const struct trace_call *call, bool outs, bool succeeded) {
    const char *names = call->names;
    const char *name;
    int len;
    bool is_in;
    bool first = true;
    for (size_t i = 0; i < call->count; i++) {
        struct trace_value value = call->values[i];
        names = next_name(names, &name, &len, &is_in);
        if (is_in && value.kind == TRACE_OUT_STRUCT)
            value.kind = TRACE_STRUCT;
        if (outs && (is_in || value.kind < TRACE_OUT_SIGNED || !value.pointer))
            continue;
        add(line, "%s\"%.*s\":", first ? "" : ",", len, name);
        first = false;
        if (outs)
            add_target(line, &value);
        else
            add_value(line, &value, succeeded);
    }
}

void trace_end(struct trace_call *call, struct trace_value result) {
    struct line line;
    uint64_t took = now() - call->start;
    bool succeeded = result.kind != TRACE_SIGNED || !result.whole;
    inside = false;
    if (!thread_id)
        thread_id = (pid_t)syscall(SYS_gettid);
    line.used = 0;
    add(&line, "{\"ns\":%" PRIu64 ",\"thread\":%d,\"function\":\"%s\",\"arguments\":{", call->start, (int)thread_id,
        call->function);
    add_arguments(&line, call, false, succeeded);
    add(&line, "}");
    if (result.kind != TRACE_NOTHING) {
        add(&line, ",\"%s\":", result.kind == TRACE_SIGNED ? "code" : "result");
        add_value(&line, &result, true);
    }
    if (succeeded) {
        add(&line, ",\"out\":{");
        add_arguments(&line, call, true, true);
        add(&line, "}");
    }
    add(&line, ",\"took_ns\":%" PRIu64 "}\n", took);
    sink_write(&sink, line.text, line.used);
}
