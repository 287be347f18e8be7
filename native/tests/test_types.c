/* Sizes of data types; half precision numbers, every one of them. */
#include <math.h>

#include "check.h"
#include "float16.h"

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static void test_sizes(void) {
    static const struct {
        aclDataType type;
        size_t bytes;
    } sizes[] = {
        {ACL_FLOAT, 4},       {ACL_FLOAT16, 2},      {ACL_INT8, 1},        {ACL_INT32, 4},         {ACL_UINT8, 1},
        {ACL_INT16, 2},       {ACL_UINT16, 2},       {ACL_UINT32, 4},      {ACL_INT64, 8},         {ACL_UINT64, 8},
        {ACL_DOUBLE, 8},      {ACL_BOOL, 1},         {ACL_COMPLEX64, 8},   {ACL_COMPLEX128, 16},   {ACL_BF16, 2},
        {ACL_COMPLEX32, 4},   {ACL_HIFLOAT8, 1},     {ACL_FLOAT8_E5M2, 1}, {ACL_FLOAT8_E4M3FN, 1}, {ACL_FLOAT8_E8M0, 1},
        {ACL_STRING, 0},      {ACL_DT_UNDEFINED, 0}, {ACL_INT4, 0},        {ACL_UINT1, 0},         {ACL_FLOAT6_E3M2, 0},
        {ACL_FLOAT4_E2M1, 0}, {(aclDataType)999, 0}, {(aclDataType)5, 0},
    };
    start(NULL);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (!CHECK_EQ(aclDataTypeSize(sizes[i].type), sizes[i].bytes))
            printf("    type %d\n", (int)sizes[i].type);
    }
}

static void test_known_halves(void) {
    static const struct {
        float value;
        uint16_t half;
    } pairs[] = {
        {0.0f, 0},
        {-0.0f, 0x8000},
        {1.0f, 0x3c00},
        {-2.0f, 0xc000},
        {65504.0f, 0x7bff},
        {65519.996f, 0x7bff},
        {65520.0f, 0x7c00},
        {1e30f, 0x7c00},
        {0x1p-14f, 0x0400},
        {0x1p-24f, 0x0001},
        {0x1p-25f, 0},
        {0x1.000002p-25f, 1},
        {-0x1p-26f, 0x8000},
        {0x1.ff8p-15f, 0x3ff},
        {0x1.ffbp-15f, 0x3ff},
        {0x1.ffcp-15f, 0x0400},
        {0x1.ffep-15f, 0x0400},
        {1.0f + 0x1p-11f, 0x3c00},
        {0.1f, 0x2e66},
        {1.0f + 0x1.8p-10f, 0x3c02},
    };
    start(NULL);
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        if (!CHECK_EQ(aclFloatToFloat16(pairs[i].value), pairs[i].half))
            printf("    %a\n", (double)pairs[i].value);
    }
    CHECK_EQ(aclFloatToFloat16(INFINITY), 0x7c00);
    CHECK_EQ(aclFloatToFloat16(-INFINITY), 0xfc00);
    CHECK_EQ(aclFloatToFloat16(NAN) & 0x7e00, 0x7e00);
    CHECK(isnan(aclFloat16ToFloat(0x7e00)) && isnan(aclFloat16ToFloat(0xfc01)));
    CHECK(isinf(aclFloat16ToFloat(0x7c00)) && aclFloat16ToFloat(0xfc00) < 0);
    CHECK_EQ(hostacl_calls("aclFloatToFloat16"), sizeof(pairs) / sizeof(pairs[0]) + 3);
}

/* Every half is a float and comes back as itself; NaN stays NaN. */
static void test_all_halves(void) {
    uint32_t wrong = 0;
    for (uint32_t half = 0; half < 0x10000; half++) {
        float value = float16_to_float((uint16_t)half);
        if (isnan(value))
            wrong +=
                (half & 0x7c00) != 0x7c00 || !(half & 0x3ff) || !isnan(float16_to_float(float16_from_float(value)));
        else
            wrong += float16_from_float(value) != half;
    }
    CHECK_EQ(wrong, 0);
}

/* Between two neighbouring halves: below the middle the lower one, above it the upper, at the middle the even one. */
static void test_rounding(void) {
    uint32_t wrong = 0;
    for (uint32_t half = 0; half < 0x7bff; half++) {
        float low = float16_to_float((uint16_t)half);
        float high = float16_to_float((uint16_t)(half + 1));
        uint32_t middle = bits_of((float)(((double)low + (double)high) / 2));
        uint16_t even = (uint16_t)(half & 1 ? half + 1 : half);
        wrong += float16_from_float(float_of(middle)) != even;
        wrong += float16_from_float(float_of(middle - 1)) != half;
        wrong += float16_from_float(float_of(middle + 1)) != half + 1;
        wrong += float16_from_float(-float_of(middle + 1)) != (half + 1) + 0x8000;
    }
    CHECK_EQ(wrong, 0);
}

int main(void) {
    test_sizes();
    test_known_halves();
    test_all_halves();
    test_rounding();
    return check_done();
}
