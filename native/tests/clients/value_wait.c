/* Streams that wait for each other through a word in device memory: one stream waits for a value, then copies; the
 * other brings the bytes and writes the value. The streams must be concurrent, or neither ends. */
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

enum { ROUNDS = 50, BYTES = 64 << 10 };

static uint64_t *word;             /* device memory */
static char *block;                /* device memory */
static unsigned char *host, *back; /* pinned */
static aclrtStream producer, consumer;

static int pending(aclrtStream stream) {
    aclrtStreamStatus status = ACL_STREAM_STATUS_COMPLETE;
    ACL(aclrtStreamQuery(stream, &status));
    return status == ACL_STREAM_STATUS_NOT_READY;
}

static uint64_t word_now(void) {
    uint64_t value = 0;
    ACL(aclrtMemcpy(&value, sizeof(value), word, sizeof(value), ACL_MEMCPY_DEVICE_TO_HOST));
    return value;
}

/* The consumer is queued first and may not start before the producer has written the number of the round. */
static void one_round(uint64_t number) {
    memset(host, (int)number, BYTES);
    memset(back, 0, BYTES);
    ACL(aclrtValueWait(word, number, ACL_STREAM_WAIT_VALUE_EQ, consumer));
    ACL(aclrtMemcpyAsync(back, BYTES, block, BYTES, ACL_MEMCPY_DEVICE_TO_HOST, consumer));
    CHECK(pending(consumer));
    CHECK(aclrtSynchronizeStreamWithTimeout(consumer, 1) == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    ACL(aclrtMemcpyAsync(block, BYTES, host, BYTES, ACL_MEMCPY_HOST_TO_DEVICE, producer));
    ACL(aclrtValueWrite(word, number, 0, producer));
    ACL(aclrtSynchronizeStream(consumer));
    CHECK(!memcmp(host, back, BYTES));
}

/* The way of comparing decides which value ends the wait. */
static void compare_as(uint32_t flag, uint64_t wanted, uint64_t too_little, uint64_t enough) {
    ACL(aclrtValueWrite(word, too_little, 0, producer));
    ACL(aclrtSynchronizeStream(producer));
    ACL(aclrtValueWait(word, wanted, flag, consumer));
    CHECK(aclrtSynchronizeStreamWithTimeout(consumer, 2) == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    ACL(aclrtValueWrite(word, enough, 0, producer));
    ACL(aclrtSynchronizeStream(consumer));
    CHECK(word_now() == enough);
}

int main(void) {
    ACL(aclInit(NULL));
    ACL(aclrtSetDevice(0));
    ACL(aclrtMalloc((void **)&word, sizeof(*word), ACL_MEM_MALLOC_HUGE_FIRST));
    ACL(aclrtMalloc((void **)&block, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    ACL(aclrtMallocHost((void **)&host, BYTES));
    ACL(aclrtMallocHost((void **)&back, BYTES));
    ACL(aclrtMemset(word, sizeof(*word), 0, sizeof(*word)));
    ACL(aclrtCreateStream(&producer));
    ACL(aclrtCreateStream(&consumer));
    for (uint64_t number = 1; number <= ROUNDS; number++)
        one_round(number);
    compare_as(ACL_STREAM_WAIT_VALUE_GEQ, 1000, 999, 1001);
    compare_as(ACL_STREAM_WAIT_VALUE_EQ, (uint64_t)1 << 40, 1, (uint64_t)1 << 40);
    compare_as(ACL_STREAM_WAIT_VALUE_AND, 6, 9, 4);
    compare_as(ACL_STREAM_WAIT_VALUE_NOR, 1, UINT64_MAX - 1, 0);
    printf("%d rounds of producer and consumer, four ways to compare\n", ROUNDS);
    ACL(aclrtDestroyStream(producer));
    ACL(aclrtDestroyStream(consumer));
    ACL(aclrtFree(word));
    ACL(aclrtFree(block));
    ACL(aclrtFreeHost(host));
    ACL(aclrtFreeHost(back));
    ACL(aclrtResetDevice(0));
    return aclFinalize();
}
