/* aclrtPointerGetAttributes for every kind of address (strict profile). */
#include "check.h"

static void check_place(const void *ptr, aclrtMemLocationType type, uint32_t id, uint32_t page_bytes) {
    aclrtPtrAttributes attributes;
    memset(&attributes, 0xa5, sizeof(attributes));
    OK(aclrtPointerGetAttributes(ptr, &attributes));
    CHECK_EQ(attributes.location.type, type);
    CHECK_EQ(attributes.location.id, id);
    CHECK_EQ(attributes.pageSize, page_bytes);
    CHECK_EQ(attributes.rsv[0] | attributes.rsv[3], 0);
}

static void test_places(void) {
    char on_stack = 0;
    void *heap = malloc(8192);
    void *host = NULL, *small = NULL, *huge = NULL, *giant = NULL;
    start(NULL);
    check_place(heap, ACL_MEM_LOCATION_TYPE_UNREGISTERED, 0, 4096);
    OK(aclrtSetDevice(1));
    OK(aclrtMallocHost(&host, 10000));
    OK(aclrtMalloc(&small, 1024, ACL_MEM_MALLOC_NORMAL_ONLY));
    OK(aclrtMalloc(&huge, 4 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMalloc(&giant, 1, ACL_MEM_MALLOC_HUGE1G_ONLY));
    check_place(&on_stack, ACL_MEM_LOCATION_TYPE_UNREGISTERED, 0, 4096);
    check_place(heap, ACL_MEM_LOCATION_TYPE_UNREGISTERED, 0, 4096);
    check_place(host, ACL_MEM_LOCATION_TYPE_HOST, 0, 4096);
    check_place(plus(host, 9999), ACL_MEM_LOCATION_TYPE_HOST, 0, 4096);
    check_place(small, ACL_MEM_LOCATION_TYPE_DEVICE, 1, 4096);
    check_place(plus(small, 1023), ACL_MEM_LOCATION_TYPE_DEVICE, 1, 4096);
    check_place(huge, ACL_MEM_LOCATION_TYPE_DEVICE, 1, 2097152);
    check_place(plus(huge, 4 * MIB - 1), ACL_MEM_LOCATION_TYPE_DEVICE, 1, 2097152);
    check_place(giant, ACL_MEM_LOCATION_TYPE_DEVICE, 1, 2097152);
    check_place(plus(giant, GIB - 1), ACL_MEM_LOCATION_TYPE_DEVICE, 1, 2097152);
    OK(aclrtFreeHost(host));
    check_place(host, ACL_MEM_LOCATION_TYPE_UNREGISTERED, 0, 4096);
    free(heap);
}

static void test_refusals(void) {
    aclrtPtrAttributes attributes, before;
    void *block = NULL;
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, 4 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    memset(&attributes, 0xa5, sizeof(attributes));
    before = attributes;
    CHECK_EQ(aclrtPointerGetAttributes(NULL, &attributes), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtPointerGetAttributes(block, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtPointerGetAttributes(plus(block, 100 * GIB), &attributes), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtFree(block));
    CHECK_EQ(aclrtPointerGetAttributes(block, &attributes), ACL_ERROR_RT_PARAM_INVALID);
    CHECK(!memcmp(&attributes, &before, sizeof(before)));
}

int main(void) {
    test_places();
    test_refusals();
    return check_done();
}
