/* Combining numbers of two ranges: to = to + from, the larger or the smaller of both. Sums of whole numbers wrap, sums
 * of half precision numbers are rounded to the nearest, ties to even. Combinations are made one at a time, so two
 * streams that add to the same numbers lose nothing.
 *
 * Thread safety: any thread, any time. */
#include "reduce.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "float16.h"

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

#define SAME(value) (value)
#define SUM(a, b) ((a) + (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))

/* One function: numbers of type stored, which load turns into what is combined and store back. */
#define REDUCE(name, stored, load, store, combine)                                                                     \
    static void name(char *to, const char *from, uint64_t len) {                                                       \
        pthread_mutex_lock(&one_at_a_time);                                                                            \
        for (uint64_t at = 0; at + sizeof(stored) <= len; at += sizeof(stored)) {                                      \
            stored a, b;                                                                                               \
            memcpy(&a, to + at, sizeof(a));                                                                            \
            memcpy(&b, from + at, sizeof(b));                                                                          \
            a = (stored)store(combine(load(a), load(b)));                                                              \
            memcpy(to + at, &a, sizeof(a));                                                                            \
        }                                                                                                              \
        pthread_mutex_unlock(&one_at_a_time);                                                                          \
    }

/* The three functions of a type; sums are made as numbers of type summed. */
#define REDUCE_ALL(suffix, stored, summed, load, store)                                                                \
    REDUCE(sum_##suffix, summed, load, store, SUM)                                                                     \
    REDUCE(max_##suffix, stored, load, store, MAX)                                                                     \
    REDUCE(min_##suffix, stored, load, store, MIN)

REDUCE_ALL(int8, int8_t, uint8_t, SAME, SAME)
REDUCE_ALL(int16, int16_t, uint16_t, SAME, SAME)
REDUCE_ALL(int32, int32_t, uint32_t, SAME, SAME)
REDUCE_ALL(float, float, float, SAME, SAME)
REDUCE_ALL(half, uint16_t, uint16_t, float16_to_float, float16_from_float)
REDUCE_ALL(bfloat, uint16_t, uint16_t, bfloat16_to_float, bfloat16_from_float)

static const struct {
    aclDataType type;
    size_t bytes;
    combine_fn *combine[3]; /* sum, larger, smaller */
} reductions[] = {
    {ACL_INT8, 1, {sum_int8, max_int8, min_int8}},     {ACL_INT16, 2, {sum_int16, max_int16, min_int16}},
    {ACL_INT32, 4, {sum_int32, max_int32, min_int32}}, {ACL_FLOAT, 4, {sum_float, max_float, min_float}},
    {ACL_FLOAT16, 2, {sum_half, max_half, min_half}},  {ACL_BF16, 2, {sum_bfloat, max_bfloat, min_bfloat}},
};

combine_fn *reduce_find(aclrtReduceKind kind, aclDataType type, size_t *bytes) {
    for (size_t i = 0; i < sizeof(reductions) / sizeof(reductions[0]); i++) {
        if (reductions[i].type == type && kind >= ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM &&
            kind <= ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN) {
            *bytes = reductions[i].bytes;
            return reductions[i].combine[kind - ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM];
        }
    }
    return NULL;
}
