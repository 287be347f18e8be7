/* Random numbers. Each follows from seed and position alone, by mixing them into 64 bits, so a range may be drawn in
 * pieces and drawn again. The distributions are those of a card, the numbers are not.
 *
 * Thread safety: any thread, any time. */
#include "random_numbers.h"

#include <math.h>
#include <string.h>

#include "float16.h"

#define TRUNCATED_AT 2.0 /* deviations from the mean */
#define TWO_PI 6.283185307179586

static bool is_whole(aclDataType type) {
    return type == ACL_INT32 || type == ACL_INT64 || type == ACL_UINT32 || type == ACL_UINT64;
}

size_t random_number_bytes(aclDataType type) {
    if (type == ACL_INT64 || type == ACL_UINT64)
        return sizeof(uint64_t);
    return type == ACL_FLOAT16 || type == ACL_BF16 ? sizeof(uint16_t) : sizeof(uint32_t);
}

bool random_can(aclrtRandomNumFuncType function, aclDataType type) {
    bool real = type == ACL_FLOAT || type == ACL_FLOAT16 || type == ACL_BF16;
    return real || (function == ACL_RT_RANDOM_NUM_FUNC_TYPE_UNIFORM_DIS && is_whole(type));
}

uint64_t random_bytes(const struct random_plan *plan, uint64_t count) {
    if (plan->function == ACL_RT_RANDOM_NUM_FUNC_TYPE_DROPOUT_BITMASK)
        return count / 8 + (count % 8 != 0);
    return count * random_number_bytes(plan->type);
}

double random_read(aclDataType type, uint64_t bits) {
    float value;
    uint32_t low = (uint32_t)bits;
    switch (type) {
    case ACL_FLOAT:
        memcpy(&value, &low, sizeof(value));
        return (double)value;
    case ACL_FLOAT16:
        return (double)float16_to_float((uint16_t)bits);
    default:
        return (double)bfloat16_to_float((uint16_t)bits);
    }
}

/* 64 bits for a position and a draw at it. */
static uint64_t mix(const struct random_plan *plan, uint64_t index, uint64_t draw) {
    uint64_t bits = plan->seed + (plan->position + index) * UINT64_C(0x9e3779b97f4a7c15) + draw;
    for (int round = 0; round < 2; round++) {
        bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
        bits ^= bits >> 31;
    }
    return bits;
}

/* From 0 to below 1. */
static double unit(const struct random_plan *plan, uint64_t index, uint64_t draw) {
    return (double)(mix(plan, index, draw) >> 11) * 0x1p-53;
}

static double normal(const struct random_plan *plan, uint64_t index, uint64_t draw) {
    double radius = sqrt(-2 * log(1 - unit(plan, index, 2 * draw)));
    return radius * cos(TWO_PI * unit(plan, index, 2 * draw + 1));
}

static double real_number(const struct random_plan *plan, uint64_t index) {
    if (plan->function == ACL_RT_RANDOM_NUM_FUNC_TYPE_UNIFORM_DIS)
        return plan->first + unit(plan, index, 0) * (plan->second - plan->first);
    uint64_t draw = 0;
    double value = normal(plan, index, draw);
    while (plan->function == ACL_RT_RANDOM_NUM_FUNC_TYPE_TRUNCATED_NORMAL_DIS && fabs(value) > TRUNCATED_AT)
        value = normal(plan, index, ++draw);
    return plan->first + value * plan->second;
}

static void write_number(const struct random_plan *plan, uint64_t index, char *to) {
    size_t bytes = random_number_bytes(plan->type);
    if (is_whole(plan->type)) {
        uint64_t bits = mix(plan, index, 0);
        uint64_t value = plan->whole_first + (plan->whole_span ? bits % plan->whole_span : 0);
        memcpy(to, &value, bytes);
        return;
    }
    float value = (float)real_number(plan, index);
    uint16_t half = plan->type == ACL_FLOAT16 ? float16_from_float(value) : bfloat16_from_float(value);
    memcpy(to, plan->type == ACL_FLOAT ? (const void *)&value : (const void *)&half, bytes);
}

static void write_bits(const struct random_plan *plan, uint64_t index, uint64_t count, uint8_t *to) {
    memset(to, 0, random_bytes(plan, count));
    for (uint64_t i = 0; i < count; i++)
        to[i / 8] |= (uint8_t)((unit(plan, index + i, 0) >= plan->first) << i % 8);
}

void random_write(const struct random_plan *plan, uint64_t index, uint64_t count, void *to) {
    if (plan->function == ACL_RT_RANDOM_NUM_FUNC_TYPE_DROPOUT_BITMASK) {
        write_bits(plan, index, count, to);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        write_number(plan, index + i, (char *)to + i * random_number_bytes(plan->type));
}
