/* Loops of gevar.formats for which numpy has no fast form: float16, and look-ups in a table of all bit patterns.
 *
 * Each goes over one block of elements that the caller chose; it allocates nothing, keeps no state, and may run in any
 * number of threads. Losses are only noticed here; the caller counts them, in the few blocks that have any. The loops
 * are written so that the compiler vectorizes them; on x86-64 a second version for AVX2 is chosen at run time. */

#ifndef ACL_SHIM_FORMAT_LOOPS_H
#define ACL_SHIM_FORMAT_LOOPS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define FORMAT_LOOP __attribute__((target_clones("avx2", "default"), optimize("O3"))) static
#else
#define FORMAT_LOOP static
#endif

static inline uint32_t format_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float format_real(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Nearest float16 of a magnitude below 65520, ties to even. A number 2^13 times as large as the magnitude is added, so
 * that the sum keeps as many bits of it as a float16 has; they are the lowest bits of the sum. */
static inline uint32_t format_half(uint32_t magnitude) {
    uint32_t exponent = magnitude & 0x7F800000u;
    exponent = exponent < 0x38800000u ? 0x38800000u : exponent; /* subnormal results have the steps of 2^-14 */
    const uint32_t large = exponent + (13u << 23);
    const uint32_t steps = format_bits(format_real(magnitude) + format_real(large)) - large;
    return steps + (exponent >> 13) - (113u << 10);
}

/* Returns the largest magnitude; results of magnitudes from 65520 (0x477FF000) on are not right. */
FORMAT_LOOP uint32_t format_float_to_float16(const uint32_t *restrict src, uint16_t *restrict dst, size_t count) {
    uint32_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t magnitude = src[i] & 0x7FFFFFFFu;
        largest = magnitude > largest ? magnitude : largest;
        dst[i] = (uint16_t)(format_half(magnitude) | (src[i] >> 16 & 0x8000u));
    }
    return largest;
}

/* What is beyond 65504 becomes 65504 with its sign. Returns the largest magnitude. */
FORMAT_LOOP uint32_t format_int32_to_float16(const int32_t *restrict src, uint16_t *restrict dst, size_t count) {
    uint32_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t sign = src[i] < 0 ? 0xFFFFFFFFu : 0;
        const uint32_t magnitude = ((uint32_t)src[i] ^ sign) - sign;
        largest = magnitude > largest ? magnitude : largest;
        const int32_t inside = magnitude > 65504u ? 65504 : (int32_t)magnitude;
        dst[i] = (uint16_t)(format_half(format_bits((float)inside)) | (sign & 0x8000u));
    }
    return largest;
}

/* Upper two bytes of float32 patterns, the lowest bit set where a lower one was. */
FORMAT_LOOP void format_upper_patterns(const uint32_t *restrict src, uint16_t *restrict dst, size_t count) {
    for (size_t i = 0; i < count; i++) {
        dst[i] = (uint16_t)((src[i] | ((src[i] & 0xFFFFu) + 0xFFFFu)) >> 16);
    }
}

#define FORMAT_LOOK_UP(source, result)                                                                                 \
    do {                                                                                                               \
        const source *restrict from = src;                                                                             \
        const result *restrict known = table;                                                                          \
        result *restrict to = dst;                                                                                     \
        for (size_t i = 0; i < count; i++) {                                                                           \
            to[i] = known[from[i]];                                                                                    \
        }                                                                                                              \
    } while (0)

/* Writes the table's element at each pattern. Patterns have one or two bytes, elements one, two or four; the table has
 * an element for every pattern. */
static void format_look_up(const void *src, int src_width, const void *table, int dst_width, void *dst, size_t count) {
    switch (src_width << 4 | dst_width) {
    case 0x11:
        FORMAT_LOOK_UP(uint8_t, uint8_t);
        break;
    case 0x12:
        FORMAT_LOOK_UP(uint8_t, uint16_t);
        break;
    case 0x14:
        FORMAT_LOOK_UP(uint8_t, uint32_t);
        break;
    case 0x21:
        FORMAT_LOOK_UP(uint16_t, uint8_t);
        break;
    case 0x22:
        FORMAT_LOOK_UP(uint16_t, uint16_t);
        break;
    default:
        FORMAT_LOOK_UP(uint16_t, uint32_t);
    }
}

/* Whether any pattern lies in the range of span + 1 patterns from first. */
FORMAT_LOOP int format_any_within_2(const uint16_t *restrict src, uint16_t first, uint16_t span, size_t count) {
    uint16_t found = 0;
    for (size_t i = 0; i < count; i++) {
        found |= (uint16_t)((uint16_t)(src[i] - first) <= span);
    }
    return found;
}

FORMAT_LOOP int format_any_within_1(const uint8_t *restrict src, uint8_t first, uint8_t span, size_t count) {
    uint8_t found = 0;
    for (size_t i = 0; i < count; i++) {
        found |= (uint8_t)((uint8_t)(src[i] - first) <= span);
    }
    return found;
}

#endif
