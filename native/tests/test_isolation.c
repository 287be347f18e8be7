/* Device memory is not host memory: touching a device address faults, live or freed. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static bool read_faults(const void *ptr) {
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        volatile char byte = *(const volatile char *)ptr;
        (void)byte;
        _exit(0);
    }
    return waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

struct place {
    void *block;     /* start of the block */
    uint64_t length; /* bytes of its pages */
};

static void check_faults(const struct place *places, int count) {
    for (int i = 0; i < count; i++) {
        CHECK(read_faults(places[i].block));
        CHECK(read_faults(plus(places[i].block, places[i].length / 2)));
        CHECK(read_faults(plus(places[i].block, places[i].length - 1)));
    }
}

/* One GiB of host allocations, small and large; none of them may lie among the device addresses. */
static void allocate_host_memory(const struct place *near) {
    for (int i = 0; i < 64; i++) {
        char *large = mmap(NULL, 16 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char *small = malloc(5000);
        large[0] = small[0] = 1;
        CHECK((uintptr_t)large - (uintptr_t)near->block > 8 * GIB);
        CHECK((uintptr_t)small - (uintptr_t)near->block > 8 * GIB);
        free(small);
    }
}

int main(void) {
    struct place places[3] = {{NULL, 4096}, {NULL, 4 * MIB}, {NULL, GIB}};
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMallocAlign32(&places[0].block, 4096, ACL_MEM_MALLOC_NORMAL_ONLY));
    OK(aclrtMallocAlign32(&places[1].block, 4 * MIB, ACL_MEM_MALLOC_HUGE_ONLY));
    OK(aclrtMallocAlign32(&places[2].block, GIB, ACL_MEM_MALLOC_HUGE1G_ONLY));
    check_faults(places, 3);
    for (int i = 0; i < 3; i++)
        OK(aclrtMemset(places[i].block, places[i].length, 1, 4096));
    check_faults(places, 3);
    allocate_host_memory(&places[0]);
    check_faults(places, 3);
    for (int i = 0; i < 3; i++)
        OK(aclrtFree(places[i].block));
    check_faults(places, 3);
    CHECK(!read_faults(places));
    return check_done();
}
