/* The loops of gevar.formats over one block, in memory without a spare byte. */
#include "_format_loops.h"
#include "check.h"

enum { LONGEST = 2 * FORMAT_PART + 3 };

static unsigned seed = 3;

static uint32_t draw(void) {
    seed = seed * 1103515245u + 12345u;
    const uint32_t high = seed >> 8 << 16;
    seed = seed * 1103515245u + 12345u;
    return high ^ seed >> 8;
}

static void *filled(size_t size) {
    uint8_t *const bytes = malloc(size);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)draw();
    }
    return bytes;
}

/* Value of a finite float16. */
static float value_of(uint16_t half) {
    const uint32_t exponent = half >> 10 & 31, mantissa = half & 1023;
    float value = (float)(exponent ? 1024 + mantissa : mantissa);
    for (uint32_t i = 24; i < (exponent ? exponent : 1) + 23; i++) {
        value *= 2;
    }
    return (half & 0x8000 ? -value : value) / (1 << 24);
}

static void try_float16(size_t count) {
    float *const reals = malloc(count * sizeof *reals);
    int32_t *const integers = malloc(count * sizeof *integers);
    uint16_t *const halves = malloc(count * sizeof *halves), *const out = malloc(count * sizeof *out);
    uint32_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        halves[i] = (uint16_t)(draw() % 0x7C00 | (draw() & 0x8000));
        reals[i] = value_of(halves[i]);
        integers[i] = (int32_t)(draw() % 4097) - 2048;
        const uint32_t magnitude = format_bits(reals[i]) & 0x7FFFFFFF;
        largest = magnitude > largest ? magnitude : largest;
    }
    CHECK_EQ(format_float_to_float16((const uint32_t *)(const void *)reals, out, count), largest);
    CHECK(memcmp(out, halves, count * sizeof *out) == 0);
    float *const again = malloc(count * sizeof *again);
    CHECK(format_float16_to_float(halves, again, count) < 0x7C00);
    CHECK(memcmp(again, reals, count * sizeof *again) == 0);
    free(again);
    CHECK(format_int32_to_float16(integers, out, count) <= 2048);
    for (size_t i = 0; i < count; i++) {
        CHECK((int32_t)value_of(out[i]) == integers[i]);
    }
    free(reals);
    free(integers);
    free(halves);
    free(out);
}

static size_t pattern_at(const void *src, int width, size_t i) {
    if (width == 1) {
        return ((const uint8_t *)src)[i];
    }
    if (width == 2) {
        return ((const uint16_t *)src)[i];
    }
    const uint32_t bits = ((const uint32_t *)src)[i];
    return bits >> 16 | ((bits & 0xFFFF) != 0);
}

/* Casts random elements of so many bytes by a random table, some patterns of which lose something. */
static void try_table(int width, int dst_width, size_t count) {
    const size_t patterns = width == 1 ? 256 : 65536;
    const uint16_t ranges[] = {3, 2, (uint16_t)(patterns - 5), 4};
    uint8_t *const results = filled(patterns * (size_t)dst_width), *const losses = calloc(patterns, 1);
    uint8_t *const src = filled(count * (size_t)width), *const dst = filled(count * (size_t)dst_width);
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k <= ranges[2 * i + 1]; k++) {
            losses[ranges[2 * i] + k] = (uint8_t)(draw() % 8);
        }
    }
    const format_table table = {width == 1 ? 1 : 2, dst_width, results, losses, 2, ranges};
    int64_t lost[3] = {0}, wanted[3] = {0};
    format_by_table(&table, src, width, dst, count, lost);
    for (size_t i = 0; i < count; i++) {
        const size_t pattern = pattern_at(src, width, i), place = (size_t)dst_width;
        CHECK(memcmp(dst + i * place, results + pattern * place, place) == 0);
        for (int flag = 0; flag < 3; flag++) {
            wanted[flag] += losses[pattern] >> flag & 1;
        }
    }
    CHECK(memcmp(lost, wanted, sizeof lost) == 0);
    free(results);
    free(losses);
    free(src);
    free(dst);
}

int main(void) {
    static const size_t counts[] = {1, 2, 3, 7, 8, 31, 33, 64, FORMAT_PART - 1, FORMAT_PART, LONGEST};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        try_float16(counts[i]);
        try_table(1, 2, counts[i]);
        try_table(1, 4, counts[i]);
        try_table(2, 1, counts[i]);
        try_table(2, 2, counts[i]);
        try_table(4, 1, counts[i]);
    }
    return check_done();
}
