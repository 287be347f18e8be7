/* The trace of calls: one JSON line per call of an exported function; see trace.c. */
#ifndef HOSTACL_TRACE_H
#define HOSTACL_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acl/acl_rt.h"

struct complaint;

/* How a value is shown; those from TRACE_OUT_SIGNED on are pointers whose target the call writes. */
enum trace_kind {
    TRACE_SIGNED,
    TRACE_UNSIGNED,
    TRACE_REAL,
    TRACE_ADDRESS,
    TRACE_TEXT,
    TRACE_STRUCT,
    TRACE_NOTHING, /* result of a function that returns nothing */
    TRACE_OUT_SIGNED,
    TRACE_OUT_UNSIGNED,
    TRACE_OUT_REAL,
    TRACE_OUT_ADDRESS,
    TRACE_OUT_STRUCT,
};

/* Fields of a structure that the trace shows. */
struct trace_layout;

/* One argument or result. */
struct trace_value {
    enum trace_kind kind;
    unsigned bytes;                    /* size of the target of an out pointer */
    const struct trace_layout *layout; /* of a structure */
    union {
        int64_t whole;       /* TRACE_SIGNED and TRACE_UNSIGNED, the latter as bits */
        double real;         /* TRACE_REAL */
        const void *pointer; /* the rest */
    };
};

/* A call under way; lives on the stack of the function. */
struct trace_call {
    const char *function;             /* exported name */
    const char *names;                /* the arguments as written, separated by commas */
    const struct trace_value *values; /* one for each name */
    size_t count;                     /* of the values */
    uint64_t start;                   /* nanoseconds of the monotonic clock */
};

/* False while no call is traced; true before the environment was read. */
extern atomic_bool trace_on;

/* Whether the call that asks is to be traced; false inside a call that is being traced. */
bool trace_take(void);

/* The two ends of a traced call. Between them trace_mark says that the next exported function is that call. */
void trace_begin(struct trace_call *call);
void trace_mark(void);
void trace_end(struct trace_call *call, struct trace_value result);

/* Where the lines go: off, stderr, fd:N or a path. False when it cannot be opened; then nothing changes. */
bool trace_to(const char *place, struct complaint *complaint);

static inline struct trace_value trace_signed(int64_t value) {
    return (struct trace_value){.kind = TRACE_SIGNED, .whole = value};
}

static inline struct trace_value trace_unsigned(uint64_t value) {
    return (struct trace_value){.kind = TRACE_UNSIGNED, .whole = (int64_t)value};
}

static inline struct trace_value trace_real(double value) {
    return (struct trace_value){.kind = TRACE_REAL, .real = value};
}

static inline struct trace_value trace_address(const volatile void *pointer) {
    return (struct trace_value){.kind = TRACE_ADDRESS, .pointer = (const void *)pointer};
}

static inline struct trace_value trace_text(const char *text) {
    return (struct trace_value){.kind = TRACE_TEXT, .pointer = text};
}

/* The number that tells an event of another process from others. */
struct trace_value trace_event_handle(aclrtIpcEventHandle handle);

/* The type of a place in the upper half, its number in the lower. */
static inline struct trace_value trace_managed_location(aclrtMemManagedLocation location) {
    return trace_unsigned((uint64_t)location.type << 32 | (uint32_t)location.id);
}

/* trace_KIND for a pointer to TYPE. */
#define TRACE_POINTER(suffix, type, value_kind)                                                                        \
    static inline struct trace_value trace_##suffix(type pointer) {                                                    \
        return (struct trace_value){.kind = value_kind, .bytes = sizeof(*pointer), .pointer = pointer};                \
    }

TRACE_POINTER(out_i32, int32_t *, TRACE_OUT_SIGNED)
TRACE_POINTER(out_i64, int64_t *, TRACE_OUT_SIGNED)
TRACE_POINTER(out_u32, uint32_t *, TRACE_OUT_UNSIGNED)
TRACE_POINTER(out_u64, uint64_t *, TRACE_OUT_UNSIGNED)
TRACE_POINTER(out_real, float *, TRACE_OUT_REAL)
TRACE_POINTER(out_address, void **, TRACE_OUT_ADDRESS)

/* The structures whose fields are shown; their layouts are in trace.c. */
#define TRACE_STRUCTS(S)                                                                                               \
    S(aclrtPtrAttributes)                                                                                              \
    S(aclrtMallocConfig)                                                                                               \
    S(aclrtMemLocation)                                                                                                \
    S(aclrtPhysicalMemProp)                                                                                            \
    S(aclrtMemAccessDesc)

#define TRACE_STRUCT_FUNCTIONS(type)                                                                                   \
    extern const struct trace_layout trace_layout_##type;                                                              \
    static inline struct trace_value trace_##type(const type *pointer) {                                               \
        return (struct trace_value){.kind = TRACE_STRUCT, .layout = &trace_layout_##type, .pointer = pointer};         \
    }                                                                                                                  \
    static inline struct trace_value trace_out_##type(const type *pointer) {                                           \
        return (struct trace_value){.kind = TRACE_OUT_STRUCT, .layout = &trace_layout_##type, .pointer = pointer};     \
    }
TRACE_STRUCTS(TRACE_STRUCT_FUNCTIONS)

#define TRACE_STRUCT_CASES(type) const type * : trace_##type, type * : trace_out_##type,

/* Any argument or result as a trace_value, by its type. */
#define TRACE_VALUE(value)                                                                                             \
    _Generic((value),                                                                                                  \
        bool: trace_unsigned,                                                                                          \
        unsigned char: trace_unsigned,                                                                                 \
        unsigned short: trace_unsigned,                                                                                \
        unsigned: trace_unsigned,                                                                                      \
        unsigned long: trace_unsigned,                                                                                 \
        int: trace_signed,                                                                                             \
        long: trace_signed,                                                                                            \
        float: trace_real,                                                                                             \
        aclrtIpcEventHandle: trace_event_handle,                                                                       \
        aclrtMemManagedLocation: trace_managed_location,                                                               \
        const char *: trace_text,                                                                                      \
        int32_t *: trace_out_i32,                                                                                      \
        int64_t *: trace_out_i64,                                                                                      \
        uint32_t *: trace_out_u32,                                                                                     \
        uint64_t *: trace_out_u64,                                                                                     \
        float *: trace_out_real,                                                                                       \
        void **: trace_out_address,                                                                                    \
        TRACE_STRUCTS(TRACE_STRUCT_CASES) default: trace_address)(value)

/* TRACE_VALUE of up to ten arguments, with a comma behind each. */
#define TRACE_1(a) TRACE_VALUE(a),
#define TRACE_2(a, ...) TRACE_VALUE(a), TRACE_1(__VA_ARGS__)
#define TRACE_3(a, ...) TRACE_VALUE(a), TRACE_2(__VA_ARGS__)
#define TRACE_4(a, ...) TRACE_VALUE(a), TRACE_3(__VA_ARGS__)
#define TRACE_5(a, ...) TRACE_VALUE(a), TRACE_4(__VA_ARGS__)
#define TRACE_6(a, ...) TRACE_VALUE(a), TRACE_5(__VA_ARGS__)
#define TRACE_7(a, ...) TRACE_VALUE(a), TRACE_6(__VA_ARGS__)
#define TRACE_8(a, ...) TRACE_VALUE(a), TRACE_7(__VA_ARGS__)
#define TRACE_9(a, ...) TRACE_VALUE(a), TRACE_8(__VA_ARGS__)
#define TRACE_10(a, ...) TRACE_VALUE(a), TRACE_9(__VA_ARGS__)
#define TRACE_PICK(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, chosen, ...) chosen
#define TRACE_VALUES(...)                                                                                              \
    __VA_OPT__(TRACE_PICK(__VA_ARGS__, TRACE_10, TRACE_9, TRACE_8, TRACE_7, TRACE_6, TRACE_5, TRACE_4, TRACE_3,        \
                          TRACE_2, TRACE_1, )(__VA_ARGS__))

/* Around an argument of ENTER: a pointer the call only reads. A structure is then shown among the arguments. */
#define IN(pointer) (pointer)

#endif
