// Functions looked up by name at run time: the library is not linked. A required symbol that is missing ends the
// program; an optional one that is missing selects an older way, as the newest pinned allocation and the batch copy do.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

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

void *library() {
    static void *handle = dlopen("libascendcl.so", RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        std::fprintf(stderr, "%s\n", dlerror());
    CHECK(handle);
    return handle;
}

// A function of the library, null where it is missing.
template <typename Function> Function *optional(const char *name) {
    return reinterpret_cast<Function *>(dlsym(library(), name));
}

// A function that must be there.
template <typename Function> Function *required(const char *name) {
    Function *function = optional<Function>(name);
    if (!function)
        std::fprintf(stderr, "%s is missing\n", name);
    CHECK(function);
    return function;
}

#define REQUIRED(name) required<decltype(name)>(#name)
#define OPTIONAL(name) optional<decltype(name)>(#name)

// Pinned memory through the newest call that the library has.
void *malloc_host(size_t bytes) {
    void *block = nullptr;
    if (auto *with_cfg = OPTIONAL(aclrtMallocHostWithCfg)) {
        ACL(with_cfg(&block, bytes, nullptr));
        std::printf("aclrtMallocHostWithCfg is there\n");
    } else {
        ACL(REQUIRED(aclrtMallocHost)(&block, bytes));
        std::printf("aclrtMallocHostWithCfg is missing, aclrtMallocHost serves\n");
    }
    return block;
}

// Two copies in one call; a missing call and the answer that the feature is missing both lead to single copies.
void copy_both(void **dsts, void **srcs, size_t *sizes) {
    if (auto *batch = OPTIONAL(aclrtMemcpyBatch)) {
        aclrtMemcpyBatchAttr attr = {};
        size_t attr_index = 0, failed = 0;
        attr.dstLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
        attr.srcLoc.type = ACL_MEM_LOCATION_TYPE_HOST;
        aclError code = batch(dsts, sizes, srcs, sizes, 2, &attr, &attr_index, 1, &failed);
        std::printf("aclrtMemcpyBatch is there and returned %d\n", code);
        if (code == ACL_SUCCESS)
            return;
        CHECK(code == ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    }
    for (int i = 0; i < 2; i++)
        ACL(REQUIRED(aclrtMemcpy)(dsts[i], sizes[i], srcs[i], sizes[i], ACL_MEMCPY_HOST_TO_DEVICE));
}

} // namespace

int main() {
    CHECK(!optional<void()>("aclrtThisFunctionWasNeverMade"));
    ACL(REQUIRED(aclInit)(nullptr));
    ACL(REQUIRED(aclrtSetDevice)(0));
    auto *pinned = static_cast<char *>(malloc_host(8192));
    std::memset(pinned, 'a', 4096);
    std::memset(pinned + 4096, 'b', 4096);
    void *block = nullptr;
    ACL(REQUIRED(aclrtMalloc)(&block, 8192, ACL_MEM_MALLOC_HUGE_FIRST));
    void *dsts[2] = {static_cast<char *>(block) + 4096, block};
    void *srcs[2] = {pinned, pinned + 4096};
    size_t sizes[2] = {4096, 4096};
    copy_both(dsts, srcs, sizes);
    char back[8192] = {};
    ACL(REQUIRED(aclrtMemcpy)(back, sizeof(back), block, sizeof(back), ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(back[0] == 'b' && back[4095] == 'b' && back[4096] == 'a' && back[8191] == 'a');
    ACL(REQUIRED(aclrtFree)(block));
    ACL(REQUIRED(aclrtFreeHost)(pinned));
    ACL(REQUIRED(aclrtResetDevice)(0));
    ACL(REQUIRED(aclFinalize)());
    std::printf("two copies arrived\n");
    return 0;
}
