// A first program, run three times in one process: which version and product this is, a copy there and back in a stream
// of an explicit context, everything given back by force. The headers are named one by one, as some programs do.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "acl/acl_base.h"
#include "acl/acl_base_rt.h"
#include "acl/acl_rt.h"
#include "acl/error_codes/rt_error_codes.h"

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            std::fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition);                              \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (0)
#define ACL(call) CHECK((call) == ACL_SUCCESS)

namespace {

void print_version() {
    char package[] = "runtime";
    char text[ACL_PKG_VERSION_MAX_SIZE] = {};
    int32_t number = 0, compatible = 0;
    aclCANNPackageVersion whole;
    ACL(aclsysGetVersionStr(package, text));
    ACL(aclsysGetVersionNum(package, &number));
    ACL(aclsysGetCANNVersion(ACL_PKG_NAME_CANN, &whole));
    CHECK(std::string(text) == whole.version);
    CHECK(number / 10000000 == std::atoi(whole.majorVersion));
    ACL(aclrtCheckArchCompatibility(aclrtGetSocName(), &compatible));
    CHECK(compatible == 1);
    std::printf("runtime %s (%d) on %s\n", text, number, aclrtGetSocName());
    const aclCannAttr *attributes = nullptr;
    size_t count = 0;
    ACL(aclGetCannAttributeList(&attributes, &count));
    for (size_t i = 0; i < count; ++i) {
        int32_t value = 0;
        ACL(aclGetCannAttribute(attributes[i], &value));
        CHECK(value == 1);
    }
}

void copy_there_and_back() {
    aclrtContext context = nullptr;
    aclrtStream stream = nullptr;
    void *block = nullptr;
    std::vector<float> source(1024, 3.5F), back(source.size());
    const size_t bytes = source.size() * sizeof(float);
    ACL(aclInit(nullptr));
    ACL(aclrtSetDevice(0));
    ACL(aclrtCreateContext(&context, 0));
    ACL(aclrtCreateStream(&stream));
    ACL(aclrtMalloc(&block, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    ACL(aclrtMemcpyAsync(block, bytes, source.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    ACL(aclrtSynchronizeStream(stream));
    ACL(aclrtMemcpy(back.data(), bytes, block, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(back == source);
    ACL(aclrtFree(block));
    ACL(aclrtDestroyStreamForce(stream));
    ACL(aclrtDestroyContext(context));
    ACL(aclrtResetDeviceForce(0));
    ACL(aclFinalize());
}

} // namespace

int main() {
    aclrtRunMode mode = ACL_DEVICE;
    CHECK(aclrtGetRunMode(nullptr) != ACL_SUCCESS);
    ACL(aclrtGetRunMode(&mode));
    CHECK(mode == ACL_HOST);
    print_version();
    for (int round = 0; round < 3; ++round)
        copy_there_and_back();
    return 0;
}
