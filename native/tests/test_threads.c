/* Many threads: independent work, blocks freed under a copy, devices reset under a copy, reset of everything. */
#include <pthread.h>
#include <sched.h>

#include "check.h"

enum { THREADS = 8, ROUNDS = 60 };

static void *shared_block;
static atomic_int refused;
static atomic_int done;

static void run_all(void *(*body)(void *)) {
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, body, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* Each thread works on blocks of its own and finds its own bytes in them. */
static void *own_work(void *number) {
    int id = (int)(uintptr_t)number;
    size_t size = 200000 + (size_t)id * 4097;
    uint8_t *in = malloc(size), *out = malloc(size);
    OK(aclrtSetDevice(id % 2));
    for (int round = 0; round < ROUNDS; round++) {
        void *block = NULL, *host = NULL;
        memset(in, id * ROUNDS + round, size);
        OK(aclrtMalloc(&block, size, round % 2 ? ACL_MEM_MALLOC_NORMAL_ONLY : ACL_MEM_MALLOC_HUGE_ONLY));
        OK(aclrtMallocHost(&host, 64));
        OK(aclrtMemcpy(block, size, in, size, ACL_MEMCPY_HOST_TO_DEVICE));
        OK(aclrtMemcpy(out, size, block, size, ACL_MEMCPY_DEVICE_TO_HOST));
        CHECK(!memcmp(in, out, size));
        OK(aclrtFreeHost(host));
        OK(aclrtFree(block));
    }
    OK(aclrtResetDevice(id % 2));
    free(in);
    free(out);
    return NULL;
}

static void test_own_work(const char *profile) {
    start("profile", profile, NULL);
    run_all(own_work);
    check_nothing_alive();
}

/* Copies run in a block that another thread frees, each thread in its own part; each one succeeds or is refused. */
static void *copy_in_shared(void *number) {
    size_t size = 4 * MIB / THREADS;
    uint8_t *bytes = malloc(size);
    void *part = plus(shared_block, (uintptr_t)number * size);
    memset(bytes, 1, size);
    OK(aclrtSetDevice(0));
    if (number) {
        int code = 0;
        while (!code) {
            code = (uintptr_t)number % 2 ? aclrtMemcpy(part, size, bytes, size, ACL_MEMCPY_HOST_TO_DEVICE)
                                         : aclrtMemcpy(bytes, size, part, size, ACL_MEMCPY_DEVICE_TO_HOST);
            atomic_fetch_add(&done, code == 0);
        }
        CHECK_EQ(code, ACL_ERROR_RT_DRV_INTERNAL_ERROR);
        atomic_fetch_add(&refused, 1);
    } else {
        while (atomic_load(&done) < 20)
            sched_yield();
        OK(aclrtFree(shared_block));
        CHECK_EQ(aclrtFree(shared_block), ACL_ERROR_RT_PARAM_INVALID);
    }
    free(bytes);
    return NULL;
}

static void test_free_under_copies(void) {
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&shared_block, 4 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    atomic_store(&refused, 0);
    atomic_store(&done, 0);
    run_all(copy_in_shared);
    CHECK_EQ(refused, THREADS - 1);
    OK(aclrtResetDeviceForce(0));
    check_nothing_alive();
}

/* Devices come and go under every kind of call; nothing crashes, hangs or leaks. A thread may find its block gone and
 * its address in another's hands, so each writes bytes of its own. */
static void *come_and_go(void *number) {
    unsigned seed = (unsigned)(uintptr_t)number + 1;
    char bytes[5000] = {0};
    for (int round = 0; round < ROUNDS * 5; round++) {
        void *block = NULL;
        aclrtContext context = NULL;
        size_t free_now, total;
        seed = seed * 1103515245u + 12345u;
        int32_t device = (int32_t)(seed >> 16 & 1);
        OK(aclrtSetDevice(device));
        if (seed >> 20 & 1 && !aclrtCreateContext(&context, 1 - device))
            aclrtGetMemInfo(ACL_HBM_MEM, &free_now, &total);
        if (!aclrtMalloc(&block, seed % 5000000 + 8 * THREADS, ACL_MEM_MALLOC_HUGE_FIRST)) {
            void *own = plus(block, 8 * (uintptr_t)number);
            aclrtMemcpy(own, 5000, bytes, 1, ACL_MEMCPY_HOST_TO_DEVICE);
            aclrtMemset(own, 1, 1, 1);
            if (seed >> 21 & 1)
                aclrtFree(block);
        }
        if (context && seed >> 22 & 1)
            aclrtDestroyContext(context);
        if (seed >> 23 & 1)
            aclrtResetDeviceForce(device);
        else
            aclrtResetDevice(device);
    }
    return NULL;
}

static void test_devices_come_and_go(const char *profile) {
    start("profile", profile, "pages_4k", "16M", "pages_2m", "128M", NULL);
    run_all(come_and_go);
    OK(hostacl_reset());
    check_nothing_alive();
}

/* One thread resets the whole runtime again and again under the others. */
static void *under_resets(void *number) {
    char bytes[100000] = {0};
    if (!number) {
        while (atomic_load(&done) < THREADS - 1)
            OK(hostacl_reset());
        return NULL;
    }
    for (int round = 0; round < ROUNDS; round++) {
        void *block = NULL, *host = NULL;
        aclrtSetDevice((int32_t)((uintptr_t)number % 2));
        if (!aclrtMallocHost(&host, 100))
            aclrtFreeHost(host);
        if (!aclrtMalloc(&block, sizeof(bytes), ACL_MEM_MALLOC_HUGE_FIRST)) {
            aclrtMemcpy(block, sizeof(bytes), bytes, sizeof(bytes), ACL_MEMCPY_HOST_TO_DEVICE);
            aclrtFree(block);
        }
        aclGetRecentErrMsg();
    }
    atomic_fetch_add(&done, 1);
    return NULL;
}

static void test_resets(void) {
    start(NULL);
    atomic_store(&done, 0);
    run_all(under_resets);
    OK(hostacl_reset());
    check_nothing_alive();
}

int main(void) {
    test_own_work("strict");
    test_own_work("card");
    test_free_under_copies();
    test_devices_come_and_go("strict");
    test_devices_come_and_go("card");
    test_resets();
    return check_done();
}
