/* Looking for overflows: the saturation mode of the device, the switch of a stream that was made by a configuration,
 * the status that the device writes, and the times that operators may take. */
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

enum { STATUS_BYTES = 64 };

static aclrtStream make_stream(void) {
    aclrtStreamConfigHandle config;
    aclrtStream stream = NULL;
    size_t flags = ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC;
    uint32_t priority = 2, seen = 0;
    memset(&config, 0, sizeof(config));
    ACL(aclrtSetStreamConfigOpt(&config, ACL_RT_STREAM_FLAG, &flags, sizeof(flags)));
    ACL(aclrtSetStreamConfigOpt(&config, ACL_RT_STREAM_PRIORITY, &priority, sizeof(priority)));
    ACL(aclrtCreateStreamWithConfig(&stream, config.priority, (uint32_t)config.flag));
    ACL(aclrtStreamGetPriority(stream, &seen));
    CHECK(seen == priority);
    return stream;
}

static void set_modes(aclrtStream stream) {
    aclrtFloatOverflowMode mode = ACL_RT_OVERFLOW_MODE_UNDEF;
    aclrtStreamAttrValue stop;
    uint32_t flag = 0;
    uint64_t actual_us = 0;
    ACL(aclrtSetOpExecuteTimeOut(60));
    ACL(aclrtSetOpExecuteTimeOutV2(1000000, &actual_us));
    CHECK(actual_us >= 1000000);
    ACL(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_SATURATION));
    ACL(aclrtGetDeviceSatMode(&mode));
    CHECK(mode == ACL_RT_OVERFLOW_MODE_SATURATION);
    ACL(aclrtSetStreamOverflowSwitch(stream, 1));
    ACL(aclrtGetStreamOverflowSwitch(stream, &flag));
    CHECK(flag == 1);
    memset(&stop, 0, sizeof(stop));
    stop.failureMode = ACL_STOP_ON_FAILURE;
    ACL(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_FAILURE_MODE, &stop));
}

/* The device writes the status in the order of the stream. */
static void read_status(aclrtStream stream) {
    unsigned char host[STATUS_BYTES];
    void *status = NULL;
    memset(host, 0xff, sizeof(host));
    ACL(aclrtMalloc(&status, STATUS_BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    ACL(aclrtResetOverflowStatus(stream));
    ACL(aclrtSynchronizeStream(stream));
    ACL(aclrtGetOverflowStatus(status, STATUS_BYTES, stream));
    ACL(aclrtSynchronizeStream(stream));
    ACL(aclrtMemcpy(host, sizeof(host), status, STATUS_BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
    for (int i = 0; i < STATUS_BYTES; i++)
        CHECK(host[i] == 0);
    ACL(aclrtFree(status));
}

int main(void) {
    ACL(aclInit(NULL));
    ACL(aclrtSetDevice(0));
    aclrtStream stream = make_stream();
    set_modes(stream);
    read_status(stream);
    ACL(aclrtDestroyStream(stream));
    ACL(aclrtResetDeviceForce(0));
    ACL(aclFinalize());
    return 0;
}
