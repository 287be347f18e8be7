/* hostacl_live and hostacl_live_report. */
#include "check.h"

static void test_counts(void) {
    void *small = NULL, *huge = NULL, *giant = NULL, *host = NULL;
    aclrtContext context = NULL;
    hostacl_live_t live;
    start("pages_1g", "3", NULL);
    CHECK_EQ(hostacl_live(NULL), ACL_ERROR_INVALID_PARAM);
    OK(aclrtSetDevice(0));
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&small, 5000, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMallocHost(&host, 5000));
    OK(aclrtCreateContext(&context, 1));
    OK(aclrtMalloc(&huge, 4 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMalloc(&giant, 1, ACL_MEM_MALLOC_HUGE1G_ONLY));
    OK(hostacl_live(&live));
    CHECK_EQ(live.blocks, 3);
    CHECK_EQ(live.bytes, 8192 + 6 * MIB + GIB);
    CHECK_EQ(live.host_blocks, 1);
    CHECK_EQ(live.host_bytes, 8192);
    CHECK_EQ(live.contexts, 1);
    CHECK_EQ(live.devices_set, 1);
    CHECK_EQ(live.device_count, 2);
    CHECK_EQ(live.devices[0].set_count, 2);
    CHECK_EQ(live.devices[0].pages_4k_used, 2);
    CHECK_EQ(live.devices[0].pages_4k_total, 8 * GIB / 4096);
    CHECK_EQ(live.devices[0].pages_2m_used, 0);
    CHECK_EQ(live.devices[1].set_count, 0);
    CHECK_EQ(live.devices[1].pages_2m_used, 3);
    CHECK_EQ(live.devices[1].pages_1g_used, 1);
    CHECK_EQ(live.devices[1].pages_1g_total, 3);
    OK(aclrtFree(small));
    OK(aclrtFree(huge));
    OK(aclrtFree(giant));
    OK(aclrtFreeHost(host));
    OK(aclrtDestroyContext(context));
    OK(aclrtResetDeviceForce(0));
    check_nothing_alive();
}

static void test_report(void) {
    char text[1024], line[128], cut[10];
    void *block = NULL, *host = NULL;
    aclrtContext context = NULL;
    start(NULL);
    CHECK_EQ(hostacl_live_report(text, sizeof(text)), 0);
    CHECK_EQ(text[0], 0);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, 5000, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMallocHost(&host, 77));
    OK(aclrtCreateContext(&context, 1));
    int len = hostacl_live_report(text, sizeof(text));
    CHECK_EQ(len, strlen(text));
    snprintf(line, sizeof(line), "block %p: 5000 bytes asked, 8192 bytes in 4 KiB pages, device 0\n", block);
    CHECK(strstr(text, line));
    snprintf(line, sizeof(line), "host block %p: 77 bytes asked, 4096 bytes\n", host);
    CHECK(strstr(text, line));
    snprintf(line, sizeof(line), "context %p: device 1\n", context);
    CHECK(strstr(text, line));
    CHECK(strstr(text, "device 0: set 1 times\n"));
    CHECK_EQ(hostacl_live_report(cut, sizeof(cut)), len);
    CHECK(!strncmp(cut, text, 9) && cut[9] == 0);
    CHECK_EQ(hostacl_live_report(NULL, 0), len);
}

int main(void) {
    test_counts();
    test_report();
    start(NULL);
    return check_done();
}
