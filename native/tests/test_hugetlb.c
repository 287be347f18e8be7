/* Pools of huge pages of the host (option hugetlb). What needs huge pages reserves them through /sys when it may, gives
 * them back at the end, and says so where it cannot. */
#include <sys/file.h>

#include "other_process.h"

/* Pages of one size that the host has. */
struct host_pages {
    const char *path; /* file with their number */
    long before;      /* number found */
};

static struct host_pages small = {.path = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"};
static struct host_pages giant = {.path = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"};

static long read_count(const char *path) {
    long count = -1;
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%ld", &count) != 1)
        count = -1;
    if (file)
        fclose(file);
    return count;
}

static void write_count(const char *path, long count) {
    FILE *file = fopen(path, "w");
    if (!file)
        return;
    fprintf(file, "%ld", count);
    fclose(file);
}

/* Adds pages to those the host has; false, with the reason printed, when it has fewer afterwards than it should. */
static bool reserve_host_pages(struct host_pages *pages, long more) {
    pages->before = read_count(pages->path);
    if (pages->before == 0)
        write_count(pages->path, more);
    long got = read_count(pages->path);
    if (pages->before == 0 && got == more)
        return true;
    printf("skipped: %s is %ld after asking for %ld on top of %ld\n", pages->path, got, more, pages->before);
    return false;
}

static void give_host_pages(const struct host_pages *pages) {
    if (pages->before == 0)
        write_count(pages->path, 0);
}

/* Without huge pages on the host the option changes nothing: the same accounting over ordinary memory. */
static void test_none_there(void) {
    if (read_count(small.path) != 0 || read_count(giant.path) > 0) {
        printf("skipped: the host has huge pages before the test\n");
        return;
    }
    start("hugetlb", "1", NULL);
    OK(aclrtSetDevice(0));
    void *at = range(GIB);
    aclrtPhysicalMemProp prop = property(ACL_HBM_MEM_HUGE1G, ACL_MEM_LOCATION_TYPE_DEVICE, 0);
    aclrtDrvMemHandle handle = NULL;
    OK(aclrtMallocPhysical(&handle, GIB, &prop, 0));
    OK(aclrtMapMem(at, GIB, 0, handle, 0));
    OK(poke(plus(at, GIB - 1), 3));
    CHECK_EQ(live_now().devices[0].pages_1g_used, 1);
    CHECK_EQ(live_now().devices[0].committed_bytes, 4096);
    OK(aclrtResetDevice(0));
    OK(aclrtReleaseMemAddress(at));
    check_nothing_alive();
}

static void test_option(void) {
    char info[4000];
    start(NULL);
    CHECK_EQ(hostacl_configure("hugetlb", "2"), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(hostacl_configure("hugetlb", ""), ACL_ERROR_INVALID_PARAM);
    OK(hostacl_configure("hugetlb", "1"));
    OK(aclrtSetDevice(0));
    hostacl_info(info, sizeof(info));
    CHECK(strstr(info, "device 0, pages of 2 MiB: ") && strstr(info, "device 0, pages of 1 GiB: "));
    OK(aclrtResetDevice(0));
}

/* Ten pages: taken from the host when memory is taken, refused there and not at a later access, given back. */
static void test_small(void) {
    enum { PAGES = 10 };
    aclrtDrvMemHandle handles[PAGES], more = UNTOUCHED;
    aclrtPhysicalMemProp prop = property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, 0);
    void *block = NULL;
    start("hugetlb", "1", "pages_2m", "64M", "pages_4k", "4M", "pages_1g", "0", NULL);
    OK(aclrtSetDevice(0));
    CHECK_EQ(live_now().devices[0].committed_bytes, 0);
    void *at = range(PAGES * PAGE);
    for (uint64_t i = 0; i < PAGES; i++) {
        handles[i] = physical(0, PAGE);
        OK(aclrtMapMem(plus(at, i * PAGE), PAGE, 0, handles[i], 0));
        CHECK_EQ(live_now().devices[0].committed_bytes, (i + 1) * PAGE);
    }
    CHECK_EQ(aclrtMallocPhysical(&more, PAGE, &prop, 0), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK(strstr(aclGetRecentErrMsg(), "huge pages"));
    CHECK_EQ(aclrtMalloc(&block, PAGE, ACL_MEM_MALLOC_HUGE_ONLY), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK_EQ(live_now().devices[0].pages_2m_used, PAGES);
    static uint8_t in[PAGES * PAGE], out[PAGES * PAGE];
    for (size_t i = 0; i < sizeof(in); i++)
        in[i] = (uint8_t)(i * 13 + i / 5000);
    CHECK_EQ(peek(plus(at, 12345)), 0);
    OK(aclrtMemcpy(at, sizeof(in), in, sizeof(in), ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtMemcpy(out, sizeof(out), at, sizeof(out), ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(!memcmp(in, out, sizeof(in)));
    for (uint64_t i = 0; i < PAGES; i++)
        OK(aclrtUnmapMem(plus(at, i * PAGE)));
    for (uint64_t i = 0; i < PAGES; i++)
        OK(aclrtFreePhysical(handles[i]));
    CHECK_EQ(live_now().devices[0].committed_bytes, 0);
    OK(aclrtMalloc(&block, 5 * PAGE - 32, ACL_MEM_MALLOC_HUGE_ONLY));
    CHECK_EQ(peek(plus(block, 4 * PAGE)), 0);
    OK(aclrtMemset(block, 5 * PAGE - 32, 1, 5 * PAGE - 32));
    OK(aclrtFree(block));
    OK(aclrtMalloc(&block, 6 * PAGE - 32, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_EQ(peek(plus(block, 4 * PAGE)), 0);
    OK(aclrtFree(block));
    OK(aclrtReleaseMemAddress(at));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

/* A short host lets HUGE_FIRST fall back, and mode unified maps huge pages at device addresses. */
static void test_small_unified(void) {
    void *block = NULL;
    start("hugetlb", "1", "pages_2m", "64M", "pages_4k", "64M", "pages_1g", "0", "mode", "unified", NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMallocAlign32(&block, 12 * PAGE, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_EQ(live_now().devices[0].pages_2m_used, 0);
    CHECK_EQ(live_now().devices[0].pages_4k_used, 12 * PAGE / 4096);
    OK(aclrtFree(block));
    OK(aclrtMallocAlign32(&block, 2 * PAGE, ACL_MEM_MALLOC_HUGE_ONLY));
    ((volatile uint8_t *)block)[PAGE + 1] = 99;
    CHECK_EQ(peek(plus(block, PAGE + 1)), 99);
    OK(aclrtFree(block));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

/* Another process maps the huge pages themselves; they stay taken until it lets go. */
static void test_shared(void) {
    uint64_t token = 0;
    start("hugetlb", "1", "pages_2m", "64M", "pages_4k", "4M", "pages_1g", "0", NULL);
    OK(aclrtSetDevice(0));
    void *at = range(3 * PAGE);
    aclrtDrvMemHandle handle = physical(0, 3 * PAGE);
    OK(aclrtMapMem(at, 3 * PAGE, 0, handle, 0));
    OK(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE, 1, &token));
    OK(poke(plus(at, 2 * PAGE + 5), 61));
    struct other other = start_other();
    CHECK_EQ(ask(&other, "device 0"), 0);
    CHECK_EQ(ask(&other, "import %llu 0", (unsigned long long)token), 0);
    CHECK_EQ(ask(&other, "map %llu", (unsigned long long)(3 * PAGE)), 0);
    CHECK_EQ(ask(&other, "peek %llu", (unsigned long long)(2 * PAGE + 5)), 61);
    CHECK_EQ(ask(&other, "poke 6 62"), 0);
    CHECK_EQ(peek(plus(at, 6)), 62);
    OK(aclrtUnmapMem(at));
    OK(aclrtFreePhysical(handle));
    CHECK_EQ(live_now().devices[0].committed_bytes, 3 * PAGE);
    end_other(&other, SIGKILL);
    CHECK_EQ(live_now().devices[0].committed_bytes, 0);
    OK(aclrtReleaseMemAddress(at));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

static void test_giant(void) {
    aclrtPhysicalMemProp prop = property(ACL_HBM_MEM_HUGE1G, ACL_MEM_LOCATION_TYPE_DEVICE, 0);
    aclrtDrvMemHandle handle = NULL, second = UNTOUCHED;
    start("hugetlb", "1", "pages_1g", "2", NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMallocPhysical(&handle, GIB, &prop, 0));
    CHECK_EQ(live_now().devices[0].committed_bytes, GIB);
    CHECK_EQ(aclrtMallocPhysical(&second, GIB, &prop, 0), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK(strstr(aclGetRecentErrMsg(), "huge pages"));
    CHECK(second == UNTOUCHED);
    void *at = range(2 * GIB);
    OK(aclrtMapMem(at, GIB, 0, handle, 0));
    OK(aclrtMapMem(plus(at, GIB), GIB, 0, handle, 0));
    OK(poke(plus(at, GIB / 2 + 1), 42));
    CHECK_EQ(peek(plus(at, GIB + GIB / 2 + 1)), 42);
    OK(aclrtUnmapMem(at));
    OK(aclrtUnmapMem(plus(at, GIB)));
    OK(aclrtFreePhysical(handle));
    CHECK_EQ(live_now().devices[0].committed_bytes, 0);
    OK(aclrtMallocPhysical(&handle, GIB, &prop, 0));
    OK(aclrtMapMem(at, GIB, 0, handle, 0));
    CHECK_EQ(peek(plus(at, GIB / 2 + 1)), 0);
    OK(aclrtResetDevice(0));
    OK(aclrtReleaseMemAddress(at));
    check_nothing_alive();
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1)
        return obey();
    int all = open("/sys/kernel/mm/hugepages", O_RDONLY | O_CLOEXEC); /* the pages are one for all tests that run */
    if (all >= 0)
        flock(all, LOCK_EX);
    test_none_there();
    test_option();
    if (reserve_host_pages(&small, 10)) {
        test_small();
        test_small_unified();
        test_shared();
    }
    give_host_pages(&small);
    if (reserve_host_pages(&giant, 1))
        test_giant();
    give_host_pages(&giant);
    start(NULL);
    check_nothing_alive();
    return check_done();
}
