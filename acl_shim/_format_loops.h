/* Loops of gevar.formats for which numpy has no fast form: float16, and look-ups in a table of all bit patterns.
 *
 * Each goes over one block of elements that the caller chose; it allocates nothing, keeps no state, and may run in any
 * number of threads. What a cast to float16 loses is only noticed here; the caller counts it, in the few blocks that
 * have any. The loops are written so that the compiler vectorizes them; on x86-64 a second version for AVX2 is chosen
 * at run time, but under the thread sanitizer, which cannot run that early. */

#ifndef ACL_SHIM_FORMAT_LOOPS_H
#define ACL_SHIM_FORMAT_LOOPS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) &&                           \
    !defined(__SANITIZE_THREAD__)
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

/* Takes the exponent of infinity and NaN for an ordinary one. Returns the largest magnitude. */
FORMAT_LOOP uint32_t format_float16_to_float(const uint16_t *restrict src, float *restrict dst, size_t count) {
    uint32_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t magnitude = src[i] & 0x7FFFu;
        largest = magnitude > largest ? magnitude : largest;
        /* the exponents of float are larger by 112 */
        dst[i] = format_real(magnitude << 13 | (src[i] & 0x8000u) << 16) * 0x1p112f;
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

/* Writes the element of a table at each pattern. */
#define FORMAT_LOOK_UP(name, source, result)                                                                           \
    static void name(const source *restrict src, const result *restrict table, result *restrict dst, size_t count) {   \
        for (size_t i = 0; i < count; i++) {                                                                           \
            dst[i] = table[src[i]];                                                                                    \
        }                                                                                                              \
    }

FORMAT_LOOK_UP(format_look_up_1_2, uint8_t, uint16_t)
FORMAT_LOOK_UP(format_look_up_1_4, uint8_t, uint32_t)
FORMAT_LOOK_UP(format_look_up_2_2, uint16_t, uint16_t)
FORMAT_LOOK_UP(format_look_up_rest_2_1, uint16_t, uint8_t)

/* Four results are written at once: one store for each is what takes longest. */
static void format_look_up_2_1(const uint16_t *restrict src, const uint8_t *restrict table, uint8_t *restrict dst,
                               size_t count) {
    size_t i = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (; i + 4 <= count; i += 4) {
        const uint32_t four = table[src[i]] | (uint32_t)table[src[i + 1]] << 8 | (uint32_t)table[src[i + 2]] << 16 |
                              (uint32_t)table[src[i + 3]] << 24;
        memcpy(dst + i, &four, sizeof four);
    }
#endif
    format_look_up_rest_2_1(src + i, table, dst + i, count - i);
}

/* The results of all patterns of one or two bytes, and what each loses. */
typedef struct {
    int src_width, dst_width; /* bytes of a pattern and of a result: 1 and 2, 1 and 4, 2 and 1, or 2 and 2 */
    const void *results;
    const uint8_t *losses; /* flags of each pattern; the lower three are counted */
    size_t range_count;
    const uint16_t *ranges; /* where patterns with flags are: the first of a range, and how far the last is from it */
} format_table;

enum { FORMAT_PART = 4096 /* elements that are cast and looked over while the first-level cache has them */ };

static void format_look_up(const format_table *table, const void *patterns, void *dst, size_t count) {
    if (table->src_width == 1 && table->dst_width == 2) {
        format_look_up_1_2(patterns, table->results, dst, count);
    } else if (table->src_width == 1) {
        format_look_up_1_4(patterns, table->results, dst, count);
    } else if (table->dst_width == 1) {
        format_look_up_2_1(patterns, table->results, dst, count);
    } else {
        format_look_up_2_2(patterns, table->results, dst, count);
    }
}

/* Adds the elements that have each of the flags. */
static void format_count_losses(const format_table *table, const void *patterns, size_t count, int64_t *lost) {
    int found = 0;
    for (size_t i = 0; i < table->range_count && !found; i++) {
        const uint16_t first = table->ranges[2 * i], span = table->ranges[2 * i + 1];
        found = table->src_width == 1 ? format_any_within_1(patterns, (uint8_t)first, (uint8_t)span, count)
                                      : format_any_within_2(patterns, first, span, count);
    }
    for (size_t i = 0; found && i < count; i++) {
        const size_t pattern = table->src_width == 1 ? ((const uint8_t *)patterns)[i] : ((const uint16_t *)patterns)[i];
        for (int flag = 0; flag < 3; flag++) {
            lost[flag] += table->losses[pattern] >> flag & 1;
        }
    }
}

/* Casts elements by a table of their patterns, or of the upper two bytes where they have four, and adds to `lost` the
 * elements that have each of the three flags. */
static void format_by_table(const format_table *table, const void *src, int width, void *dst, size_t count,
                            int64_t *lost) {
    uint16_t upper[FORMAT_PART];
    for (size_t start = 0; start < count; start += FORMAT_PART) {
        const size_t part = count - start < FORMAT_PART ? count - start : FORMAT_PART;
        const void *patterns = (const char *)src + start * (size_t)width;
        if (width == 4) {
            format_upper_patterns(patterns, upper, part);
            patterns = upper;
        }
        format_look_up(table, patterns, (char *)dst + start * (size_t)table->dst_width, part);
        format_count_losses(table, patterns, part, lost);
    }
}

#endif
