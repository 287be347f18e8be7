/* An allocator that sleeps and wakes: every tensor lies in a range of its own. Sleeping copies what must survive to
 * pinned host memory, gives the physical memory back and keeps the ranges; waking makes new physical memory under the
 * same addresses and copies back. Free memory rises and falls with it. */
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

enum { TENSORS = 5 };

struct tensor {
    void *addr;               /* reserved range, the same for life */
    size_t bytes;             /* whole pages */
    int survives;             /* its bytes are kept over a sleep */
    aclrtDrvMemHandle handle; /* physical memory, null while asleep */
    void *copy;               /* pinned copy while asleep */
};

static void map_tensor(struct tensor *tensor) {
    aclrtPhysicalMemProp prop = {.memAttr = ACL_HBM_MEM_HUGE, .location = {.type = ACL_MEM_LOCATION_TYPE_DEVICE}};
    ACL(aclrtMallocPhysical(&tensor->handle, tensor->bytes, &prop, 0));
    ACL(aclrtMapMem(tensor->addr, tensor->bytes, 0, tensor->handle, 0));
}

static void unmap_tensor(struct tensor *tensor) {
    ACL(aclrtUnmapMem(tensor->addr));
    ACL(aclrtFreePhysical(tensor->handle));
    tensor->handle = NULL;
}

static void fall_asleep(struct tensor *tensors) {
    for (struct tensor *tensor = tensors; tensor < tensors + TENSORS; tensor++) {
        if (tensor->survives) {
            ACL(aclrtMallocHost(&tensor->copy, tensor->bytes));
            ACL(aclrtMemcpy(tensor->copy, tensor->bytes, tensor->addr, tensor->bytes, ACL_MEMCPY_DEVICE_TO_HOST));
        }
        unmap_tensor(tensor);
    }
}

static void wake_up(struct tensor *tensors) {
    for (struct tensor *tensor = tensors; tensor < tensors + TENSORS; tensor++) {
        map_tensor(tensor);
        if (tensor->copy) {
            ACL(aclrtMemcpy(tensor->addr, tensor->bytes, tensor->copy, tensor->bytes, ACL_MEMCPY_HOST_TO_DEVICE));
            ACL(aclrtFreeHost(tensor->copy));
            tensor->copy = NULL;
        }
    }
}

static size_t free_bytes(void) {
    size_t free_now = 0, total = 0;
    ACL(aclrtGetMemInfo(ACL_HBM_MEM_HUGE, &free_now, &total));
    return free_now;
}

static int byte_at(const void *addr, size_t offset) {
    unsigned char byte = 0;
    ACL(aclrtMemcpy(&byte, 1, (const char *)addr + offset, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    return byte;
}

int main(void) {
    struct tensor tensors[TENSORS] = {{0}};
    size_t all = 0;
    ACL(aclInit(NULL));
    ACL(aclrtSetDevice(0));
    size_t before = free_bytes();
    for (int i = 0; i < TENSORS; i++) {
        tensors[i].bytes = (size_t)(2 * (i + 1)) << 20;
        tensors[i].survives = i % 2 == 0;
        all += tensors[i].bytes;
        ACL(aclrtReserveMemAddress(&tensors[i].addr, tensors[i].bytes, 0, NULL, 1));
        map_tensor(&tensors[i]);
        ACL(aclrtMemset(tensors[i].addr, tensors[i].bytes, 100 + i, tensors[i].bytes));
    }
    for (int round = 0; round < 3; round++) {
        CHECK(before - free_bytes() == all);
        fall_asleep(tensors);
        CHECK(free_bytes() == before);
        CHECK(aclrtMemset(tensors[0].addr, 1, 0, 1) != ACL_SUCCESS);
        wake_up(tensors);
        for (int i = 0; i < TENSORS; i += 2)
            CHECK(byte_at(tensors[i].addr, 0) == 100 + i && byte_at(tensors[i].addr, tensors[i].bytes - 1) == 100 + i);
    }
    printf("%d tensors, %zu bytes, slept and woke three times at the same addresses\n", TENSORS, all);
    for (int i = 0; i < TENSORS; i++) {
        unmap_tensor(&tensors[i]);
        ACL(aclrtReleaseMemAddress(tensors[i].addr));
    }
    CHECK(free_bytes() == before);
    ACL(aclrtResetDevice(0));
    return aclFinalize();
}
