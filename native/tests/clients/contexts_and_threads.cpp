// Contexts and threads: the current context belongs to the thread; threads that set the same device share its default
// context; a pool thread takes over the context of the one that gives it work and puts its own back. Memory belongs to
// the device: another thread may free it.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
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

constexpr int kThreads = 6;
constexpr int kBlocks = 40;

aclrtContext current_context() {
    aclrtContext context = nullptr;
    aclError code = aclrtGetCurrentContext(&context); // the code is left alone: null says that there is none
    CHECK((code == ACL_SUCCESS) == (context != nullptr));
    return context;
}

int current_device() {
    int32_t device = -1;
    return aclrtGetDevice(&device) == ACL_SUCCESS ? device : -1;
}

// Makes a context current for a while.
class ContextGuard {
  public:
    explicit ContextGuard(aclrtContext context) : before_(current_context()) {
        ACL(aclrtSetCurrentContext(context));
    }
    ~ContextGuard() {
        if (before_)
            ACL(aclrtSetCurrentContext(before_));
    }
    ContextGuard(const ContextGuard &) = delete;
    ContextGuard &operator=(const ContextGuard &) = delete;

  private:
    aclrtContext before_;
};

void *make_block(int value) {
    void *block = nullptr;
    ACL(aclrtMalloc(&block, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
    ACL(aclrtMemset(block, 4096, value, 4096));
    return block;
}

void check_and_free(void *block, int value) {
    unsigned char byte = 0;
    ACL(aclrtMemcpy(&byte, 1, static_cast<char *>(block) + 4095, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(byte == value);
    ACL(aclrtFree(block));
}

// Every thread makes blocks on its device; the next thread checks and frees them.
void hand_blocks_around() {
    std::vector<std::vector<void *>> made(kThreads, std::vector<void *>(kBlocks));
    for (int phase = 0; phase < 2; phase++) {
        std::vector<std::thread> threads;
        for (int me = 0; me < kThreads; me++) {
            threads.emplace_back([&made, phase, me] {
                CHECK(current_device() == -1);
                ACL(aclrtSetDevice(me % 2));
                int from = phase == 0 ? me : (me + 1) % kThreads;
                for (int i = 0; i < kBlocks; i++) {
                    if (phase == 0)
                        made[me][i] = make_block(me + i);
                    else
                        check_and_free(made[from][i], from + i);
                }
                CHECK(current_device() == me % 2);
            });
        }
        for (auto &thread : threads)
            thread.join();
    }
    for (int device = 0; device < 2; device++) {
        for (int i = 0; i < kThreads; i++) // two phases with half the threads each
            ACL(aclrtResetDevice(device));
    }
}

void work_in_a_given_context(aclrtContext context, int device) {
    std::thread([context, device] {
        CHECK(current_context() == nullptr && current_device() == -1);
        ACL(aclrtSetDevice(1 - device));
        aclrtContext own = current_context();
        {
            ContextGuard guard(context);
            CHECK(current_device() == device);
            check_and_free(make_block(7), 7);
        }
        CHECK(current_context() == own && current_device() == 1 - device);
        ACL(aclrtResetDevice(1 - device));
    }).join();
}

void explicit_contexts() {
    ACL(aclrtSetDevice(0));
    aclrtContext default_context = current_context(), first = nullptr, second = nullptr;
    ACL(aclrtCreateContext(&first, 0));
    CHECK(current_context() == first && first != default_context);
    ACL(aclrtCreateContext(&second, 1));
    CHECK(current_context() == second && current_device() == 1);
    ACL(aclrtSetCurrentContext(first));
    CHECK(current_device() == 0);
    void *block = make_block(3);
    work_in_a_given_context(second, 1);
    ACL(aclrtDestroyContext(first));
    CHECK(current_context() == nullptr);
    ACL(aclrtSetCurrentContext(default_context));
    check_and_free(block, 3);
    ACL(aclrtDestroyContext(second));
    CHECK(aclrtSetCurrentContext(second) == ACL_ERROR_RT_PARAM_INVALID);
    ACL(aclrtSetDevice(0));
    ACL(aclrtResetDevice(0));
    ACL(aclrtResetDevice(0));
}

} // namespace

int main() {
    ACL(aclInit(nullptr));
    CHECK(current_context() == nullptr);
    hand_blocks_around();
    explicit_contexts();
    std::printf("%d threads handed %d blocks around; contexts stayed with their threads\n", kThreads,
                kThreads * kBlocks);
    return aclFinalize();
}
