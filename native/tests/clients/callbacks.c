/* A thread of the program's own runs the callbacks of a stream: it subscribes and processes reports until it is told to
 * stop. A callback sees what the tasks before it did, and a blocking one holds back what comes after it. Host functions
 * need no such thread. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "acl/acl.h"

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition);                                   \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define ACL(call) CHECK((call) == ACL_SUCCESS)

enum { CALLS = 30 };

static atomic_bool stop;
static atomic_int done;           /* callbacks run so far */
static pthread_t callback_thread; /* where they must run */
static unsigned char *pinned;     /* what the tasks write */
static unsigned char seen[CALLS]; /* what each callback found there */
static int order_is_right = 1;

static void *process_reports(void *context) {
    ACL(aclrtSetCurrentContext(context));
    while (!atomic_load(&stop))
        (void)aclrtProcessReport(20); /* not 0 when nothing came in time */
    return NULL;
}

static void look(void *data) {
    int index = (int)(size_t)data;
    order_is_right &= index == atomic_load(&done);
    order_is_right &= pthread_equal(pthread_self(), callback_thread) != 0;
    seen[index] = pinned[0];
    pinned[0] = 0xee; /* what comes after a blocking callback overwrites this */
    atomic_fetch_add(&done, 1);
}

static void count_up(void *data) {
    atomic_fetch_add((atomic_int *)data, 1);
}

static void with_reports(aclrtStream stream, char *block, aclrtContext context) {
    CHECK(!pthread_create(&callback_thread, NULL, process_reports, context));
    uint64_t id = (uint64_t)callback_thread;
    ACL(aclrtSubscribeReport(id, stream));
    for (int i = 0; i < CALLS; i++) {
        ACL(aclrtMemsetAsync(block, 1, i + 1, 1, stream));
        ACL(aclrtMemcpyAsync(pinned, 1, block, 1, ACL_MEMCPY_DEVICE_TO_HOST, stream));
        ACL(aclrtLaunchCallback(look, (void *)(size_t)i, ACL_CALLBACK_BLOCK, stream));
    }
    ACL(aclrtSynchronizeStream(stream));
    CHECK(atomic_load(&done) == CALLS && order_is_right);
    for (int i = 0; i < CALLS; i++)
        CHECK(seen[i] == i + 1);
    ACL(aclrtUnSubscribeReport(id, stream));
    atomic_store(&stop, 1);
    CHECK(!pthread_join(callback_thread, NULL));
}

int main(void) {
    aclrtStream stream = NULL;
    aclrtContext context = NULL;
    char *block = NULL;
    atomic_int calls = 0;
    ACL(aclInit(NULL));
    ACL(aclrtSetDevice(0));
    ACL(aclrtGetCurrentContext(&context));
    ACL(aclrtCreateStream(&stream));
    ACL(aclrtMalloc((void **)&block, 1, ACL_MEM_MALLOC_HUGE_FIRST));
    ACL(aclrtMallocHost((void **)&pinned, 1));
    with_reports(stream, block, context);
    for (int i = 0; i < CALLS; i++)
        ACL(aclrtLaunchHostFunc(stream, count_up, &calls));
    ACL(aclrtSynchronizeStream(stream));
    CHECK(calls == CALLS);
    printf("%d callbacks on a thread of the program, %d host functions\n", CALLS, CALLS);
    ACL(aclrtFreeHost(pinned));
    ACL(aclrtFree(block));
    ACL(aclrtDestroyStream(stream));
    ACL(aclrtResetDevice(0));
    return aclFinalize();
}
