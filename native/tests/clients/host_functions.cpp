// A thread of the program calls the host functions of a stream, beside a stream whose functions the runtime calls.
#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "acl/acl.h"

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            std::fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition);                              \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (0)
#define ACL(call) CHECK((call) == ACL_SUCCESS)

extern "C" {

struct counter {
    std::atomic<int> calls;
    std::atomic<uint64_t> caller;
};

static void count(void *argument) {
    counter *counted = static_cast<counter *>(argument);
    counted->calls += 1;
    counted->caller = static_cast<uint64_t>(pthread_self());
}

static void *call_host_functions(void *stop) {
    while (!*static_cast<std::atomic<bool> *>(stop))
        static_cast<void>(aclrtProcessHostFunc(50));
    return nullptr;
}
}

int main() {
    enum { kCalls = 20 };
    static counter ours, theirs;
    static std::atomic<bool> stop(false);
    aclrtStream own = nullptr, other = nullptr;
    pthread_t thread;
    ACL(aclInit(nullptr));
    ACL(aclrtSetDevice(0));
    ACL(aclrtCreateStream(&own));
    ACL(aclrtCreateStream(&other));
    CHECK(pthread_create(&thread, nullptr, call_host_functions, &stop) == 0);
    ACL(aclrtSubscribeHostFunc(static_cast<uint64_t>(thread), own));
    for (int i = 0; i < kCalls; ++i) {
        ACL(aclrtLaunchHostFunc(own, count, &ours));
        ACL(aclrtLaunchHostFunc(other, count, &theirs));
    }
    ACL(aclrtSynchronizeStream(own));
    ACL(aclrtSynchronizeStream(other));
    CHECK(ours.calls == kCalls && theirs.calls == kCalls);
    CHECK(ours.caller == static_cast<uint64_t>(thread) && theirs.caller != static_cast<uint64_t>(thread));
    ACL(aclrtUnSubscribeHostFunc(static_cast<uint64_t>(thread), own));
    stop = true;
    CHECK(pthread_join(thread, nullptr) == 0);
    ACL(aclrtDestroyStreamForce(own));
    ACL(aclrtDestroyStreamForce(other));
    ACL(aclrtResetDeviceForce(0));
    ACL(aclFinalize());
    return 0;
}
