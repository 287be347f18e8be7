/* An executor keeps the addresses of its tensors in a table in device memory, made for the task scheduler. Copies look
 * their addresses up there, or in descriptions that are written once; caches are told beforehand. */
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

enum { TENSOR_BYTES = 4096, RUNS = 3 };

static void *scheduler_memory(size_t bytes) {
    aclrtMallocAttribute attribute;
    aclrtMallocConfig config;
    void *memory = NULL;
    memset(&attribute, 0, sizeof(attribute));
    attribute.attr = ACL_RT_MEM_ATTR_MODULE_ID;
    attribute.value.moduleId = 45;
    config.attrs = &attribute;
    config.numAttrs = 1;
    ACL(aclrtMallocForTaskScheduler(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST, &config));
    return memory;
}

static void *tensor(int value) {
    void *block = NULL;
    ACL(aclrtMalloc(&block, TENSOR_BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    ACL(aclrtMemset(block, TENSOR_BYTES, value, TENSOR_BYTES));
    return block;
}

/* Whether all bytes of a tensor have a value, as seen by a copy in stream order. */
static void check_tensor(const void *block, int value, aclrtStream stream) {
    unsigned char host[TENSOR_BYTES];
    memset(host, ~value, sizeof(host));
    ACL(aclrtMemcpyAsyncWithCondition(host, sizeof(host), block, TENSOR_BYTES, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    ACL(aclrtSynchronizeStream(stream));
    for (int i = 0; i < TENSOR_BYTES; i++)
        CHECK(host[i] == value);
}

/* The same task runs with other tensors each time: only the table changes. */
static void run_by_table(void **table, aclrtStream stream) {
    for (int run = 0; run < RUNS; run++) {
        void *input = tensor(10 + run), *output = tensor(0), *words[2];
        words[0] = output;
        words[1] = input;
        ACL(aclrtMemcpy(table, sizeof(words), words, sizeof(words), ACL_MEMCPY_HOST_TO_DEVICE));
        ACL(aclrtCmoAsync(input, TENSOR_BYTES, ACL_RT_CMO_TYPE_PREFETCH, stream));
        ACL(aclrtMemcpyAsyncWithOffset(table, TENSOR_BYTES, 0, (const void **)(table + 1), TENSOR_BYTES, 0,
                                       ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
        check_tensor(output, 10 + run, stream);
        ACL(aclrtFree(input));
        ACL(aclrtFree(output));
    }
}

static void run_by_description(aclrtStream stream) {
    size_t bytes = 0;
    ACL(aclrtGetMemcpyDescSize(ACL_MEMCPY_DEVICE_TO_DEVICE, &bytes));
    void *description = scheduler_memory(bytes), *input = tensor(1), *output = tensor(0);
    ACL(aclrtSetMemcpyDesc(description, ACL_MEMCPY_DEVICE_TO_DEVICE, input, output, TENSOR_BYTES, NULL));
    for (int run = 0; run < RUNS; run++) {
        ACL(aclrtMemsetAsync(input, TENSOR_BYTES, 20 + run, TENSOR_BYTES, stream));
        ACL(aclrtMemcpyAsyncWithDesc(description, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
        check_tensor(output, 20 + run, stream);
    }
    ACL(aclrtMemFlush(output, TENSOR_BYTES));
    ACL(aclrtMemInvalidate(output, TENSOR_BYTES));
    ACL(aclrtFree(description));
    ACL(aclrtFree(input));
    ACL(aclrtFree(output));
}

int main(void) {
    aclrtStream stream = NULL;
    ACL(aclInit(NULL));
    ACL(aclrtSetDevice(0));
    ACL(aclrtCreateStream(&stream));
    void **table = scheduler_memory(2 * sizeof(void *));
    run_by_table(table, stream);
    run_by_description(stream);
    ACL(aclrtFree(table));
    ACL(aclrtDestroyStream(stream));
    ACL(aclrtResetDevice(0));
    ACL(aclFinalize());
    return 0;
}
