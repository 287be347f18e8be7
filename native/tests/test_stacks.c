/* Option stacks: the live report names the calls that made each object. The test exports two functions to be named. */
#include <pthread.h>

#include "check.h"

#define NAMED __attribute__((visibility("default"), noinline))

static char text[1 << 16];

NAMED void *make_block(size_t size);
NAMED void *make_host_block(size_t size);

/* The work after the call keeps it from becoming a jump, which would leave no frame. */
NAMED void *make_block(size_t size) {
    void *block = NULL;
    OK(aclrtMalloc(&block, size, ACL_MEM_MALLOC_HUGE_FIRST));
    return block;
}

NAMED void *make_host_block(size_t size) {
    void *block = NULL;
    OK(aclrtMallocHost(&block, size));
    return block;
}

/* The lines of the report below the object that starts with this text, up to the next object; "" when it is missing. */
static const char *stack_of(const char *object) {
    static char lines[4096];
    lines[0] = 0;
    hostacl_live_report(text, sizeof(text));
    const char *found = strstr(text, object);
    if (!CHECK(found))
        return lines;
    const char *line = strchr(found, '\n') + 1;
    size_t used = 0;
    while (!strncmp(line, "    ", 4)) {
        size_t len = strcspn(line, "\n") + 1;
        memcpy(lines + used, line, len);
        used += len;
        line += len;
    }
    lines[used] = 0;
    return lines;
}

static void check_stack(const char *object, const char *exported, const char *caller) {
    const char *stack = stack_of(object);
    const char *first = strstr(stack, exported);
    const char *second = strstr(stack, caller);
    if (!CHECK(first == stack + 4 && second > first))
        printf("    %s: no %s called by %s in\n%s", object, exported, caller, stack);
}

static void test_names(void) {
    static _Alignas(4096) char page[4096];
    void *range = NULL;
    aclrtStream stream = NULL;
    aclrtEvent event = NULL;
    aclrtContext context = NULL;
    aclrtDrvMemHandle handle = NULL;
    aclrtPhysicalMemProp prop = {.memAttr = ACL_HBM_MEM_HUGE, .location = {.type = ACL_MEM_LOCATION_TYPE_DEVICE}};
    start("stacks", "on", NULL);
    OK(aclrtSetDevice(0));
    void *block = make_block(5000);
    void *host = make_host_block(77);
    OK(aclrtCreateContext(&context, 1));
    OK(aclrtMallocPhysical(&handle, 2 * MIB, &prop, 0));
    OK(aclrtReserveMemAddress(&range, 2 * MIB, 0, NULL, 0));
    OK(aclrtMapMem(range, 2 * MIB, 0, handle, 0));
    OK(aclrtHostRegisterV2(page, sizeof(page), ACL_HOST_REG_PINNED));
    OK(aclrtCreateStream(&stream));
    OK(aclrtCreateEvent(&event));
    aclDataBuffer *buffer = aclCreateDataBuffer(NULL, 3);
    check_stack("block 0x", "aclrtMalloc\n", "make_block+0x");
    check_stack("host block 0x", "aclrtMallocHost\n", "make_host_block+0x");
    check_stack("context 0x", "aclrtCreateContext\n", "main");
    check_stack("handle 0x", "aclrtMallocPhysical\n", "main");
    check_stack("reserved range 0x", "aclrtReserveMemAddress\n", "main");
    check_stack("mapping 0x", "aclrtMapMem\n", "main");
    check_stack("registered host memory 0x", "aclrtHostRegisterV2\n", "main");
    check_stack("stream 0x", "aclrtCreateStream\n", "main");
    check_stack("event 0x", "aclrtCreateEvent\n", "main");
    check_stack("data buffer 0x", "aclCreateDataBuffer\n", "main");
    CHECK(strstr(stack_of("block 0x"), "(test_stacks)\n") && !strstr(text, "libascendcl.so"));
    CHECK_EQ(stack_of("device 0: set")[0], 0);
    OK(aclrtFree(block));
    OK(aclrtFreeHost(host));
    OK(aclrtDestroyEvent(event));
    OK(aclrtDestroyStream(stream));
    OK(aclrtDestroyContext(context));
    OK(aclrtUnmapMem(range));
    OK(aclrtReleaseMemAddress(range));
    OK(aclrtHostUnregister(page));
    OK(aclrtFreePhysical(handle));
    OK(aclDestroyDataBuffer(buffer));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

/* Only objects made while the option is on have a stack; it can change at any time. */
static void test_switching(void) {
    start(NULL);
    OK(aclrtSetDevice(0));
    void *before = make_block(64);
    CHECK_EQ(stack_of("block 0x")[0], 0);
    OK(hostacl_configure("stacks", "on"));
    OK(aclrtFree(before));
    void *with = make_block(64);
    CHECK(stack_of("block 0x")[0]);
    OK(hostacl_configure("stacks", "off"));
    CHECK(stack_of("block 0x")[0]);
    OK(aclrtFree(with));
    void *after = make_block(64);
    CHECK_EQ(stack_of("block 0x")[0], 0);
    OK(aclrtFree(after));
    CHECK_EQ(hostacl_configure("stacks", "yes"), ACL_ERROR_INVALID_PARAM);
}

/* The report is as long as it says, however it is cut; objects that are forgotten as a whole leave nothing behind. */
static void test_length_and_reset(void) {
    char cut[10];
    start("stacks", "on", NULL);
    OK(aclrtSetDevice(0));
    for (int i = 0; i < 20; i++)
        make_block(64);
    int len = hostacl_live_report(text, sizeof(text));
    CHECK_EQ(len, strlen(text));
    CHECK_EQ(hostacl_live_report(cut, sizeof(cut)), len);
    CHECK(!strncmp(cut, text, 9) && cut[9] == 0);
    CHECK_EQ(hostacl_live_report(NULL, 0), len);
    OK(aclrtResetDeviceForce(0));
    CHECK_EQ(hostacl_live_report(text, sizeof(text)), 0);
    OK(hostacl_reset());
}

static void *work(void *unused) {
    OK(aclrtSetDevice(0));
    for (int i = 0; i < 100; i++) {
        void *block = make_block(64);
        CHECK(hostacl_live_report(NULL, 0) > 0);
        OK(aclrtFree(block));
    }
    return unused;
}

static void test_threads(void) {
    pthread_t threads[3];
    start("stacks", "on", NULL);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

int main(void) {
    test_names();
    test_switching();
    test_length_and_reset();
    test_threads();
    start(NULL);
    return check_done();
}
