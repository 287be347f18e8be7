/* Device blocks shared between processes by key. */
#include "other_process.h"

static void *block;
static char key[65];

static void set_up(uint64_t bytes, aclrtMemMallocPolicy policy, uint64_t flags) {
    start("profile", "strict", NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMallocAlign32(&block, bytes, policy));
    memset(key, '?', sizeof(key));
    OK(aclrtIpcMemGetExportKey(block, bytes, key, sizeof(key), flags));
    CHECK(memchr(key, 0, sizeof(key)) && key[0]);
}

static void tear_down(void) {
    OK(aclrtFree(block));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

static void test_arguments(void) {
    static const char *const wrong[] = {"",
                                        "x",
                                        "hostacl-memory-",
                                        "hostacl-memory-0000000000000000",
                                        "hostacl-memory-ffffffffffffffff",
                                        "hostacl-memory-0000000000000001 and more",
                                        "hostacl-memory-zzzzzzzzzzzzzzzz"};
    void *out = UNTOUCHED, *other = NULL;
    char second[65];
    int32_t pid = 1;
    set_up(3 * PAGE, ACL_MEM_MALLOC_HUGE_ONLY, 0);
    OK(aclrtMallocAlign32(&other, 2 * PAGE, ACL_MEM_MALLOC_HUGE_ONLY));
    OK(aclrtIpcMemSetAttr(key, ACL_RT_IPC_MEM_ATTR_ACCESS_LINK, ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_HCCS));
    CHECK_EQ(aclrtIpcMemSetAttr(NULL, ACL_RT_IPC_MEM_ATTR_ACCESS_LINK, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtIpcMemSetAttr(key, (aclrtIpcMemAttrType)1, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtIpcMemSetAttr(key, ACL_RT_IPC_MEM_ATTR_ACCESS_LINK, 4), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtIpcMemSetAttr("x", ACL_RT_IPC_MEM_ATTR_ACCESS_LINK, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtIpcMemGetExportKey(NULL, PAGE, second, 65, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtIpcMemGetExportKey(other, PAGE, NULL, 65, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtIpcMemGetExportKey(other, 0, second, 65, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtIpcMemGetExportKey(other, PAGE, second, 64, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtIpcMemGetExportKey(other, PAGE, second, 66, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtIpcMemGetExportKey(other, PAGE, second, 65, 2), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtIpcMemGetExportKey(plus(other, 4096), PAGE, second, 65, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtIpcMemGetExportKey(other, 2 * PAGE + 1, second, 65, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtIpcMemGetExportKey(&out, PAGE, second, 65, 0), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtIpcMemGetExportKey(block, 3 * PAGE, second, 65, 0));
    CHECK(!strcmp(key, second));
    CHECK_EQ(aclrtIpcMemImportByKey(NULL, key, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtIpcMemImportByKey(&out, NULL, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtIpcMemImportByKey(&out, key, 2), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtIpcMemImportByKey(&out, key, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtIpcMemClose(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtIpcMemSetImportPid(NULL, &pid, 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtIpcMemSetImportPid(key, NULL, 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtIpcMemSetImportPid(key, &pid, 0), ACL_ERROR_INVALID_PARAM);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        CHECK_EQ(aclrtIpcMemImportByKey(&out, wrong[i], 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
        CHECK_EQ(aclrtIpcMemClose(wrong[i]), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
        CHECK_EQ(aclrtIpcMemSetImportPid(wrong[i], &pid, 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    }
    CHECK(out == UNTOUCHED);
    OK(aclrtFree(other));
    OK(aclrtIpcMemClose(key));
    CHECK_EQ(aclrtIpcMemClose(key), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    tear_down();
}

static void share(uint64_t bytes, aclrtMemMallocPolicy policy, uint64_t page) {
    set_up(bytes, policy, 0);
    OK(poke(plus(block, bytes - 1), 12));
    struct other other = start_other();
    CHECK_EQ(ask(&other, "open 0 %s", key), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(ask(&other, "device 0"), 0);
    CHECK_EQ(ask(&other, "open 0 %s", key), ACL_ERROR_RT_NO_PERMISSION);
    int32_t pid = other.pid;
    OK(aclrtIpcMemSetImportPid(key, &pid, 1));
    CHECK_EQ(ask(&other, "open 0 %s", key), 0);
    CHECK_EQ(ask(&other, "open 0 %s", key), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(ask(&other, "page"), page);
    CHECK_EQ(ask(&other, "where"), 0);
    CHECK_EQ(ask(&other, "used"), 0);
    CHECK_EQ(ask(&other, "peek %llu", (unsigned long long)bytes - 1), 12);
    CHECK_EQ(ask(&other, "poke 0 13"), 0);
    CHECK_EQ(peek(block), 13);
    CHECK_EQ(ask(&other, "free block"), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtFree(block), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(peek(block), 13);
    CHECK_EQ(ask(&other, "close %s", key), 0);
    CHECK_EQ(ask(&other, "close %s", key), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(ask(&other, "poke 0 14"), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(ask(&other, "imports"), 0);
    end_other(&other, 0);
    tear_down();
}

static void test_sharing(void) {
    share(5 * PAGE, ACL_MEM_MALLOC_HUGE_ONLY, PAGE);
    share(70000, ACL_MEM_MALLOC_NORMAL_ONLY, 4096);
    share(GIB, ACL_MEM_MALLOC_HUGE1G_ONLY, PAGE);
}

/* The driver's heap of the card profile: a block inside a larger piece. */
static void test_card(void) {
    void *first = NULL;
    start("profile", "card", NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&first, 5000, ACL_MEM_MALLOC_NORMAL_ONLY));
    OK(aclrtMalloc(&block, 9000, ACL_MEM_MALLOC_NORMAL_ONLY));
    OK(aclrtIpcMemGetExportKey(block, 9000, key, sizeof(key), ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION));
    OK(poke(block, 44));
    struct other other = start_other();
    CHECK_EQ(ask(&other, "device 0"), 0);
    CHECK_EQ(ask(&other, "open 0 %s", key), 0);
    CHECK_EQ(ask(&other, "peek 0"), 44);
    CHECK_EQ(ask(&other, "poke 8999 45"), 0);
    CHECK_EQ(peek(plus(block, 8999)), 45);
    end_other(&other, SIGKILL);
    OK(aclrtFree(block));
    OK(aclrtFree(first));
    OK(aclrtResetDevice(0));
    CHECK_EQ(live_now().exports, 0);
}

/* A key that its exporter closed cannot be imported, but who has the memory keeps it, and the block stays. */
static void test_close_by_exporter(void) {
    set_up(2 * PAGE, ACL_MEM_MALLOC_HUGE_ONLY, ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION);
    struct other other = start_other(), late = start_other();
    CHECK_EQ(ask(&other, "device 0"), 0);
    CHECK_EQ(ask(&late, "device 0"), 0);
    CHECK_EQ(ask(&other, "open 0 %s", key), 0);
    OK(aclrtIpcMemClose(key));
    CHECK_EQ(ask(&late, "open 0 %s", key), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtFree(block), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    char second[65];
    CHECK_EQ(aclrtIpcMemGetExportKey(block, PAGE, second, 65, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(ask(&other, "poke 1 2"), 0);
    CHECK_EQ(peek(plus(block, 1)), 2);
    CHECK_EQ(ask(&other, "close %s", key), 0);
    OK(aclrtIpcMemGetExportKey(block, PAGE, second, 65, 1));
    CHECK(strcmp(key, second));
    CHECK_EQ(ask(&late, "open 0 %s", second), 0);
    CHECK_EQ(ask(&late, "peek 1"), 2);
    end_other(&late, 0);
    end_other(&other, 0);
    tear_down();
}

/* The imported block lies on the exporter's device; flag 1 lets the current device reach it. */
static void test_peer_flag(void) {
    set_up(PAGE, ACL_MEM_MALLOC_HUGE_ONLY, 1);
    struct other other = start_other();
    CHECK_EQ(ask(&other, "device 1"), 0);
    CHECK_EQ(ask(&other, "open 0 %s", key), 0);
    CHECK_EQ(ask(&other, "where"), 0);
    CHECK_EQ(ask(&other, "pull"), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(ask(&other, "close %s", key), 0);
    CHECK_EQ(ask(&other, "open 1 %s", key), 0);
    CHECK_EQ(ask(&other, "pull"), 0);
    end_other(&other, 0);
    tear_down();
}

/* A reset of the importer's device drops the import, the death of either side leaves nothing behind. */
static void test_ends(void) {
    set_up(PAGE, ACL_MEM_MALLOC_HUGE_ONLY, 1);
    struct other other = start_other();
    CHECK_EQ(ask(&other, "device 0"), 0);
    CHECK_EQ(ask(&other, "open 0 %s", key), 0);
    CHECK_EQ(ask(&other, "reset 0"), 0);
    CHECK_EQ(ask(&other, "imports"), 0);
    CHECK_EQ(ask(&other, "close %s", key), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(ask(&other, "device 0"), 0);
    CHECK_EQ(ask(&other, "open 0 %s", key), 0);
    end_other(&other, SIGKILL);
    tear_down();
    set_up(PAGE, ACL_MEM_MALLOC_HUGE_ONLY, 1);
    other = start_other();
    CHECK_EQ(ask(&other, "device 0"), 0);
    CHECK_EQ(ask(&other, "open 0 %s", key), 0);
    CHECK_EQ(ask(&other, "poke 3 9"), 0);
    OK(aclrtResetDeviceForce(0));
    CHECK_EQ(ask(&other, "peek 3"), 9);
    CHECK_EQ(live_now().exports, 0);
    end_other(&other, 0);
    check_nothing_alive();
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1)
        return obey();
    signal(SIGPIPE, SIG_IGN);
    test_arguments();
    test_sharing();
    test_card();
    test_close_by_exporter();
    test_peer_flag();
    test_ends();
    start(NULL);
    check_nothing_alive();
    return check_done();
}
