/* What the tests of streams share. */
#ifndef HOSTACL_TESTS_STREAMS_H
#define HOSTACL_TESTS_STREAMS_H

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "check.h"

/* A task that takes a noticeable time on no machine, and one that does. */
#define LONG_MS 60

__attribute__((unused)) static aclrtStream new_stream(void) {
    aclrtStream stream = NULL;
    OK(aclrtCreateStream(&stream));
    return stream;
}

__attribute__((unused)) static aclrtEvent new_event(void) {
    aclrtEvent event = NULL;
    OK(aclrtCreateEvent(&event));
    return event;
}

/* Device memory of size bytes that all have one value. */
__attribute__((unused)) static void *new_block(size_t size, int value) {
    void *block = NULL;
    OK(aclrtMalloc(&block, size, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemset(block, size, value, size));
    return block;
}

/* Pinned host memory of size bytes that all have one value. */
__attribute__((unused)) static uint8_t *new_pinned(size_t size, int value) {
    void *block = NULL;
    OK(aclrtMallocHost(&block, size));
    memset(block, value, size);
    return block;
}

/* Whether the first and last of size bytes of device memory have one value, without waiting for any stream. */
__attribute__((unused)) static bool block_is(const void *block, size_t size, int value) {
    uint8_t first = (uint8_t)~value, last = (uint8_t)~value;
    OK(aclrtMemcpy(&first, 1, block, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    OK(aclrtMemcpy(&last, 1, plus(block, size - 1), 1, ACL_MEMCPY_DEVICE_TO_HOST));
    return first == (uint8_t)value && last == (uint8_t)value;
}

__attribute__((unused)) static bool is_idle(aclrtStream stream) {
    aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
    OK(aclrtStreamQuery(stream, &status));
    return status == ACL_STREAM_STATUS_COMPLETE;
}

__attribute__((unused)) static void sleep_ms(unsigned ms) {
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    while (nanosleep(&left, &left))
        continue;
}

/* Waits, with patience, until a condition that another thread brings about holds. */
#define EVENTUALLY(condition)                                                                                          \
    do {                                                                                                               \
        for (int eventually = 0; eventually < 20000 && !(condition); eventually++)                                     \
            sleep_ms(1);                                                                                               \
        CHECK(condition);                                                                                              \
    } while (0)

/* Live objects of the process. */
__attribute__((unused)) static hostacl_live_t live_now(void) {
    hostacl_live_t live;
    OK(hostacl_live(&live));
    return live;
}

#endif
