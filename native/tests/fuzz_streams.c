/* Random use of streams by threads that share everything: fuzz_streams COUNT SEED PROFILE [THREADS].
 *
 * Streams, events, notifies and memory lie in slots that every thread uses, replaces, destroys and forgets to look
 * after; streams are held, aborted, stopped by failures, contexts destroyed and devices reset meanwhile. No thread
 * knows what another does, so any code of a list may come back; what must hold is that nothing crashes, hangs or stays
 * behind. Beside that each thread has a stream of its own that nobody else touches. It writes rising numbers there, in
 * copies of four kinds; after a synchronise without error the last number must be in device memory.
 */
#include "streams.h"

enum {
    SLOTS = 8,
    OWN_BYTES = 4096,
    SHARED_BYTES = 20000,
    WORDS_AT = 16000,
    RECORDS_AT = 16384,
    FREE_AT = 17408,
    DEVICES = 2,
    MAX_THREADS = 16
};

/* What a thread has for itself. */
struct own {
    aclrtContext context; /* so that nobody else synchronises the stream and takes its failure away */
    aclrtStream stream;
    void *word;       /* device memory whose first four bytes are the number */
    uint32_t *pinned; /* sources of copies, one number after the other */
    uint32_t number;  /* the last one that was given to the stream */
};

static _Atomic(void *) streams[SLOTS], events[SLOTS], notifies[SLOTS], blocks[SLOTS], pinned[SLOTS], contexts[SLOTS];
static _Thread_local struct own own;
static _Thread_local uint64_t state;
static uint64_t call_count;
static uint64_t first_seed;
static bool alone; /* there is one thread */
static bool
    resets; /* devices are reset: not where a thread would then free the new memory of another at its old address */

static uint64_t random_below(uint64_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) % below;
}

static void *any(_Atomic(void *) *slots) {
    return atomic_load(&slots[random_below(SLOTS)]);
}

/* A code that a call may return when others are at work; returns it. */
static int allow(int code, const char *text, int line) {
    static const int codes[] = {0,      100000, 107000, 107001, 107002, 107003, 107006, 107011,
                                107012, 107015, 107017, 107019, 107022, 107023, 207000, 207001,
                                207008, 507000, 507007, 507012, 507015, 507046, 507047, 507899};
    size_t i = 0;
    while (i < sizeof(codes) / sizeof(codes[0]) && codes[i] != code)
        i++;
    check_true(i < sizeof(codes) / sizeof(codes[0]), text, __FILE__, line);
    if (i == sizeof(codes) / sizeof(codes[0]))
        printf("    it returned %d\n", code);
    return code;
}

#define ALLOW(call) allow(call, #call, __LINE__)

static int32_t some_ms(void) {
    return 1 + (int32_t)random_below(4);
}

/* ---- The stream of the thread ---- */

static void forget_own(void) {
    if (own.context)
        ALLOW(aclrtDestroyContext(own.context));
    if (own.word)
        ALLOW(aclrtFree(own.word));
    if (own.pinned)
        OK(aclrtFreeHost(own.pinned));
    own = (struct own){0};
}

static bool make_own(void) {
    void *host = NULL;
    if (own.context) {
        if (!ALLOW(aclrtSetCurrentContext(own.context)))
            return true;
        forget_own();
    }
    if (ALLOW(aclrtCreateContext(&own.context, (int32_t)random_below(DEVICES))))
        return false;
    if (!ALLOW(aclrtCreateStream(&own.stream)) &&
        !ALLOW(aclrtMalloc(&own.word, OWN_BYTES, ACL_MEM_MALLOC_HUGE_FIRST)) &&
        !ALLOW(aclrtMallocHost(&host, OWN_BYTES)))
        own.pinned = host;
    if (!own.pinned)
        forget_own();
    return own.pinned;
}

/* Gives the next number to the stream in one of several ways; returns a code. */
static int write_number(void) {
    uint32_t heap = own.number + 1, *source = &own.pinned[heap % (OWN_BYTES / 4)];
    switch (random_below(5)) {
    case 0:
        return ALLOW(aclrtMemsetD32Async(own.word, 4, heap, 1, own.stream));
    case 1:
        return ALLOW(aclrtMemcpyAsync(own.word, 4, &heap, 4, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, own.stream));
    case 2:
        return ALLOW(aclrtMemcpyAsync(own.word, 4, &heap, 4, ACL_MEMCPY_HOST_TO_DEVICE, own.stream));
    case 3:
        return ALLOW(aclrtValueWrite(own.word, heap, 0, own.stream));
    default:
        *source = heap;
        return ALLOW(aclrtMemcpyAsync(own.word, 4, source, 4, ACL_MEMCPY_HOST_TO_DEVICE, own.stream));
    }
}

/* Numbers to the thread's own stream, then a look. Whatever fails is made anew. */
static void do_own_work(void) {
    uint32_t seen = 0;
    if (!make_own())
        return;
    int code = ACL_SUCCESS;
    for (uint64_t i = random_below(10) + 1; i > 0 && !code; i--) {
        code = write_number();
        own.number += !code;
    }
    if (!code)
        code = ALLOW(aclrtSynchronizeStreamWithTimeout(own.stream, 20000));
    if (!code)
        code = ALLOW(aclrtMemcpy(&seen, 4, own.word, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    if (code)
        forget_own();
    else
        CHECK_EQ(seen, own.number);
}

/* ---- What is shared ---- */

static void do_set_device(void) {
    ALLOW(aclrtSetDevice((int32_t)random_below(DEVICES)));
}

static void do_contexts(void) {
    void *made = NULL;
    switch (random_below(4)) {
    case 0:
        if (!ALLOW(aclrtCreateContext(&made, (int32_t)random_below(DEVICES))))
            atomic_store(&contexts[random_below(SLOTS)], made);
        break;
    case 1:
        ALLOW(aclrtDestroyContext(any(contexts)));
        break;
    default:
        ALLOW(aclrtSetCurrentContext(any(contexts)));
    }
}

/* With several threads another one may be about to name the block to the runtime, which would then take the address for
 * memory of the program; so it is left to the end. */
static void free_pinned(void *block) {
    if (alone)
        ALLOW(aclrtFreeHost(block));
}

static void do_make(void) {
    void *made = NULL;
    uint64_t slot = random_below(SLOTS);
    switch (random_below(5)) {
    case 0:
        if (!ALLOW(aclrtCreateStreamWithConfig(&made, (uint32_t)random_below(9), 0)))
            atomic_store(&streams[slot], made);
        break;
    case 1:
        if (!ALLOW(random_below(2) ? aclrtCreateEvent(&made)
                                   : aclrtCreateEventExWithFlag(&made, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE)))
            atomic_store(&events[slot], made);
        break;
    case 2:
        if (!ALLOW(aclrtCreateNotify(&made, 0)))
            atomic_store(&notifies[slot], made);
        break;
    case 3:
        if (!ALLOW(aclrtMalloc(&made, SHARED_BYTES, ACL_MEM_MALLOC_HUGE_FIRST)))
            atomic_store(&blocks[slot], made);
        break;
    default:
        if (!ALLOW(aclrtMallocHost(&made, SHARED_BYTES)))
            free_pinned(atomic_exchange(&pinned[slot], made));
    }
}

static void do_destroy(void) {
    switch (random_below(5)) {
    case 0:
        ALLOW(aclrtDestroyStreamForce(any(streams)));
        break;
    case 1:
        ALLOW(aclrtDestroyEvent(any(events)));
        break;
    case 2:
        ALLOW(aclrtDestroyNotify(any(notifies)));
        break;
    case 3:
        ALLOW(aclrtFree(any(blocks)));
        break;
    default:
        free_pinned(atomic_exchange(&pinned[random_below(SLOTS)], NULL));
    }
}

/* One random number, mostly by parameters that make sense. */
static void draw_number(void *to, aclrtStream stream) {
    aclrtRandomParaInfo one = {.valueOrAddr = {1}, .size = (uint8_t)(random_below(10) ? 4 : 9)};
    aclrtRandomNumTaskInfo info = {.dataType = random_below(2) ? ACL_FLOAT : ACL_INT32,
                                   .randomNumFuncParaInfo.funcType = (aclrtRandomNumFuncType)random_below(5),
                                   .randomResultAddr = to,
                                   .randomSeed = one,
                                   .randomNum = one};
    info.randomNumFuncParaInfo.paramInfo.uniformDisInfo = (aclrtUniformDisInfo){.min = one, .max = one};
    info.randomNum.isAddr = random_below(10) == 0;
    ALLOW(aclrtRandomNumAsync(&info, stream, NULL));
}

/* Tasks that move a word in shared memory. Its place follows from the number of the stream, so no two streams move the
 * same bytes at a time; freeing the memory meanwhile is another matter. */
static void do_move(void) {
    aclrtStream stream = any(streams);
    int32_t id = 0, device = 0;
    if (!stream || ALLOW(aclrtStreamGetId(stream, &id)) || ALLOW(aclrtGetDevice(&device)))
        return;
    uint64_t at = (uint64_t)(id * DEVICES + device) * sizeof(uint32_t);
    void *block = any(blocks), *other = any(blocks), *host = any(pinned);
    if (!block || !other || !host)
        return;
    switch (random_below(7)) {
    case 0:
        ALLOW(aclrtMemsetAsync(plus(block, at), 4, 1, 4, stream));
        break;
    case 1:
        ALLOW(aclrtMemcpyAsync(plus(block, at), 4, plus(host, at), 4, ACL_MEMCPY_HOST_TO_DEVICE, stream));
        break;
    case 2:
        ALLOW(aclrtMemcpyAsync(plus(host, at), 4, plus(block, at), 4, ACL_MEMCPY_DEVICE_TO_HOST, stream));
        break;
    case 3:
        ALLOW(aclrtMemcpyAsync(plus(other, at), 4, plus(block, at), 4, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
        break;
    case 4:
        ALLOW(aclrtReduceAsync(plus(other, at), plus(block, at), 4, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT32, stream,
                               NULL));
        break;
    case 5:
        draw_number(plus(block, at), stream);
        break;
    default:
        ALLOW(aclrtCmoAsync(plus(block, at), 4, (aclrtCmoType)random_below(5), stream));
    }
}

/* Tasks that read from shared memory what they are to do; mostly there is nothing good. */
static void do_indirect(void) {
    aclrtStream stream = any(streams);
    void *block = any(blocks), *other = any(blocks);
    if (!block || !other)
        return;
    void *record = plus(block, RECORDS_AT + 64 * random_below(8));
    switch (random_below(5)) {
    case 0:
        ALLOW(aclrtSetMemcpyDesc(record, ACL_MEMCPY_DEVICE_TO_DEVICE, plus(other, FREE_AT), plus(block, FREE_AT), 0,
                                 NULL));
        break;
    case 1:
        ALLOW(aclrtCmoSetDesc(record, other, 1 + random_below(2 * SHARED_BYTES)));
        break;
    case 2:
        ALLOW(aclrtMemcpyAsyncWithDesc(record, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
        break;
    case 3:
        ALLOW(aclrtCmoAsyncWithDesc(record, ACL_RT_CMO_TYPE_PREFETCH, stream, NULL));
        break;
    default:
        ALLOW(aclrtMemcpyAsyncWithOffset((void **)plus(block, WORDS_AT), 8, random_below(9),
                                         (const void **)plus(other, WORDS_AT), random_below(9), 0,
                                         ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
    }
}

static void do_mark(void) {
    aclrtStream stream = random_below(6) ? any(streams) : NULL;
    switch (random_below(8)) {
    case 0:
    case 1:
        ALLOW(aclrtRecordEvent(any(events), stream));
        break;
    case 2:
        ALLOW(aclrtStreamWaitEvent(stream, any(events)));
        break;
    case 3:
        ALLOW(aclrtResetEvent(any(events), stream));
        break;
    case 4:
        ALLOW(aclrtRecordNotify(any(notifies), stream));
        break;
    case 5:
        ALLOW(aclrtWaitAndResetNotify(any(notifies), stream, 0));
        break;
    case 6:
        ALLOW(aclrtValueWrite(plus(any(blocks), WORDS_AT), random_below(4), 0, stream));
        break;
    default:
        ALLOW(aclrtValueWait(plus(any(blocks), WORDS_AT), random_below(4), (uint32_t)random_below(4), stream));
    }
}

static void do_ask(void) {
    aclrtStreamStatus status;
    aclrtEventRecordedStatus recorded;
    aclrtEventWaitStatus waits;
    int32_t id;
    float ms;
    uint64_t time;
    uint32_t limit;
    aclrtStreamAttrValue value = {.streamPriority = (uint32_t)random_below(9)};
    aclrtUtilizationInfo use;
    ALLOW(aclrtStreamQuery(any(streams), &status));
    ALLOW(aclrtStreamGetId(any(streams), &id));
    ALLOW(aclrtQueryEventStatus(any(events), &recorded));
    ALLOW(aclrtQueryEventWaitStatus(any(events), &waits));
    ALLOW(aclrtEventElapsedTime(&ms, any(events), any(events)));
    ALLOW(aclrtEventGetTimestamp(any(events), &time));
    ALLOW(aclrtSetStreamResLimit(any(streams), ACL_RT_DEV_RES_CUBE_CORE, (uint32_t)random_below(26)));
    ALLOW(aclrtUseStreamResInCurrentThread(any(streams)));
    ALLOW(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_CUBE_CORE, &limit));
    ALLOW(aclrtSetStreamOverflowSwitch(any(streams), (uint32_t)random_below(3)));
    ALLOW(aclrtSetStreamAttribute(any(streams), (aclrtStreamAttr)(2 + random_below(5)), &value));
    ALLOW(aclrtGetDeviceUtilizationRate((int32_t)random_below(DEVICES), &use));
    aclGetRecentErrMsg();
}

static void do_wait(void) {
    switch (random_below(5)) {
    case 0:
        ALLOW(aclrtSynchronizeStreamWithTimeout(any(streams), some_ms()));
        break;
    case 1:
        ALLOW(aclrtSynchronizeDeviceWithTimeout(some_ms()));
        break;
    case 2:
        ALLOW(aclrtSynchronizeEventWithTimeout(any(events), some_ms()));
        break;
    case 3:
        ALLOW(aclrtProcessHostFunc(some_ms()));
        break;
    default:
        ALLOW(aclrtProcessReport(some_ms()));
    }
}

static void called(void *argument) {
    (void)argument;
    sched_yield();
}

static void calls_back(void *argument) {
    void *made = NULL;
    if (ALLOW(aclrtSetDevice((int32_t)random_below(DEVICES))) || ALLOW(aclrtCreateEvent(&made)))
        return;
    ALLOW(aclrtRecordEvent(made, argument));
    ALLOW(aclrtDestroyEvent(made));
}

static void do_call(void) {
    aclrtStream stream = any(streams);
    switch (random_below(7)) {
    case 0:
        ALLOW(aclrtSubscribeReport((uint64_t)pthread_self(), stream));
        break;
    case 1:
        ALLOW(aclrtUnSubscribeReport((uint64_t)pthread_self(), stream));
        break;
    case 2:
        ALLOW(aclrtLaunchCallback(called, NULL, random_below(2) ? ACL_CALLBACK_BLOCK : ACL_CALLBACK_NO_BLOCK, stream));
        break;
    case 3:
        ALLOW(aclrtLaunchHostFunc(stream, called, NULL));
        break;
    case 4:
        ALLOW(aclrtSubscribeHostFunc((uint64_t)pthread_self(), stream));
        break;
    case 5:
        ALLOW(aclrtUnSubscribeHostFunc((uint64_t)pthread_self(), stream));
        break;
    default:
        ALLOW(aclrtLaunchHostFunc(stream, calls_back, any(streams)));
    }
}

static void do_disturb(void) {
    switch (random_below(11)) {
    case 0:
        OK(hostacl_hold((int32_t)random_below(DEVICES)));
        sched_yield();
        OK(hostacl_release(-1));
        break;
    case 1:
        ALLOW(aclrtStreamAbort(any(streams)));
        break;
    case 7:
        ALLOW(aclrtStreamStop(any(streams)));
        break;
    case 8:
        if (alone) /* else the tasks of another thread's own stream go */
            ALLOW(aclrtDeviceTaskAbort((int32_t)random_below(DEVICES), 20000));
        break;
    case 2:
        OK(hostacl_fail_task(1 + random_below(20), 507015));
        break;
    case 3:
        ALLOW(aclrtSetStreamFailureMode(any(streams), random_below(2)));
        break;
    case 4:
        OK(hostacl_delay_task(NULL, random_below(3) ? 0 : 200));
        break;
    case 5:
        if (resets && random_below(4) == 0)
            ALLOW(aclrtResetDevice((int32_t)random_below(DEVICES)));
        break;
    case 6:
        if (resets && random_below(8) == 0)
            ALLOW(aclrtResetDeviceForce((int32_t)random_below(DEVICES)));
        break;
    default:
        live_now();
        hostacl_live_report(NULL, 0);
    }
}

static void (*const actions[])(void) = {
    do_own_work, do_own_work, do_set_device, do_contexts, do_make,    do_make, do_make,
    do_destroy,  do_move,     do_indirect,   do_mark,     do_mark,    do_mark, do_mark,
    do_ask,      do_wait,     do_wait,       do_call,     do_disturb,
};

static void *make_calls(void *number) {
    state = (first_seed + (uint64_t)(uintptr_t)number) * 0x9e3779b97f4a7c15u + 1;
    for (uint64_t i = 0; i < call_count && check_failures == 0; i++) {
        actions[random_below(sizeof(actions) / sizeof(actions[0]))]();
        if (check_failures)
            printf("thread %d, after %llu calls\n", (int)(uintptr_t)number, (unsigned long long)i);
    }
    forget_own();
    return NULL;
}

int main(int argc, char **argv) {
    const char *profile = argc > 3 ? argv[3] : "strict";
    int threads = argc > 4 ? atoi(argv[4]) : 1;
    pthread_t workers[MAX_THREADS];
    call_count = argc > 1 ? strtoull(argv[1], NULL, 10) : 4000;
    first_seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    alone = threads == 1;
    resets = alone || !strcmp(profile, "strict");
    if (threads < 1 || threads > MAX_THREADS)
        return 2;
    printf("fuzz_streams %llu %llu %s %d\n", (unsigned long long)call_count, (unsigned long long)first_seed, profile,
           threads);
    start("profile", profile, "pages_4k", "64M", "pages_2m", "64M", NULL);
    for (int i = 0; i < threads; i++)
        CHECK(!pthread_create(&workers[i], NULL, make_calls, (void *)(intptr_t)i));
    for (int i = 0; i < threads; i++)
        pthread_join(workers[i], NULL);
    OK(hostacl_reset());
    check_nothing_alive();
    return check_done();
}
