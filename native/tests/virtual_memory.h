/* What the tests of virtual memory share: properties, handles, ranges and bytes in short words. */
#ifndef HOSTACL_TESTS_VIRTUAL_MEMORY_H
#define HOSTACL_TESTS_VIRTUAL_MEMORY_H

#include "check.h"

#define PAGE (2 * MIB)
#define UNTOUCHED ((void *)(uintptr_t)0xa5a5a5a5a5a5a5a5u)

__attribute__((unused)) static aclrtPhysicalMemProp property(aclrtMemAttr attr, aclrtMemLocationType type,
                                                             uint32_t id) {
    return (aclrtPhysicalMemProp){.memAttr = attr, .location = {.id = id, .type = type}};
}

/* A handle of device memory in 2 MiB pages; null after a failed check. */
__attribute__((unused)) static aclrtDrvMemHandle physical(uint32_t device, uint64_t bytes) {
    aclrtDrvMemHandle handle = NULL;
    aclrtPhysicalMemProp prop = property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, device);
    OK(aclrtMallocPhysical(&handle, bytes, &prop, 0));
    return handle;
}

/* A reserved range anywhere. */
__attribute__((unused)) static void *range(uint64_t bytes) {
    void *start = NULL;
    OK(aclrtReserveMemAddress(&start, bytes, 0, NULL, 1));
    return start;
}

/* Writes one byte to a device address; the code of the copy. */
__attribute__((unused)) static int poke(void *at, uint8_t byte) {
    return aclrtMemcpy(at, 1, &byte, 1, ACL_MEMCPY_HOST_TO_DEVICE);
}

/* The byte at a device address. */
__attribute__((unused)) static uint8_t peek(const void *at) {
    uint8_t byte = 0xee;
    OK(aclrtMemcpy(&byte, 1, at, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    return byte;
}

/* What is alive. */
__attribute__((unused)) static hostacl_live_t live_now(void) {
    hostacl_live_t live;
    OK(hostacl_live(&live));
    return live;
}

/* A wrong value of each kind for a call that takes a handle: never given out, an address, a context's handle. */
__attribute__((unused)) static void *const wrong_handles[] = {(void *)1,
                                                              (void *)16,
                                                              (void *)0x10000010,
                                                              (void *)~(uintptr_t)0,
                                                              (void *)&check_count,
                                                              (void *)((uintptr_t)1 << 44)};

#define WRONG_HANDLES (sizeof(wrong_handles) / sizeof(wrong_handles[0]))

#endif
