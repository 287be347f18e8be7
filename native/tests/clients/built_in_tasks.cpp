// Tasks that a device does without a kernel: adding numbers to others, and drawing random ones.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "acl/acl.h"

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            std::fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition);                              \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (0)
#define ACL(call) CHECK((call) == ACL_SUCCESS)

namespace {

constexpr size_t kCount = 10000;

template <typename T> aclrtRandomParaInfo parameter(T value) {
    aclrtRandomParaInfo info = {};
    info.size = sizeof(T);
    std::memcpy(info.valueOrAddr, &value, sizeof(T));
    return info;
}

void *upload(const std::vector<float> &values) {
    void *block = nullptr;
    const size_t bytes = values.size() * sizeof(float);
    ACL(aclrtMalloc(&block, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    ACL(aclrtMemcpy(block, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
    return block;
}

std::vector<float> download(const void *block) {
    std::vector<float> values(kCount);
    const size_t bytes = kCount * sizeof(float);
    ACL(aclrtMemcpy(values.data(), bytes, block, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
    return values;
}

void add(void *block, const void *other, aclrtStream stream) {
    ACL(aclrtReduceAsync(block, other, kCount * sizeof(float), ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, stream,
                         nullptr));
}

void draw(void *block, aclrtStream stream) {
    aclrtRandomNumTaskInfo task = {};
    task.dataType = ACL_FLOAT;
    task.randomNumFuncParaInfo.funcType = ACL_RT_RANDOM_NUM_FUNC_TYPE_UNIFORM_DIS;
    task.randomNumFuncParaInfo.paramInfo.uniformDisInfo.min = parameter(0.0F);
    task.randomNumFuncParaInfo.paramInfo.uniformDisInfo.max = parameter(1.0F);
    task.randomResultAddr = block;
    task.randomSeed = parameter<uint64_t>(7);
    task.randomNum = parameter<uint64_t>(kCount);
    ACL(aclrtRandomNumAsync(&task, stream, nullptr));
}

} // namespace

int main() {
    aclrtStream stream = nullptr;
    ACL(aclInit(nullptr));
    ACL(aclrtSetDevice(0));
    ACL(aclrtCreateStream(&stream));
    void *sum = upload(std::vector<float>(kCount, 1.0F)), *other = upload(std::vector<float>(kCount, 2.0F));
    for (int i = 0; i < 3; ++i)
        add(sum, other, stream);
    ACL(aclrtSynchronizeStream(stream));
    for (float value : download(sum))
        CHECK(value == 7.0F);
    draw(other, stream);
    ACL(aclrtSynchronizeStream(stream));
    double mean = 0;
    for (float value : download(other)) {
        CHECK(value >= 0.0F && value <= 1.0F);
        mean += static_cast<double>(value) / kCount;
    }
    CHECK(mean > 0.45 && mean < 0.55);
    ACL(aclrtFree(sum));
    ACL(aclrtFree(other));
    ACL(aclrtDestroyStream(stream));
    ACL(aclrtResetDeviceForce(0));
    ACL(aclFinalize());
    return 0;
}
