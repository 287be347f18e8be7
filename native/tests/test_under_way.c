/* A copy under way keeps what it uses: frees, resets and the giving up of kept memory wait or pass over it.
 *
 * The copy is stopped in the middle by a source page without access rights; the fault handler waits until the test lets
 * it go. What must wait is then seen not to have ended. */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

enum { SIZE = 4 * 1024 * 1024, PAGE = 4096 };

static char *barrier;            /* page in the middle of the source */
static atomic_bool copy_stopped; /* the copy reached it */
static atomic_bool let_go;       /* the handler may return */
static atomic_bool ended;        /* the call that must wait has returned */

struct job {
    void *dst; /* target of the copy */
    void *src; /* its source, with the barrier inside */
    int code;  /* what the copy or the other call returned */
    void *ptr; /* argument of the other call */
};

static void on_fault(int number) {
    (void)number;
    atomic_store(&copy_stopped, true);
    while (!atomic_load(&let_go))
        usleep(100);
    mprotect(barrier, PAGE, PROT_READ | PROT_WRITE);
}

static void *copy(void *argument) {
    struct job *job = argument;
    OK(aclrtSetDevice(1));
    job->code = aclrtMemcpy(job->dst, SIZE, job->src, SIZE, ACL_MEMCPY_DEFAULT);
    return NULL;
}

static void *do_free(void *argument) {
    struct job *job = argument;
    job->code = aclrtFree(job->ptr);
    atomic_store(&ended, true);
    return NULL;
}

static void *do_free_host(void *argument) {
    struct job *job = argument;
    job->code = aclrtFreeHost(job->ptr);
    atomic_store(&ended, true);
    return NULL;
}

static void *do_reset(void *argument) {
    struct job *job = argument;
    job->code = aclrtResetDeviceForce(0);
    atomic_store(&ended, true);
    return NULL;
}

static void *do_reset_all(void *argument) {
    struct job *job = argument;
    job->code = hostacl_reset();
    atomic_store(&ended, true);
    return NULL;
}

/* Starts the copy and returns when it stands at the barrier. */
static pthread_t start_copy(struct job *job) {
    pthread_t thread;
    barrier = (char *)job->src + SIZE / 2;
    memset(job->src, 7, SIZE);
    mprotect(barrier, PAGE, PROT_NONE);
    atomic_store(&copy_stopped, false);
    atomic_store(&let_go, false);
    pthread_create(&thread, NULL, copy, job);
    while (!atomic_load(&copy_stopped))
        usleep(100);
    return thread;
}

static void finish_copy(pthread_t thread, struct job *job) {
    atomic_store(&let_go, true);
    pthread_join(thread, NULL);
    OK(job->code);
}

/* Runs the other call during the copy and sees it wait for the end of the copy. */
static void check_waits(void *(*call)(void *), void *dst, void *src, void *ptr) {
    struct job copying = {.dst = dst, .src = src}, waiting = {.ptr = ptr, .code = -1};
    pthread_t copier = start_copy(&copying), waiter;
    atomic_store(&ended, false);
    pthread_create(&waiter, NULL, call, &waiting);
    usleep(30000);
    CHECK(!atomic_load(&ended));
    finish_copy(copier, &copying);
    pthread_join(waiter, NULL);
    OK(waiting.code);
}

static char *map_source(void) {
    return mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* A block on device 0 whose pages were touched, so that the copy moves bytes by itself. */
static void *touched_block(void) {
    void *block = NULL;
    OK(aclrtSetDevice(0));
    OK(aclrtMallocAlign32(&block, SIZE, ACL_MEM_MALLOC_HUGE_ONLY));
    OK(aclrtMemset(block, SIZE, 1, SIZE));
    return block;
}

static void test_free_waits(void) {
    char *source = map_source();
    start(NULL);
    void *block = touched_block();
    check_waits(do_free, block, source, block);
    CHECK_EQ(aclrtFree(block), ACL_ERROR_RT_PARAM_INVALID);
    munmap(source, SIZE);
}

/* While a free waits nobody else finds the block. */
static void test_dying_block_is_unknown(void) {
    char *source = map_source(), byte = 0;
    start(NULL);
    void *block = touched_block();
    struct job copying = {.dst = block, .src = source}, waiting = {.ptr = block};
    aclrtPtrAttributes attributes;
    pthread_t copier = start_copy(&copying), waiter;
    pthread_create(&waiter, NULL, do_free, &waiting);
    while (!aclrtPointerGetAttributes(block, &attributes))
        usleep(100);
    CHECK_EQ(aclrtMemcpy(block, 1, &byte, 1, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtFree(block), ACL_ERROR_RT_PARAM_INVALID);
    finish_copy(copier, &copying);
    pthread_join(waiter, NULL);
    OK(waiting.code);
    munmap(source, SIZE);
}

static void test_other_blocks_are_free_to_go(void) {
    char *source = map_source();
    start(NULL);
    void *block = touched_block(), *other = touched_block();
    struct job copying = {.dst = block, .src = source};
    pthread_t copier = start_copy(&copying);
    OK(aclrtFree(other));
    other = touched_block();
    OK(aclrtFree(other));
    finish_copy(copier, &copying);
    OK(aclrtFree(block));
    munmap(source, SIZE);
}

static void test_free_host_waits(void) {
    void *source = NULL;
    start(NULL);
    void *block = touched_block();
    OK(aclrtMallocHost(&source, SIZE));
    check_waits(do_free_host, block, source, source);
    OK(aclrtFree(block));
}

static void test_reset_waits(void *(*reset)(void *)) {
    char *source = map_source();
    start(NULL);
    void *block = touched_block();
    check_waits(reset, block, source, NULL);
    OK(hostacl_reset());
    check_nothing_alive();
    munmap(source, SIZE);
}

/* Memory the driver keeps is not given up while a copy to a freed block runs (profile card). */
static void test_kept_memory_in_use_stays(void) {
    char *source = map_source();
    void *block = NULL, *next = NULL;
    start("profile", "card", "pages_2m", "32M", "pages_4k", "8M", NULL);
    block = touched_block();
    struct job copying = {.dst = block, .src = source};
    OK(aclrtFree(block));
    pthread_t copier = start_copy(&copying);
    CHECK_EQ(aclrtMallocAlign32(&next, 5 * MIB, ACL_MEM_MALLOC_HUGE_ONLY), ACL_ERROR_RT_MEMORY_ALLOCATION);
    finish_copy(copier, &copying);
    OK(aclrtMallocAlign32(&next, 4 * MIB, ACL_MEM_MALLOC_HUGE_ONLY));
    CHECK(next == block);
    munmap(source, SIZE);
}

int main(void) {
    signal(SIGSEGV, on_fault);
    alarm(100);
    test_free_waits();
    test_dying_block_is_unknown();
    test_other_blocks_are_free_to_go();
    test_free_host_waits();
    test_reset_waits(do_reset);
    test_reset_waits(do_reset_all);
    test_kept_memory_in_use_stays();
    return check_done();
}
