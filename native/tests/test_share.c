/* Physical memory handles shared between processes: export, leave to import, the same bytes on both sides, how long the
 * memory lives, what a process that dies leaves behind. */
#include "other_process.h"

static void *at;
static aclrtDrvMemHandle handle;
static uint64_t token;

/* A handle of three pages, mapped, exported. */
static void set_up(uint64_t flags) {
    start("profile", "strict", NULL);
    OK(aclrtSetDevice(0));
    at = range(3 * PAGE);
    handle = physical(0, 3 * PAGE);
    OK(aclrtMapMem(at, 3 * PAGE, 0, handle, 0));
    token = 0;
    OK(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE, flags, &token));
    CHECK(token != 0);
}

static void tear_down(void) {
    OK(aclrtUnmapMem(at));
    OK(aclrtFreePhysical(handle));
    OK(aclrtReleaseMemAddress(at));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

static void allow(const struct other *other) {
    int32_t pids[2] = {1, other->pid};
    OK(aclrtMemSetPidToShareableHandle(token, pids, 2));
}

static void test_arguments(void) {
    uint64_t out = 77;
    aclrtDrvMemHandle imported = UNTOUCHED, own = NULL;
    int32_t pid = 1;
    set_up(0);
    own = physical(0, PAGE);
    CHECK_EQ(aclrtMemExportToShareableHandle(NULL, 0, 0, &out), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemExportToShareableHandle(own, 0, 0, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemExportToShareableHandle(own, ACL_MEM_HANDLE_TYPE_POSIX, 0, &out), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemExportToShareableHandle(own, 0, 2, &out), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemExportToShareableHandle(handle, 0, 0, &out), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(out, 77);
    CHECK_EQ(aclrtMemSetPidToShareableHandle(token, NULL, 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemSetPidToShareableHandle(token, &pid, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemSetPidToShareableHandle(token + 2, &pid, 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemSetPidToShareableHandle(0, &pid, 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemImportFromShareableHandle(token, 0, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemImportFromShareableHandle(token, 2, &imported), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtMemImportFromShareableHandle(token, -1, &imported), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtMemImportFromShareableHandle(token, 0, &imported), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    static const uint64_t wrong[] = {0, 1, 42, UINT64_MAX, (uint64_t)1 << 63, 0x123456789abcdef0};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        CHECK_EQ(aclrtMemImportFromShareableHandle(wrong[i], 0, &imported), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK(imported == UNTOUCHED);
    OK(aclrtFreePhysical(own));
    CHECK_EQ(live_now().exports, 1);
    tear_down();
}

/* Both sides see the same bytes, whoever wrote them, also those from before the export. */
static void test_same_bytes(void) {
    set_up(0);
    OK(poke(plus(at, 3 * PAGE - 1), 71));
    struct other other = start_other();
    CHECK_EQ(ask(&other, "import %llu 0", (unsigned long long)token), ACL_ERROR_RT_NO_PERMISSION);
    allow(&other);
    CHECK_EQ(ask(&other, "import %llu 0", (unsigned long long)token + 2), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(ask(&other, "import %llu 9", (unsigned long long)token), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(ask(&other, "import %llu 1", (unsigned long long)token), 0);
    CHECK_EQ(ask(&other, "device 1"), 0);
    CHECK_EQ(ask(&other, "map %llu", (unsigned long long)(3 * PAGE)), 0);
    CHECK_EQ(ask(&other, "where"), 1);
    CHECK_EQ(ask(&other, "page"), PAGE);
    CHECK_EQ(ask(&other, "peek %llu", (unsigned long long)(3 * PAGE - 1)), 71);
    CHECK_EQ(ask(&other, "peek 5"), 0);
    CHECK_EQ(ask(&other, "poke 5 99"), 0);
    CHECK_EQ(peek(plus(at, 5)), 99);
    OK(aclrtMemset(at, 3 * PAGE, 0x31, 3 * PAGE));
    CHECK_EQ(ask(&other, "peek 4000000"), 0x31);
    CHECK_EQ(ask(&other, "fill %llu 0", (unsigned long long)(3 * PAGE)), 0);
    CHECK_EQ(peek(plus(at, 4000000)), 0);
    CHECK_EQ(ask(&other, "used"), 0);
    CHECK_EQ(ask(&other, "imports"), 1);
    CHECK_EQ(ask(&other, "again"), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(ask(&other, "unmap"), 0);
    CHECK_EQ(ask(&other, "imports"), 1);
    CHECK_EQ(ask(&other, "free"), 0);
    CHECK_EQ(ask(&other, "free"), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(ask(&other, "imports"), 0);
    CHECK_EQ(ask(&other, "release"), 0);
    CHECK_EQ(ask(&other, "reset 1"), 0);
    end_other(&other, 0);
    tear_down();
}

/* Without the check of processes anybody may import, also several at once. */
static void test_no_check(void) {
    set_up(ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION);
    struct other others[2] = {start_other(), start_other()};
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(ask(&others[i], "import %llu 0", (unsigned long long)token), 0);
        CHECK_EQ(ask(&others[i], "device 0"), 0);
        CHECK_EQ(ask(&others[i], "map %llu", (unsigned long long)(3 * PAGE)), 0);
    }
    CHECK_EQ(ask(&others[0], "poke 9 17"), 0);
    CHECK_EQ(ask(&others[1], "peek 9"), 17);
    for (int i = 0; i < 2; i++)
        end_other(&others[i], 0);
    tear_down();
}

static uint64_t used(void) {
    return live_now().devices[0].pages_2m_used;
}

/* Memory freed here stays until the other process let go of it, or died. */
static void test_life(void) {
    for (int kills = 0; kills < 2; kills++) {
        set_up(ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION);
        OK(poke(at, 63));
        struct other other = start_other();
        CHECK_EQ(ask(&other, "import %llu 0", (unsigned long long)token), 0);
        CHECK_EQ(ask(&other, "device 0"), 0);
        CHECK_EQ(ask(&other, "map %llu", (unsigned long long)(3 * PAGE)), 0);
        OK(aclrtUnmapMem(at));
        OK(aclrtFreePhysical(handle));
        CHECK_EQ(aclrtFreePhysical(handle), ACL_ERROR_RT_PARAM_INVALID);
        CHECK_EQ(used(), 3);
        CHECK_EQ(live_now().handles, 0);
        CHECK_EQ(live_now().exports, 1);
        CHECK_EQ(free_bytes(ACL_HBM_MEM_HUGE), (uint64_t)28 * 1024 * PAGE - (uint64_t)4 * GIB - 3 * PAGE);
        CHECK_EQ(ask(&other, "peek 0"), 63);
        struct other late = start_other();
        CHECK_EQ(ask(&late, "import %llu 0", (unsigned long long)token), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
        end_other(&late, 0);
        if (!kills) {
            CHECK_EQ(ask(&other, "unmap"), 0);
            CHECK_EQ(ask(&other, "free"), 0);
            CHECK_EQ(used(), 0);
        }
        end_other(&other, kills ? SIGKILL : 0);
        CHECK_EQ(used(), 0);
        CHECK_EQ(live_now().devices[0].committed_bytes, 0);
        OK(aclrtReleaseMemAddress(at));
        OK(aclrtResetDevice(0));
        check_nothing_alive();
    }
}

/* A request that does not fit asks first whether memory is still in use elsewhere. */
static void test_room(void) {
    start("pages_2m", "6M", "pages_4k", "4M", "pages_1g", "0", NULL);
    OK(aclrtSetDevice(0));
    handle = physical(0, 3 * PAGE);
    OK(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE, 1, &token));
    struct other other = start_other();
    CHECK_EQ(ask(&other, "import %llu 0", (unsigned long long)token), 0);
    OK(aclrtFreePhysical(handle));
    aclrtPhysicalMemProp prop = property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, 0);
    CHECK_EQ(aclrtMallocPhysical(&handle, PAGE, &prop, 0), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK_EQ(ask(&other, "free"), 0);
    OK(aclrtMallocPhysical(&handle, 3 * PAGE, &prop, 0));
    OK(aclrtFreePhysical(handle));
    end_other(&other, 0);
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

/* The exporter resets its device or dies: the importer keeps its bytes, and nobody can import any more. */
static void test_exporter_goes(void) {
    for (int way = 0; way < 3; way++) {
        start(NULL);
        OK(aclrtSetDevice(0));
        at = range(2 * PAGE);
        struct other other = start_other();
        CHECK_EQ(ask(&other, "device 0"), 0);
        CHECK_EQ(ask(&other, "export %llu", (unsigned long long)(2 * PAGE)), 0);
        token = (uint64_t)ask(&other, "token");
        CHECK_EQ(ask(&other, "map %llu", (unsigned long long)(2 * PAGE)), 0);
        CHECK_EQ(ask(&other, "poke 7 55"), 0);
        OK(aclrtMemImportFromShareableHandle(token, 0, &handle));
        OK(aclrtMapMem(at, 2 * PAGE, 0, handle, 0));
        CHECK_EQ(peek(plus(at, 7)), 55);
        if (way == 0)
            CHECK_EQ(ask(&other, "reset 0"), 0);
        if (way < 2)
            end_other(&other, way ? SIGKILL : 0);
        else
            end_other(&other, 0);
        CHECK_EQ(peek(plus(at, 7)), 55);
        OK(poke(plus(at, 2 * PAGE - 1), 56));
        CHECK_EQ(peek(plus(at, 2 * PAGE - 1)), 56);
        aclrtDrvMemHandle late = UNTOUCHED;
        CHECK_EQ(aclrtMemImportFromShareableHandle(token, 0, &late), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
        OK(aclrtUnmapMem(at));
        OK(aclrtFreePhysical(handle));
        OK(aclrtReleaseMemAddress(at));
        OK(aclrtResetDevice(0));
        check_nothing_alive();
    }
}

/* Processes that are killed at any point of an import, or of writing into the memory, leave nothing behind. */
static void test_kills(void) {
    for (int i = 0; i < 25; i++) {
        set_up(ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION);
        struct other other = start_other();
        fprintf(other.to, "device 0\nimport %llu 0\nmap %llu\n", (unsigned long long)token,
                (unsigned long long)(3 * PAGE));
        for (int k = 0; k < 50; k++)
            fprintf(other.to, "fill %llu %d\n", (unsigned long long)(3 * PAGE), k);
        fflush(other.to);
        usleep((unsigned)i * 700);
        end_other(&other, SIGKILL);
        OK(poke(at, 200));
        CHECK_EQ(peek(at), 200);
        tear_down();
    }
}

/* Scattered pages and 1 GiB pages arrive in their order. */
static void test_scattered(void) {
    enum { PAGES = 8 };
    aclrtDrvMemHandle singles[PAGES];
    start("pages_2m", "16M", "pages_4k", "4M", "pages_1g", "0", NULL);
    OK(aclrtSetDevice(0));
    for (int i = 0; i < PAGES; i++)
        singles[i] = physical(0, PAGE);
    for (int i = 0; i < PAGES; i += 2)
        OK(aclrtFreePhysical(singles[i]));
    at = range(4 * PAGE);
    handle = physical(0, 4 * PAGE);
    OK(aclrtMapMem(at, 4 * PAGE, 0, handle, 0));
    for (uint64_t i = 0; i < 4; i++)
        OK(poke(plus(at, i * PAGE), (uint8_t)(i + 1)));
    OK(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE, 1, &token));
    struct other other = start_other();
    CHECK_EQ(ask(&other, "device 0"), 0);
    CHECK_EQ(ask(&other, "import %llu 0", (unsigned long long)token), 0);
    CHECK_EQ(ask(&other, "map %llu", (unsigned long long)(4 * PAGE)), 0);
    for (uint64_t i = 0; i < 4; i++)
        CHECK_EQ(ask(&other, "peek %llu", (unsigned long long)(i * PAGE)), i + 1);
    CHECK_EQ(ask(&other, "fill %llu 9", (unsigned long long)(4 * PAGE)), 0);
    for (uint64_t i = 0; i < 4; i++)
        CHECK_EQ(peek(plus(at, (i + 1) * PAGE - 1)), 9);
    end_other(&other, 0);
    for (int i = 1; i < PAGES; i += 2)
        OK(aclrtFreePhysical(singles[i]));
    tear_down();
}

/* Many processes may be listed, but not without end. */
static void test_list_of_processes(void) {
    static int32_t pids[5000];
    set_up(0);
    struct other other = start_other();
    for (int i = 0; i < 4000; i++)
        pids[i] = i;
    pids[3999] = other.pid;
    OK(aclrtMemSetPidToShareableHandle(token, pids, 4000));
    CHECK_EQ(aclrtMemSetPidToShareableHandle(token, pids, 5000), ACL_ERROR_RT_OVER_LIMIT);
    CHECK_EQ(aclrtMemSetPidToShareableHandle(token, pids, 97), ACL_ERROR_RT_OVER_LIMIT);
    CHECK_EQ(ask(&other, "import %llu 0", (unsigned long long)token), 0);
    CHECK_EQ(ask(&other, "free"), 0);
    end_other(&other, 0);
    tear_down();
}

/* The second form: the same numbers; fabric handles where the product has them. */
static void test_second_form(void) {
    aclrtMemFabricHandle fabric;
    aclrtDrvMemHandle imported = UNTOUCHED;
    int32_t pid = 1;
    start("soc_name", "Ascend910B1", NULL);
    OK(aclrtSetDevice(0));
    handle = physical(0, PAGE);
    CHECK_EQ(aclrtMemExportToShareableHandleV2(NULL, 0, 1, &token), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemExportToShareableHandleV2(handle, 0, 1, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemExportToShareableHandleV2(handle, 0, 0, &token), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemExportToShareableHandleV2(handle, 2, 1, &token), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemExportToShareableHandleV2(handle, 0, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, &fabric),
             ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    OK(aclrtMemExportToShareableHandleV2(handle, 1, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, &token));
    CHECK_EQ(aclrtMemImportFromShareableHandleV2(NULL, 1, 0, &imported), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemImportFromShareableHandleV2(&token, 1, 1, &imported), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemImportFromShareableHandleV2(&token, 7, 0, &imported), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemSetPidToShareableHandleV2(NULL, 1, &pid, 1), ACL_ERROR_INVALID_PARAM);
    OK(aclrtMemSetPidToShareableHandleV2(&token, 1, &pid, 1));
    CHECK(imported == UNTOUCHED);
    struct other other = start_other();
    CHECK_EQ(ask(&other, "second %llu 1", (unsigned long long)token), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(ask(&other, "device 1"), 0);
    CHECK_EQ(ask(&other, "second %llu 1", (unsigned long long)token), 0);
    CHECK_EQ(ask(&other, "second %llu 2", (unsigned long long)token), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    end_other(&other, 0);
    OK(aclrtFreePhysical(handle));
    OK(aclrtResetDevice(0));
    setenv("HOSTACL_SOC_NAME", "Ascend910_9391", 1);
    OK(hostacl_reset());
    OK(aclrtSetDevice(0));
    handle = physical(0, PAGE);
    memset(&fabric, 0xff, sizeof(fabric));
    OK(aclrtMemExportToShareableHandleV2(handle, 0, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, &fabric));
    other = start_other();
    pid = other.pid;
    OK(aclrtMemSetPidToShareableHandleV2(&fabric, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, &pid, 1));
    memcpy(&token, &fabric, sizeof(token));
    CHECK_EQ(ask(&other, "device 1"), 0);
    CHECK_EQ(ask(&other, "second %llu 2", (unsigned long long)token), 0);
    end_other(&other, 0);
    unsetenv("HOSTACL_SOC_NAME");
    OK(aclrtFreePhysical(handle));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

/* Host memory travels too, and the host reads it at its address on both sides. */
static void test_host_memory(void) {
    aclrtPhysicalMemProp prop = property(ACL_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST, 0);
    start(NULL);
    at = range(PAGE);
    OK(aclrtMallocPhysical(&handle, PAGE, &prop, 0));
    OK(aclrtMapMem(at, PAGE, 0, handle, 0));
    OK(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE, 1, &token));
    ((char *)at)[3] = 47;
    struct other other = start_other();
    CHECK_EQ(ask(&other, "import %llu 0", (unsigned long long)token), 0);
    CHECK_EQ(ask(&other, "map %llu", (unsigned long long)PAGE), 0);
    CHECK_EQ(ask(&other, "touch 3"), 47);
    end_other(&other, 0);
    OK(aclrtUnmapMem(at));
    OK(aclrtFreePhysical(handle));
    OK(aclrtReleaseMemAddress(at));
    check_nothing_alive();
}

/* In mode unified host code of both sides touches the same bytes at device addresses. */
static void test_unified(void) {
    setenv("HOSTACL_MODE", "unified", 1);
    set_up(ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION);
    ((char *)at)[2 * PAGE + 3] = 21;
    struct other other = start_other();
    CHECK_EQ(ask(&other, "import %llu 0", (unsigned long long)token), 0);
    CHECK_EQ(ask(&other, "device 0"), 0);
    CHECK_EQ(ask(&other, "map %llu", (unsigned long long)(3 * PAGE)), 0);
    CHECK_EQ(ask(&other, "touch %llu", (unsigned long long)(2 * PAGE + 3)), 21);
    CHECK_EQ(ask(&other, "poke 9 22"), 0);
    CHECK_EQ(((volatile char *)at)[9], 22);
    CHECK_EQ(ask(&other, "unmap"), 0);
    CHECK_EQ(ask(&other, "free"), 0);
    end_other(&other, 0);
    unsetenv("HOSTACL_MODE");
    tear_down();
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1)
        return obey();
    signal(SIGPIPE, SIG_IGN);
    test_arguments();
    test_same_bytes();
    test_no_check();
    test_life();
    test_room();
    test_exporter_goes();
    test_kills();
    test_scattered();
    test_list_of_processes();
    test_second_form();
    test_host_memory();
    test_unified();
    start(NULL);
    check_nothing_alive();
    return check_done();
}
