/* Random numbers in device memory: distributions, parameters in memory, counters. */
#include <math.h>

#include "streams.h"

enum { COUNT = 20000 };

#define DROPOUT ACL_RT_RANDOM_NUM_FUNC_TYPE_DROPOUT_BITMASK
#define UNIFORM ACL_RT_RANDOM_NUM_FUNC_TYPE_UNIFORM_DIS
#define NORMAL ACL_RT_RANDOM_NUM_FUNC_TYPE_NORMAL_DIS
#define TRUNCATED ACL_RT_RANDOM_NUM_FUNC_TYPE_TRUNCATED_NORMAL_DIS

static aclrtStream stream;
static void *result;

static void set_up(void) {
    start("profile", "strict", NULL);
    OK(aclrtSetDevice(0));
    stream = new_stream();
    result = new_block(COUNT * 8, 0x5a);
}

static void tear_down(void) {
    OK(aclrtResetDeviceForce(0));
    check_nothing_alive();
}

static aclrtRandomParaInfo value(const void *bytes, uint8_t size) {
    aclrtRandomParaInfo parameter = {.size = size};
    memcpy(parameter.valueOrAddr, bytes, size);
    return parameter;
}

static aclrtRandomParaInfo in_memory(const void *addr, uint8_t size) {
    aclrtRandomParaInfo parameter = value(&addr, sizeof(addr));
    parameter.isAddr = 1;
    parameter.size = size;
    return parameter;
}

/* Numbers with two parameters of size bytes. */
static aclrtRandomNumTaskInfo plan(aclrtRandomNumFuncType function, aclDataType type, const void *first,
                                   const void *second, uint8_t size, uint64_t count) {
    uint64_t seed = 42;
    aclrtRandomNumTaskInfo info = {.dataType = type, .randomResultAddr = result};
    info.randomNumFuncParaInfo.funcType = function;
    info.randomNumFuncParaInfo.paramInfo.uniformDisInfo.min = value(first, size);
    info.randomNumFuncParaInfo.paramInfo.uniformDisInfo.max = value(second, size);
    info.randomSeed = value(&seed, sizeof(seed));
    info.randomNum = value(&count, sizeof(count));
    return info;
}

static void draw(const aclrtRandomNumTaskInfo *info, void *to, size_t bytes) {
    OK(aclrtRandomNumAsync(info, stream, NULL));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(to, bytes, result, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
}

static bool near(double a, double b, double by) {
    return fabs(a - b) < by;
}

static void check_moments(const double *numbers, double mean, double deviation) {
    double sum = 0, squares = 0;
    for (int i = 0; i < COUNT; i++)
        sum += numbers[i];
    for (int i = 0; i < COUNT; i++)
        squares += (numbers[i] - sum / COUNT) * (numbers[i] - sum / COUNT);
    CHECK(near(sum / COUNT, mean, 0.05));
    CHECK(near(sqrt(squares / COUNT), deviation, 0.05));
}

/* Distributions of floats, and the same of halves. */
static void test_real_numbers(void) {
    static const struct {
        aclrtRandomNumFuncType function;
        float first, second;
        double mean, deviation, lowest, highest;
    } cases[] = {{UNIFORM, -1, 3, 1, 1.1547, -1, 3},
                 {NORMAL, 2, 0.5f, 2, 0.5, -HUGE_VAL, HUGE_VAL},
                 {TRUNCATED, 0, 1, 0, 0.8796, -2.001, 2.001}};
    static float floats[COUNT];
    static uint16_t halves[COUNT];
    static double numbers[COUNT];
    set_up();
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        aclrtRandomNumTaskInfo info =
            plan(cases[k].function, ACL_FLOAT, &cases[k].first, &cases[k].second, sizeof(float), COUNT);
        draw(&info, floats, sizeof(floats));
        for (int i = 0; i < COUNT; i++) {
            numbers[i] = (double)floats[i];
            if (numbers[i] < cases[k].lowest || numbers[i] > cases[k].highest)
                CHECK(false);
        }
        check_moments(numbers, cases[k].mean, cases[k].deviation);
        uint16_t first = aclFloatToFloat16(cases[k].first), second = aclFloatToFloat16(cases[k].second);
        info = plan(cases[k].function, ACL_FLOAT16, &first, &second, sizeof(first), COUNT);
        draw(&info, halves, sizeof(halves));
        for (int i = 0; i < COUNT; i++)
            numbers[i] = (double)aclFloat16ToFloat(halves[i]);
        check_moments(numbers, cases[k].mean, cases[k].deviation);
    }
    uint16_t zero = 0, one = 0x3f80;
    aclrtRandomNumTaskInfo info = plan(UNIFORM, ACL_BF16, &zero, &one, sizeof(one), COUNT);
    draw(&info, halves, sizeof(halves));
    for (int i = 0; i < COUNT && CHECK(halves[i] <= one); i++)
        continue;
    tear_down();
}

static void test_whole_numbers(void) {
    static int32_t numbers[COUNT];
    static uint64_t wide[COUNT];
    int32_t low = -3, high = 4;
    uint64_t wide_low = UINT64_C(1) << 40, wide_high = wide_low + 10;
    int seen[7] = {0};
    set_up();
    aclrtRandomNumTaskInfo info = plan(UNIFORM, ACL_INT32, &low, &high, sizeof(low), COUNT);
    draw(&info, numbers, sizeof(numbers));
    for (int i = 0; i < COUNT && CHECK(numbers[i] >= low && numbers[i] < high); i++)
        seen[numbers[i] - low]++;
    for (int i = 0; i < 7; i++)
        CHECK(seen[i] > COUNT / 10);
    info = plan(UNIFORM, ACL_UINT64, &wide_low, &wide_high, sizeof(wide_low), COUNT);
    draw(&info, wide, sizeof(wide));
    for (int i = 0; i < COUNT && CHECK(wide[i] >= wide_low && wide[i] < wide_high); i++)
        continue;
    tear_down();
}

/* A bit is 0 with the probability of the ratio; bits behind the last one are 0, bytes behind them are left alone. */
static void test_bits(void) {
    static uint8_t bits[COUNT / 8 + 2];
    float ratio = 0.3f;
    unsigned ones = 0;
    set_up();
    aclrtRandomNumTaskInfo info = plan(DROPOUT, ACL_FLOAT, &ratio, &ratio, sizeof(ratio), COUNT - 5);
    draw(&info, bits, sizeof(bits));
    for (int i = 0; i < COUNT / 8; i++)
        ones += (unsigned)__builtin_popcount(bits[i]);
    CHECK(near(ones / (double)COUNT, 0.7, 0.02));
    CHECK_EQ(bits[COUNT / 8 - 1] >> 3, 0);
    CHECK_EQ(bits[COUNT / 8], 0x5a);
    tear_down();
}

/* The same seed and position give the same numbers; a counter moves on. */
static void test_seed_and_counter(void) {
    float first[64], again[64], next[64], zero = 0, one = 1;
    uint64_t counted = 0, other_seed = 43;
    set_up();
    void *counter = new_block(16, 0);
    aclrtRandomNumTaskInfo info = plan(UNIFORM, ACL_FLOAT, &zero, &one, sizeof(one), 64);
    draw(&info, first, sizeof(first));
    draw(&info, again, sizeof(again));
    CHECK(!memcmp(first, again, sizeof(first)));
    info.randomCounterAddr = counter;
    draw(&info, again, sizeof(again));
    draw(&info, next, sizeof(next));
    CHECK(!memcmp(first, again, sizeof(first)) && memcmp(first, next, sizeof(first)));
    OK(aclrtMemcpy(&counted, 8, counter, 8, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_EQ(counted, 128);
    info.randomCounterAddr = NULL;
    info.randomSeed = value(&other_seed, sizeof(other_seed));
    draw(&info, next, sizeof(next));
    CHECK(memcmp(first, next, sizeof(first)));
    tear_down();
}

/* Parameters in device memory are read when the task runs. */
static void test_parameters_in_memory(void) {
    float numbers[8], low = 5, high = 6, seen = 0;
    uint64_t count = 4;
    set_up();
    void *memory = new_block(64, 0);
    aclrtRandomNumTaskInfo info = plan(UNIFORM, ACL_FLOAT, &low, &high, sizeof(low), 8);
    info.randomNumFuncParaInfo.paramInfo.uniformDisInfo.min = in_memory(memory, sizeof(float));
    info.randomNum = in_memory(plus(memory, 8), sizeof(count));
    OK(hostacl_hold(0));
    OK(aclrtRandomNumAsync(&info, stream, NULL));
    OK(aclrtMemcpy(memory, 4, &low, 4, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtMemcpy(plus(memory, 8), 8, &count, 8, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(hostacl_release(0));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(numbers, sizeof(numbers), result, sizeof(numbers), ACL_MEMCPY_DEVICE_TO_HOST));
    for (int i = 0; i < 4; i++)
        CHECK(numbers[i] >= low && numbers[i] <= high);
    OK(aclrtMemcpy(&seen, 4, plus(result, 16), 4, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(seen > 1e15f);
    OK(aclrtFree(memory));
    OK(aclrtRandomNumAsync(&info, stream, NULL));
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    tear_down();
}

static int fails_with(const aclrtRandomNumTaskInfo *info) {
    OK(aclrtRandomNumAsync(info, stream, NULL));
    return aclrtSynchronizeStream(stream);
}

static void test_arguments(void) {
    float zero = 0, one = 1;
    uint64_t many = UINT64_MAX;
    start(NULL);
    set_up();
    aclrtRandomNumTaskInfo good = plan(UNIFORM, ACL_FLOAT, &zero, &one, sizeof(one), 8), bad = good;
    CHECK_EQ(aclrtRandomNumAsync(NULL, stream, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtRandomNumAsync(&good, stream, result), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtRandomNumAsync(&good, &good, NULL), ACL_ERROR_RT_INVALID_HANDLE);
    bad.randomResultAddr = NULL;
    CHECK_EQ(aclrtRandomNumAsync(&bad, stream, NULL), ACL_ERROR_INVALID_PARAM);
    bad = good;
    bad.randomNumFuncParaInfo.funcType = (aclrtRandomNumFuncType)4;
    CHECK_EQ(aclrtRandomNumAsync(&bad, stream, NULL), ACL_ERROR_INVALID_PARAM);
    bad = good;
    bad.dataType = ACL_DOUBLE;
    CHECK_EQ(aclrtRandomNumAsync(&bad, stream, NULL), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    bad = good;
    bad.dataType = ACL_INT32;
    bad.randomNumFuncParaInfo.funcType = NORMAL;
    CHECK_EQ(aclrtRandomNumAsync(&bad, stream, NULL), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    bad = good;
    bad.randomSeed.size = 9;
    CHECK_EQ(fails_with(&bad), ACL_ERROR_RT_PARAM_INVALID);
    bad.randomSeed.size = 0;
    CHECK_EQ(fails_with(&bad), ACL_ERROR_RT_PARAM_INVALID);
    bad = good;
    bad.randomNum = value(&many, sizeof(many));
    CHECK_EQ(fails_with(&bad), ACL_ERROR_RT_PARAM_INVALID);
    many = COUNT * 2 + 1;
    bad.randomNum = value(&many, sizeof(many));
    CHECK_EQ(fails_with(&bad), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    bad = good;
    bad.randomResultAddr = &good;
    CHECK_EQ(fails_with(&bad), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    bad = good;
    bad.randomCounterAddr = plus(result, 8);
    CHECK_EQ(fails_with(&bad), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK(block_is(result, COUNT * 8, 0x5a));
    tear_down();
    CHECK_EQ(aclrtRandomNumAsync(&good, NULL, NULL), ACL_ERROR_RT_CONTEXT_NULL);
}

int main(void) {
    test_real_numbers();
    test_whole_numbers();
    test_bits();
    test_seed_and_counter();
    test_parameters_in_memory();
    test_arguments();
    start(NULL);
    check_nothing_alive();
    return check_done();
}
