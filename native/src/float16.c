/* Half precision numbers, by the bits.
 *
 *   half   s eeeee mmmmmmmmmm                           exponent bias 15, 10 bits behind the point
 *   float  s eeeeeeee mmmmmmmmmmmmmmmmmmmmmmm           exponent bias 127, 23 bits behind the point
 *
 * Thread safety: pure functions. */
#include "float16.h"

#include <string.h>

#define BIAS_STEP ((uint32_t)(127 - 15)) /* between the exponents */
#define BITS_STEP 13                     /* between the lengths of the mantissas */

/* value / 2^shift, to nearest, ties to even. */
static uint32_t round_shift(uint32_t value, uint32_t shift) {
    uint32_t kept = value >> shift;
    uint32_t rest = value & ((1u << shift) - 1);
    uint32_t half = 1u << (shift - 1);
    return kept + (rest > half || (rest == half && (kept & 1)));
}

uint16_t float16_from_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    uint32_t sign = bits >> 16 & 0x8000;
    uint32_t exponent = bits >> 23 & 0xff;
    uint32_t mantissa = bits & 0x7fffff;
    uint32_t half;
    if (exponent == 0xff)
        half = mantissa ? 0x7e00 | mantissa >> BITS_STEP : 0x7c00;
    else if (exponent >= BIAS_STEP + 31)
        half = 0x7c00;
    else if (exponent > BIAS_STEP) /* a carry out of the mantissa raises the exponent, as it should */
        half = round_shift((exponent - BIAS_STEP) << 23 | mantissa, BITS_STEP);
    else if (exponent + 11 > BIAS_STEP) /* subnormal */
        half = round_shift(mantissa | 0x800000, BITS_STEP + 1 + BIAS_STEP - exponent);
    else
        half = 0;
    return (uint16_t)(sign | half);
}

float float16_to_float(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t exponent = half >> 10 & 0x1f;
    uint32_t mantissa = half & 0x3ff;
    uint32_t bits;
    float value;
    if (exponent == 0) { /* mantissa / 2^24; exact */
        value = (float)mantissa * 0x1p-24f;
        memcpy(&bits, &value, sizeof(bits));
    } else {
        bits = (exponent == 0x1f ? 0xff : exponent + BIAS_STEP) << 23 | mantissa << BITS_STEP;
    }
    bits |= sign;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

float bfloat16_to_float(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof(value));
    return value;
}

uint16_t bfloat16_from_float(float value) {
    uint32_t wide;
    memcpy(&wide, &value, sizeof(wide));
    if ((wide & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(wide >> 16 | 0x40); /* a NaN stays one */
    return (uint16_t)((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
}
