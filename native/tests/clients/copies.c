/* Simple copies, as a first sample program does them: host to device, on the device, back to the host, three times from
 * aclInit to aclFinalize in one process. The room given for a destination may be larger than the block. */
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

static size_t free_bytes(void) {
    size_t free_now = 0, total = 0;
    ACL(aclrtGetMemInfo(ACL_HBM_MEM, &free_now, &total));
    CHECK(free_now <= total);
    return free_now;
}

static void copy_round(int round) {
    unsigned char *host = malloc(BYTES), *back = calloc(1, BYTES);
    void *first = NULL, *second = NULL;
    CHECK(host && back);
    for (size_t i = 0; i < BYTES; i++)
        host[i] = (unsigned char)(i * 31 + (size_t)round);
    ACL(aclrtMalloc(&first, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    ACL(aclrtMalloc(&second, BYTES, ACL_MEM_MALLOC_NORMAL_ONLY));
    ACL(aclrtMemcpy(first, BYTES, host, BYTES, ACL_MEMCPY_HOST_TO_DEVICE));
    ACL(aclrtMemset(second, BYTES, 0x55, BYTES));
    ACL(aclrtMemcpy((char *)second + 4096, SIZE_MAX, (char *)first + 1, BYTES - 8192, ACL_MEMCPY_DEVICE_TO_DEVICE));
    ACL(aclrtMemcpy(back, BYTES, second, BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(back[0] == 0x55 && back[4095] == 0x55 && back[BYTES - 1] == 0x55);
    CHECK(!memcmp(back + 4096, host + 1, BYTES - 8192));
    CHECK(aclrtMemcpy(first, 16, host, 17, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_ERROR_RT_PARAM_INVALID);
    ACL(aclrtFree(first));
    ACL(aclrtFree(second));
    CHECK(aclrtFree(second) == ACL_ERROR_RT_PARAM_INVALID);
    free(host);
    free(back);
}

static void look_at_pointers(void) {
    aclrtPtrAttributes attributes = {0};
    void *block = NULL, *pinned = NULL;
    int local = 0;
    ACL(aclrtMalloc(&block, 5 << 20, ACL_MEM_MALLOC_HUGE_FIRST));
    ACL(aclrtMallocHost(&pinned, 4096));
    ACL(aclrtPointerGetAttributes(block, &attributes));
    CHECK(attributes.location.type == ACL_MEM_LOCATION_TYPE_DEVICE && attributes.pageSize == 2 << 20);
    ACL(aclrtPointerGetAttributes(pinned, &attributes));
    CHECK(attributes.location.type == ACL_MEM_LOCATION_TYPE_HOST);
    ACL(aclrtPointerGetAttributes(&local, &attributes));
    CHECK(attributes.location.type == ACL_MEM_LOCATION_TYPE_UNREGISTERED);
    ACL(aclrtFreeHost(pinned));
    ACL(aclrtFree(block));
}

int main(void) {
    aclrtRunMode mode = ACL_DEVICE;
    for (int round = 0; round < 3; round++) {
        ACL(aclInit(NULL));
        CHECK(aclInit(NULL) == ACL_ERROR_REPEAT_INITIALIZE);
        ACL(aclrtSetDevice(0));
        ACL(aclrtGetRunMode(&mode));
        CHECK(mode == ACL_HOST);
        size_t before = free_bytes();
        void *giant = NULL;
        ACL(aclrtMalloc(&giant, (size_t)600 << 20, ACL_MEM_MALLOC_HUGE_FIRST));
        CHECK(before - free_bytes() >= (size_t)600 << 20);
        ACL(aclrtFree(giant));
        copy_round(round);
        look_at_pointers();
        ACL(aclrtResetDeviceForce(0));
        ACL(aclFinalize());
        printf("round %d: %d bytes to the device, on it and back\n", round, BYTES);
    }
    printf("%s\n", aclrtGetSocName());
    return 0;
}
