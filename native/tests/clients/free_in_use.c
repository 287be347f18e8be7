/* Memory freed while a queued task still uses it. Freeing returns at once and waits for nothing; the task then reports
 * a failure, or succeeds where its memory still answers, but the program goes on: other blocks, other streams and new
 * memory work as before. The right way follows: synchronise, then free. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition);                                   \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define ACL(call) CHECK((call) == ACL_SUCCESS)

enum { BYTES = 3 << 20 };

static uint64_t *gate;      /* device memory; streams wait until it is 1 */
static aclrtStream opener;  /* writes the gate */
static unsigned char *host; /* pinned */

static void write_gate(uint64_t value) {
    ACL(aclrtValueWrite(gate, value, 0, opener));
    ACL(aclrtSynchronizeStream(opener));
}

/* Queues a copy behind the closed gate and frees its block; returns what the stream reports. */
static int freed_too_early(aclrtStream stream) {
    void *block = NULL;
    write_gate(0);
    ACL(aclrtMalloc(&block, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    ACL(aclrtValueWait(gate, 1, ACL_STREAM_WAIT_VALUE_EQ, stream));
    ACL(aclrtMemcpyAsync(block, BYTES, host, BYTES, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    ACL(aclrtFree(block));
    CHECK(aclrtFree(block) == ACL_ERROR_RT_PARAM_INVALID);
    write_gate(1);
    return aclrtSynchronizeStream(stream);
}

static void freed_in_time(aclrtStream stream) {
    void *block = NULL;
    unsigned char *back = calloc(1, BYTES);
    CHECK(back);
    memset(host, 0x6d, BYTES);
    write_gate(0);
    ACL(aclrtMalloc(&block, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    ACL(aclrtValueWait(gate, 1, ACL_STREAM_WAIT_VALUE_EQ, stream));
    ACL(aclrtMemcpyAsync(block, BYTES, host, BYTES, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    write_gate(1);
    ACL(aclrtSynchronizeStream(stream));
    ACL(aclrtMemcpy(back, BYTES, block, BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(!memcmp(host, back, BYTES));
    ACL(aclrtFree(block));
    free(back);
}

int main(void) {
    aclrtStream early = NULL, good = NULL;
    ACL(aclInit(NULL));
    ACL(aclrtSetDevice(0));
    ACL(aclrtCreateStream(&opener));
    ACL(aclrtCreateStream(&early));
    ACL(aclrtCreateStream(&good));
    ACL(aclrtMalloc((void **)&gate, sizeof(*gate), ACL_MEM_MALLOC_HUGE_FIRST));
    ACL(aclrtMallocHost((void **)&host, BYTES));
    memset(host, 0x5c, BYTES);
    int code = freed_too_early(early);
    printf("a copy to memory freed too early ended with %d\n", code);
    freed_in_time(good);
    printf("other streams and memory work as before\n");
    ACL(aclrtDestroyStream(good));
    ACL(aclrtDestroyStreamForce(early));
    ACL(aclrtDestroyStream(opener));
    ACL(aclrtFree(gate));
    ACL(aclrtFreeHost(host));
    ACL(aclrtResetDeviceForce(0));
    return aclFinalize();
}
