/* Random tasks on mapped memory against a model: fuzz_tasks COUNT SEED PROFILE [THREADS].
 *
 * Physical handles are mapped into the slots of one reserved range, some at several places. Sets and copies are queued
 * on four streams; where a handle was last used by another stream an event orders the two, so the model, which does
 * everything at once and in the order of the calls, knows every byte. Mapping, unmapping and freeing go on meanwhile,
 * with good and bad arguments mixed. Each thread has its own device, range and streams. */
#include <pthread.h>

#include "check.h"

enum { HANDLES = 12, SLOTS = 32, STREAMS = 4, CELLS = 32, CELL_BYTES = 64, MAX_THREADS = 16 };

#define PIECE (2 * MIB)

struct physical {
    aclrtDrvMemHandle handle; /* null: free entry */
    bool created;             /* the reference of its making is there */
    int maps;                 /* slots that show it */
    int stream;               /* last stream that used it, -1: none since a synchronise */
    uint8_t byte;             /* its first bytes */
};

struct cell {
    bool pending; /* a task reads or writes it */
    bool reading; /* from the device: must hold byte afterwards */
    int stream;   /* of the task */
    uint8_t byte; /* what it holds or will hold */
};

static _Thread_local struct physical handles[HANDLES];
static _Thread_local int slots[SLOTS]; /* entry of handles, -1: nothing mapped */
static _Thread_local struct cell cells[CELLS];
static _Thread_local uint8_t *pinned; /* CELLS times CELL_BYTES */
static _Thread_local char *range;
static _Thread_local aclrtStream streams[STREAMS];
static _Thread_local void *descriptions; /* device memory: one of 64 bytes for each stream */
static _Thread_local aclrtEvent event;
static _Thread_local uint64_t launched; /* host functions queued */
static _Thread_local atomic_ullong called;
static _Thread_local int device;
static _Thread_local uint64_t state;
static bool strict;
static uint64_t call_count;
static uint64_t first_seed;

static uint64_t random_below(uint64_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) % below;
}

static void *slot_addr(int slot) {
    return range + (uint64_t)slot * PIECE;
}

static uint8_t *cell_bytes(int cell) {
    return pinned + cell * CELL_BYTES;
}

/* A random slot with something mapped, or -1. */
static int mapped_slot(void) {
    int slot = (int)random_below(SLOTS);
    return slots[slot] >= 0 ? slot : -1;
}

static struct physical *at_slot(int slot) {
    return &handles[slots[slot]];
}

static int free_cell(void) {
    for (int cell = 0; cell < CELLS; cell++) {
        if (!cells[cell].pending)
            return cell;
    }
    return -1;
}

static bool all_bytes(const uint8_t *bytes, uint8_t wanted) {
    for (int i = 0; i < CELL_BYTES; i++) {
        if (bytes[i] != wanted)
            return false;
    }
    return true;
}

/* The tasks of a stream are done: what they read must be there. */
static void collect(int stream) {
    for (int cell = 0; cell < CELLS; cell++) {
        if (!cells[cell].pending || cells[cell].stream != stream)
            continue;
        CHECK(!cells[cell].reading || all_bytes(cell_bytes(cell), cells[cell].byte));
        cells[cell].pending = false;
    }
    for (int i = 0; i < HANDLES; i++) {
        if (handles[i].stream == stream)
            handles[i].stream = -1;
    }
}

static void synchronize(int stream) {
    switch (random_below(4)) {
    case 0:
        OK(aclrtSynchronizeStreamWithTimeout(streams[stream], 60000));
        break;
    case 1:
        OK(aclrtRecordEvent(event, streams[stream]));
        OK(aclrtSynchronizeEvent(event));
        break;
    case 2:
        OK(aclrtSynchronizeDevice());
        break;
    default:
        OK(aclrtSynchronizeStream(streams[stream]));
    }
    collect(stream);
}

static void settle_stream(int stream) {
    OK(aclrtSynchronizeStream(streams[stream]));
    collect(stream);
}

static void settle(struct physical *physical) {
    if (physical->stream >= 0)
        synchronize(physical->stream);
}

/* The next task of the stream comes after everything that used the handle so far. */
static void order(struct physical *physical, int stream) {
    if (physical->stream >= 0 && physical->stream != stream) {
        OK(aclrtRecordEvent(event, streams[physical->stream]));
        OK(aclrtStreamWaitEvent(streams[stream], event));
    }
    physical->stream = stream;
}

static void do_make(void) {
    struct physical *physical = &handles[random_below(HANDLES)];
    aclrtPhysicalMemProp prop = {.memAttr = ACL_HBM_MEM_HUGE};
    prop.location = (aclrtMemLocation){.id = (uint32_t)device, .type = ACL_MEM_LOCATION_TYPE_DEVICE};
    if (physical->handle)
        return;
    *physical = (struct physical){.created = true, .stream = -1};
    OK(aclrtMallocPhysical(&physical->handle, PIECE, &prop, 0));
}

static void do_map(void) {
    int index = (int)random_below(HANDLES), slot = (int)random_below(SLOTS);
    struct physical *physical = &handles[index];
    if (!physical->created)
        return;
    int code = aclrtMapMem(slot_addr(slot), PIECE, 0, physical->handle, 0);
    CHECK_EQ(code, slots[slot] >= 0 ? ACL_ERROR_RT_DRV_INTERNAL_ERROR : ACL_SUCCESS);
    if (code)
        return;
    slots[slot] = index;
    settle(physical);
    if (physical->maps++ == 0) {
        physical->byte = (uint8_t)random_below(256);
        OK(aclrtMemset(slot_addr(slot), CELL_BYTES, physical->byte, CELL_BYTES));
    }
}

static void do_unmap(void) {
    int slot = (int)random_below(SLOTS);
    if (slots[slot] < 0) {
        CHECK_EQ(aclrtUnmapMem(slot_addr(slot)), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
        return;
    }
    struct physical *physical = at_slot(slot);
    settle(physical);
    OK(aclrtUnmapMem(slot_addr(slot)));
    slots[slot] = -1;
    if (--physical->maps == 0 && !physical->created)
        physical->handle = NULL;
}

static void do_free(void) {
    struct physical *physical = &handles[random_below(HANDLES)];
    if (!physical->handle)
        return;
    CHECK_EQ(aclrtFreePhysical(physical->handle), physical->created ? ACL_SUCCESS : ACL_ERROR_RT_PARAM_INVALID);
    physical->created = false;
    if (physical->maps == 0)
        physical->handle = NULL;
}

static void do_set(void) {
    int slot = mapped_slot(), stream = (int)random_below(STREAMS);
    if (slot < 0)
        return;
    order(at_slot(slot), stream);
    at_slot(slot)->byte = (uint8_t)random_below(256);
    OK(aclrtMemsetAsync(slot_addr(slot), PIECE, at_slot(slot)->byte, CELL_BYTES, streams[stream]));
}

static void do_copy(void) {
    int to = mapped_slot(), from = mapped_slot(), stream = (int)random_below(STREAMS);
    if (to < 0 || from < 0 || slots[to] == slots[from])
        return;
    order(at_slot(to), stream);
    order(at_slot(from), stream);
    at_slot(to)->byte = at_slot(from)->byte;
    OK(aclrtMemcpyAsync(slot_addr(to), PIECE, slot_addr(from), CELL_BYTES, ACL_MEMCPY_DEVICE_TO_DEVICE,
                        streams[stream]));
}

/* A copy whose addresses are words of the host, or stand in a description. */
static void do_indirect_copy(void) {
    int to = mapped_slot(), from = mapped_slot(), stream = (int)random_below(STREAMS);
    if (to < 0 || from < 0 || slots[to] == slots[from])
        return;
    order(at_slot(to), stream);
    order(at_slot(from), stream);
    at_slot(to)->byte = at_slot(from)->byte;
    if (random_below(2)) {
        void *target = slot_addr(to);
        const void *source = slot_addr(from);
        OK(aclrtMemcpyAsyncWithOffset(&target, PIECE, 0, &source, CELL_BYTES, 0, ACL_MEMCPY_DEVICE_TO_DEVICE,
                                      streams[stream]));
        return;
    }
    settle_stream(stream); /* the description may still be in use */
    OK(aclrtSetMemcpyDesc(plus(descriptions, (uint64_t)stream * 64), ACL_MEMCPY_DEVICE_TO_DEVICE, slot_addr(from),
                          slot_addr(to), CELL_BYTES, NULL));
    OK(aclrtMemcpyAsyncWithDesc(plus(descriptions, (uint64_t)stream * 64), ACL_MEMCPY_DEVICE_TO_DEVICE,
                                streams[stream]));
    order(at_slot(to), stream);
    order(at_slot(from), stream);
}

/* Bytes are numbers here: the sum wraps, of two equal ranges the maximum is the same. */
static void do_reduce(void) {
    int to = mapped_slot(), from = mapped_slot(), stream = (int)random_below(STREAMS);
    bool sum = random_below(2);
    if (to < 0 || from < 0 || slots[to] == slots[from])
        return;
    order(at_slot(to), stream);
    order(at_slot(from), stream);
    int8_t a = (int8_t)at_slot(to)->byte, b = (int8_t)at_slot(from)->byte;
    at_slot(to)->byte = (uint8_t)(sum ? a + b : a > b ? a : b);
    OK(aclrtReduceAsync(slot_addr(to), slot_addr(from), CELL_BYTES,
                        sum ? ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM : ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX, ACL_INT8,
                        streams[stream], NULL));
}

static void do_cache(void) {
    int slot = mapped_slot(), stream = (int)random_below(STREAMS);
    if (slot < 0)
        return;
    order(at_slot(slot), stream);
    OK(aclrtCmoAsync(slot_addr(slot), PIECE, (aclrtCmoType)random_below(4), streams[stream]));
    OK(aclrtMemFlush(slot_addr(slot), PIECE));
}

static void do_transfer(void) {
    int slot = mapped_slot(), cell = free_cell(), stream = (int)random_below(STREAMS);
    if (slot < 0 || cell < 0)
        return;
    bool reading = random_below(2);
    order(at_slot(slot), stream);
    if (reading) {
        memset(cell_bytes(cell), ~at_slot(slot)->byte, CELL_BYTES);
        OK(aclrtMemcpyAsync(cell_bytes(cell), CELL_BYTES, slot_addr(slot), CELL_BYTES, ACL_MEMCPY_DEVICE_TO_HOST,
                            streams[stream]));
    } else {
        at_slot(slot)->byte = (uint8_t)random_below(256);
        memset(cell_bytes(cell), at_slot(slot)->byte, CELL_BYTES);
        OK(aclrtMemcpyAsync(slot_addr(slot), PIECE, cell_bytes(cell), CELL_BYTES, ACL_MEMCPY_HOST_TO_DEVICE,
                            streams[stream]));
    }
    cells[cell] = (struct cell){.pending = true, .reading = reading, .stream = stream, .byte = at_slot(slot)->byte};
}

static void count_call(void *counter) {
    atomic_fetch_add((atomic_ullong *)counter, 1);
}

static void do_launch(void) {
    OK(aclrtLaunchHostFunc(streams[random_below(STREAMS)], count_call, &called));
    launched++;
}

static void do_look(void) {
    uint8_t bytes[CELL_BYTES];
    int slot = mapped_slot();
    if (slot < 0)
        return;
    settle(at_slot(slot));
    memset(bytes, ~at_slot(slot)->byte, CELL_BYTES);
    OK(aclrtMemcpy(bytes, CELL_BYTES, slot_addr(slot), CELL_BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(all_bytes(bytes, at_slot(slot)->byte));
}

static void do_synchronize(void) {
    aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
    int stream = (int)random_below(STREAMS);
    synchronize(stream);
    OK(aclrtStreamQuery(streams[stream], &status));
    CHECK_EQ(status, ACL_STREAM_STATUS_COMPLETE);
}

static void do_renew_stream(void) {
    int stream = (int)random_below(STREAMS);
    OK(aclrtDestroyStream(streams[stream]));
    collect(stream);
    CHECK_EQ(aclrtSynchronizeStream(streams[stream]), ACL_ERROR_RT_INVALID_HANDLE);
    OK(aclrtCreateStream(&streams[stream]));
}

static void do_bad_calls(void) {
    int slot = mapped_slot();
    CHECK_EQ(aclrtMapMem(slot_addr(0), PIECE, 0, NULL, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtUnmapMem((char *)slot_addr((int)random_below(SLOTS)) + 4096), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    if (slot >= 0)
        CHECK_EQ(aclrtReleaseMemAddress(range), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
}

static void do_check_pages(void) {
    hostacl_live_t live;
    uint64_t alive = 0;
    OK(hostacl_live(&live));
    for (int i = 0; i < HANDLES; i++)
        alive += handles[i].handle != NULL;
    if (strict)
        CHECK_EQ(live.devices[device].pages_2m_used, alive);
    else
        CHECK(live.devices[device].pages_2m_used >= alive);
}

static void (*const actions[])(void) = {
    do_make,        do_map,          do_map,       do_unmap,       do_free,          do_set,    do_set,
    do_copy,        do_copy,         do_copy,      do_transfer,    do_transfer,      do_launch, do_look,
    do_synchronize, do_renew_stream, do_bad_calls, do_check_pages, do_indirect_copy, do_reduce, do_cache,
};

static void begin(void) {
    memset(handles, 0, sizeof(handles));
    memset(slots, -1, sizeof(slots));
    OK(aclrtSetDevice(device));
    OK(aclrtReserveMemAddress((void **)&range, SLOTS * PIECE, 0, NULL, 1));
    OK(aclrtMallocHost((void **)&pinned, CELLS * CELL_BYTES));
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    OK(aclrtMalloc(&descriptions, STREAMS * 64, ACL_MEM_MALLOC_NORMAL_ONLY));
    for (int i = 0; i < STREAMS; i++)
        OK(aclrtCreateStream(&streams[i]));
}

static void end(void) {
    OK(aclrtSynchronizeDevice());
    for (int i = 0; i < STREAMS; i++) {
        collect(i);
        OK(aclrtDestroyStream(streams[i]));
    }
    CHECK_EQ(atomic_load(&called), launched);
    for (int slot = 0; slot < SLOTS; slot++) {
        if (slots[slot] >= 0)
            OK(aclrtUnmapMem(slot_addr(slot)));
    }
    for (int i = 0; i < HANDLES; i++) {
        if (handles[i].created)
            OK(aclrtFreePhysical(handles[i].handle));
    }
    OK(aclrtReleaseMemAddress(range));
    OK(aclrtFree(descriptions));
    OK(aclrtDestroyEvent(event));
    OK(aclrtFreeHost(pinned));
    OK(aclrtResetDevice(device));
}

static void *make_calls(void *argument) {
    device = (int)(intptr_t)argument;
    state = (first_seed + (uint64_t)device) * 0x9e3779b97f4a7c15u + 1;
    begin();
    for (uint64_t i = 0; i < call_count && check_failures == 0; i++) {
        actions[random_below(sizeof(actions) / sizeof(actions[0]))]();
        if (check_failures)
            printf("thread %d, after %llu calls\n", device, (unsigned long long)i);
    }
    end();
    return NULL;
}

int main(int argc, char **argv) {
    const char *profile = argc > 3 ? argv[3] : "strict";
    int threads = argc > 4 ? atoi(argv[4]) : 1;
    char devices[8];
    pthread_t workers[MAX_THREADS];
    call_count = argc > 1 ? strtoull(argv[1], NULL, 10) : 4000;
    first_seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    if (threads < 1 || threads > MAX_THREADS)
        return 2;
    printf("fuzz_tasks %llu %llu %s %d\n", (unsigned long long)call_count, (unsigned long long)first_seed, profile,
           threads);
    strict = !strcmp(profile, "strict");
    snprintf(devices, sizeof(devices), "%d", threads);
    start("devices", devices, "profile", profile, "pages_4k", "16M", "pages_2m", "128M", NULL);
    for (int i = 0; i < threads; i++)
        CHECK(!pthread_create(&workers[i], NULL, make_calls, (void *)(intptr_t)i));
    for (int i = 0; i < threads; i++)
        pthread_join(workers[i], NULL);
    check_nothing_alive();
    return check_done();
}
