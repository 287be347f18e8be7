// What a monitor asks a device: state, figures, limits on cores, use, memory by component, errors and their repair; and
// what a trainer does to go on after a failure: abort every task of the device.
#include <cstdio>
#include <cstdlib>
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

void print_figures(int32_t device) {
    const aclDeviceInfo infos[] = {ACL_DEVICE_INFO_AI_CORE_NUM, ACL_DEVICE_INFO_VECTOR_CORE_NUM,
                                   ACL_DEVICE_INFO_L2_SIZE};
    for (aclDeviceInfo info : infos) {
        int64_t value = 0;
        ACL(aclGetDeviceCapability(static_cast<uint32_t>(device), info, &value));
        CHECK(value > 0);
        std::printf("figure %d: %lld\n", static_cast<int>(info), static_cast<long long>(value));
    }
    aclrtUtilizationInfo use = {};
    ACL(aclrtGetDeviceUtilizationRate(device, &use));
    CHECK(use.memoryUtilization >= 0 && use.memoryUtilization <= 100);
    aclrtDeviceStatus status = ACL_RT_DEVICE_STATUS_ABNORMAL;
    ACL(aclrtQueryDeviceStatus(device, &status));
    CHECK(status == ACL_RT_DEVICE_STATUS_NORMAL);
}

void limit_cores(int32_t device) {
    uint32_t all = 0, now = 0;
    ACL(aclrtGetDeviceResLimit(device, ACL_RT_DEV_RES_CUBE_CORE, &all));
    ACL(aclrtSetDeviceResLimit(device, ACL_RT_DEV_RES_CUBE_CORE, all / 2));
    ACL(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_CUBE_CORE, &now));
    CHECK(now == all / 2);
    ACL(aclrtResetDeviceResLimit(device));
    ACL(aclrtGetDeviceResLimit(device, ACL_RT_DEV_RES_CUBE_CORE, &now));
    CHECK(now == all);
}

void print_memory(int32_t device) {
    std::vector<aclrtMemUsageInfo> infos(8);
    size_t count = 0;
    ACL(aclrtGetMemUsageInfo(device, infos.data(), infos.size(), &count));
    CHECK(count > 0 && count <= infos.size());
    for (size_t i = 0; i < count; ++i) {
        CHECK(infos[i].curMemSize <= infos[i].memPeakSize);
        std::printf("%s: %llu bytes\n", infos[i].name, static_cast<unsigned long long>(infos[i].curMemSize));
    }
}

void look_for_errors(int32_t device) {
    aclrtErrorInfo error;
    ACL(aclrtGetErrorVerbose(device, &error));
    CHECK(error.errorType == ACL_RT_NO_ERROR);
    ACL(aclrtRepairError(device, &error));
    std::vector<aclrtMemUceInfo> places(MAX_MEM_UCE_INFO_ARRAY_SIZE);
    size_t count = 1;
    ACL(aclrtGetMemUceInfo(device, places.data(), places.size(), &count));
    CHECK(count == 0);
}

// A wait that nobody will end is dropped; the stream works on.
void abort_tasks(int32_t device) {
    aclrtStream stream = nullptr;
    aclrtNotify notify = nullptr;
    aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
    ACL(aclrtCreateStream(&stream));
    ACL(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT));
    ACL(aclrtWaitAndResetNotify(notify, stream, 0));
    ACL(aclrtDeviceTaskAbort(device, 0));
    ACL(aclrtStreamQuery(stream, &status));
    CHECK(status == ACL_STREAM_STATUS_COMPLETE);
    ACL(aclrtRecordNotify(notify, stream));
    ACL(aclrtSynchronizeStream(stream));
    ACL(aclrtDestroyNotify(notify));
    ACL(aclrtDestroyStream(stream));
}

} // namespace

int main() {
    ACL(aclInit(nullptr));
    ACL(aclrtSetDevice(0));
    print_figures(0);
    limit_cores(0);
    print_memory(0);
    look_for_errors(0);
    abort_tasks(0);
    ACL(aclrtResetDeviceForce(0));
    ACL(aclFinalize());
    return 0;
}
