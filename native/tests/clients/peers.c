/* Two devices: peer access is asked for and enabled in both directions before bytes go from one to the other; memory of
 * a device that is not the current one is freed all the same. */
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

int main(void) {
    uint32_t count = 0;
    int32_t can = 0, current = -1;
    void *blocks[2] = {NULL, NULL};
    char text[64] = "from device 0 to device 1", back[64] = "";
    ACL(aclInit(NULL));
    ACL(aclrtGetDeviceCount(&count));
    CHECK(count >= 2);
    for (int32_t id = 0; id < 2; id++) {
        ACL(aclrtSetDevice(id));
        ACL(aclrtDeviceCanAccessPeer(&can, id, 1 - id));
        CHECK(can == 1);
        ACL(aclrtDeviceEnablePeerAccess(1 - id, 0));
        ACL(aclrtMalloc(&blocks[id], sizeof(text), ACL_MEM_MALLOC_HUGE_FIRST));
    }
    ACL(aclrtMemcpy(blocks[0], sizeof(text), text, sizeof(text), ACL_MEMCPY_HOST_TO_DEVICE));
    ACL(aclrtMemcpy(blocks[1], sizeof(text), blocks[0], sizeof(text), ACL_MEMCPY_DEVICE_TO_DEVICE));
    ACL(aclrtMemcpy(back, sizeof(back), blocks[1], sizeof(text), ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(!strcmp(text, back));
    ACL(aclrtGetDevice(&current));
    CHECK(current == 1);
    ACL(aclrtFree(blocks[0]));
    ACL(aclrtFree(blocks[1]));
    for (int32_t id = 0; id < 2; id++) {
        ACL(aclrtSetDevice(id));
        ACL(aclrtDeviceDisablePeerAccess(1 - id));
        ACL(aclrtResetDevice(id));
        ACL(aclrtResetDevice(id));
    }
    printf("%s\n", back);
    return aclFinalize();
}
