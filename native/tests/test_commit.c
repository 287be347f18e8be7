/* Host memory behind device memory: nothing before use, everything back after the free. */
#include "check.h"

static uint64_t committed(void) {
    hostacl_live_t live;
    OK(hostacl_live(&live));
    return live.devices[0].committed_bytes;
}

static void test_nothing_before_use(void) {
    void *block = NULL;
    char byte = 1;
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, 40 * GIB, ACL_MEM_MALLOC_HUGE_ONLY));
    CHECK_EQ(committed(), 0);
    OK(aclrtMemcpy(&byte, 1, plus(block, 20 * GIB), 1, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_EQ(byte, 0);
    OK(aclrtMemset(block, 40 * GIB, 0, 8 * MIB));
    CHECK_EQ(committed(), 0);
    OK(aclrtFree(block));
    CHECK_EQ(committed(), 0);
}

static void test_back_after_free(uint32_t policy, uint64_t size, uint64_t at, uint64_t count) {
    void *block = NULL, *neighbour = NULL;
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMallocAlign32(&neighbour, 4096, ACL_MEM_MALLOC_NORMAL_ONLY));
    OK(aclrtMemset(neighbour, 4096, 1, 4096));
    OK(aclrtMallocAlign32(&block, size, (aclrtMemMallocPolicy)policy));
    OK(aclrtMemset(plus(block, at), count, 1, count));
    uint64_t used = committed();
    CHECK(used >= count + 4096 && used <= count + 4 * 4096);
    OK(aclrtFree(block));
    CHECK_EQ(committed(), 4096);
    OK(aclrtMemset(neighbour, 4096, 2, 4096));
    OK(aclrtFree(neighbour));
    CHECK_EQ(committed(), 0);
}

/* Bytes written by a copy go through the memory file; they count and come back as well. */
static void test_copies(void) {
    void *block = NULL;
    char *bytes = calloc(1, 4 * MIB);
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, 16 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemcpy(plus(block, 3 * MIB), 4 * MIB, bytes, 4 * MIB, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK_EQ(committed(), 4 * MIB);
    OK(aclrtFree(block));
    CHECK_EQ(committed(), 0);
    free(bytes);
}

/* Pages of a freed block are fresh again: the next owner does not see old bytes. */
static void test_fresh_again(void) {
    void *block = NULL;
    uint8_t byte = 1;
    start("pages_4k", "4K", "pages_2m", "2M", NULL);
    OK(aclrtSetDevice(0));
    for (int i = 0; i < 3; i++) {
        OK(aclrtMallocAlign32(&block, 4096, ACL_MEM_MALLOC_NORMAL_ONLY));
        OK(aclrtMemcpy(&byte, 1, plus(block, 77), 1, ACL_MEMCPY_DEVICE_TO_HOST));
        CHECK_EQ(byte, 0);
        OK(aclrtMemset(block, 4096, 0xee, 4096));
        OK(aclrtFree(block));
    }
}

static void test_reset_gives_all_back(void) {
    void *block = NULL;
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, 8 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemset(block, 8 * MIB, 1, 8 * MIB));
    CHECK_EQ(committed(), 8 * MIB);
    OK(aclrtResetDevice(0));
    CHECK_EQ(committed(), 0);
    check_nothing_alive();
}

int main(void) {
    test_nothing_before_use();
    test_back_after_free(ACL_MEM_MALLOC_NORMAL_ONLY, 4096, 0, 4096);
    test_back_after_free(ACL_MEM_MALLOC_NORMAL_ONLY, 3 * MIB, 5000, MIB);
    test_back_after_free(ACL_MEM_MALLOC_HUGE_ONLY, 64 * MIB, 32 * MIB, 4 * MIB);
    test_back_after_free(ACL_MEM_MALLOC_HUGE1G_ONLY, GIB, GIB - MIB, MIB);
    test_copies();
    test_fresh_again();
    test_reset_gives_all_back();
    return check_done();
}
