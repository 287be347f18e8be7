/* Memory shared by two processes. The first makes a block and a physical handle, learns the id of the second, puts it
 * on the white lists and sends key and handle; the second imports both, reads what is there, writes, and closes. A key
 * that was not allowed for a process is refused there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition);                                   \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define ACL(call) CHECK((call) == ACL_SUCCESS)

enum { KEY_BYTES = 65, BYTES = 4 << 20 };

struct offer {
    char key[KEY_BYTES];        /* of a block of aclrtMalloc */
    char secret_key[KEY_BYTES]; /* of a block that nobody was allowed */
    uint64_t shareable;         /* of a physical handle */
};

static aclrtPhysicalMemProp property(void) {
    aclrtPhysicalMemProp prop = {.memAttr = ACL_HBM_MEM_HUGE, .location = {.type = ACL_MEM_LOCATION_TYPE_DEVICE}};
    return prop;
}

static void expect_bytes(const void *addr, int value) {
    unsigned char *back = malloc(BYTES);
    CHECK(back);
    ACL(aclrtMemcpy(back, BYTES, addr, BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
    for (size_t i = 0; i < BYTES; i++)
        CHECK(back[i] == value);
    free(back);
}

static void exchange_all(int fd, void *data, size_t bytes, int writing) {
    ssize_t done = writing ? write(fd, data, bytes) : read(fd, data, bytes);
    CHECK(done == (ssize_t)bytes);
}

static void start_runtime(void) {
    ACL(aclInit(NULL));
    ACL(aclrtSetDevice(0));
}

static void end_runtime(void) {
    ACL(aclrtResetDevice(0));
    ACL(aclFinalize());
}

static int importer(int in, int out) {
    struct offer offer;
    int32_t pid = 0;
    void *block = NULL, *range = NULL, *secret = NULL;
    aclrtDrvMemHandle handle = NULL;
    start_runtime();
    ACL(aclrtDeviceGetBareTgid(&pid));
    exchange_all(out, &pid, sizeof(pid), 1);
    exchange_all(in, &offer, sizeof(offer), 0);
    ACL(aclrtIpcMemImportByKey(&block, offer.key, ACL_RT_IPC_MEM_IMPORT_FLAG_DEFAULT));
    CHECK(aclrtIpcMemImportByKey(&secret, offer.secret_key, ACL_RT_IPC_MEM_IMPORT_FLAG_DEFAULT) != ACL_SUCCESS);
    expect_bytes(block, 0x21);
    ACL(aclrtMemset(block, BYTES, 0x22, BYTES));
    ACL(aclrtIpcMemClose(offer.key));
    ACL(aclrtMemImportFromShareableHandle(offer.shareable, 0, &handle));
    ACL(aclrtReserveMemAddress(&range, BYTES, 0, NULL, 1));
    ACL(aclrtMapMem(range, BYTES, 0, handle, 0));
    expect_bytes(range, 0x31);
    ACL(aclrtMemset(range, BYTES, 0x32, BYTES));
    ACL(aclrtUnmapMem(range));
    ACL(aclrtFreePhysical(handle));
    ACL(aclrtReleaseMemAddress(range));
    end_runtime();
    printf("importer: both were read and written\n");
    return 0;
}

static pid_t start_importer(const char *program, int to_child[2], int from_child[2]) {
    char in[16], out[16];
    CHECK(!pipe(to_child) && !pipe(from_child));
    snprintf(in, sizeof(in), "%d", to_child[0]);
    snprintf(out, sizeof(out), "%d", from_child[1]);
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        execl("/proc/self/exe", program, in, out, (char *)NULL);
        _exit(127);
    }
    return child;
}

static void exporter(const char *program) {
    struct offer offer = {.shareable = 0};
    int to_child[2], from_child[2], status = 0;
    int32_t pid = 0;
    void *block = NULL, *secret = NULL, *range = NULL;
    aclrtDrvMemHandle handle = NULL;
    aclrtPhysicalMemProp prop = property();
    pid_t child = start_importer(program, to_child, from_child);
    start_runtime();
    ACL(aclrtMalloc(&block, BYTES, ACL_MEM_MALLOC_HUGE_ONLY));
    ACL(aclrtMalloc(&secret, BYTES, ACL_MEM_MALLOC_HUGE_ONLY));
    ACL(aclrtMemset(block, BYTES, 0x21, BYTES));
    ACL(aclrtMallocPhysical(&handle, BYTES, &prop, 0));
    ACL(aclrtReserveMemAddress(&range, BYTES, 0, NULL, 1));
    ACL(aclrtMapMem(range, BYTES, 0, handle, 0));
    ACL(aclrtMemset(range, BYTES, 0x31, BYTES));
    exchange_all(from_child[0], &pid, sizeof(pid), 0);
    ACL(aclrtIpcMemGetExportKey(block, BYTES, offer.key, KEY_BYTES, ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT));
    ACL(aclrtIpcMemGetExportKey(secret, BYTES, offer.secret_key, KEY_BYTES, ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT));
    ACL(aclrtIpcMemSetImportPid(offer.key, &pid, 1));
    ACL(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE, ACL_RT_VMM_EXPORT_FLAG_DEFAULT,
                                        &offer.shareable));
    ACL(aclrtMemSetPidToShareableHandle(offer.shareable, &pid, 1));
    exchange_all(to_child[1], &offer, sizeof(offer), 1);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    expect_bytes(block, 0x22);
    expect_bytes(range, 0x32);
    ACL(aclrtIpcMemClose(offer.key));
    ACL(aclrtIpcMemClose(offer.secret_key));
    ACL(aclrtFree(block));
    ACL(aclrtFree(secret));
    ACL(aclrtUnmapMem(range));
    ACL(aclrtFreePhysical(handle));
    ACL(aclrtReleaseMemAddress(range));
    end_runtime();
    printf("exporter: what the other process wrote is here\n");
}

int main(int argc, char **argv) {
    if (argc == 3)
        return importer(atoi(argv[1]), atoi(argv[2]));
    exporter(argv[0]);
    return 0;
}
