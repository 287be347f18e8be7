/* Random calls against a model of the accounting: fuzz COUNT SEED PROFILE [THREADS].
 *
 * The model knows which devices are set, which blocks live, what they must cost and which bytes they hold. Every call
 * is made with good and bad arguments mixed; its code and its effect are compared with the model. In the card profile
 * the driver keeps pages, so there only lower bounds of the cost and the codes that do not depend on it are compared.
 * Ranges, handles, mappings and registered memory are in fuzz_virtual_memory.h. With several threads each has its own
 * devices and its own model of them; addresses, handles, pinned memory and locks they share.
 */
#include <pthread.h>

#include "check.h"

enum { DEVICES = 2, MAX_BLOCKS = 60, PROBES = 4, MAX_THREADS = HOSTACL_MAX_DEVICES / DEVICES };

struct model_block {
    void *ptr;            /* null: free slot */
    int device;           /* of the thread's own, from 0; -1: pinned host memory */
    uint64_t size;        /* bytes asked for */
    int cls;              /* 0: 4 KiB, 1: 2 MiB, 2: 1 GiB pages */
    uint64_t pages;       /* pages of that class */
    uint64_t at[PROBES];  /* places whose bytes are known */
    uint8_t byte[PROBES]; /* the bytes there */
};

static const uint64_t page_bytes[3] = {4 * KIB, 2 * MIB, GIB};
static const uint64_t pool_pages[3] = {1024, 24, 2};
static _Thread_local struct model_block blocks[MAX_BLOCKS];
static _Thread_local uint64_t used[DEVICES][3];
static _Thread_local unsigned set_count[DEVICES];
static _Thread_local int current = -1;
static _Thread_local int thread;
static _Thread_local uint64_t state;
static int threads = 1;
static bool strict;
static uint64_t call_count;
static uint64_t first_seed;

/* Number by which the runtime knows a device of the thread; out of range stays out of range. */
static int id_of(int device) {
    return device < 0 ? device : device < DEVICES ? thread * DEVICES + device : threads * DEVICES;
}

static uint64_t random_below(uint64_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) % below;
}

static struct model_block *random_block(void) {
    struct model_block *block = &blocks[random_below(MAX_BLOCKS)];
    return block->ptr ? block : NULL;
}

static struct model_block *free_slot(void) {
    for (int i = 0; i < MAX_BLOCKS; i++) {
        if (!blocks[i].ptr)
            return &blocks[i];
    }
    return NULL;
}

static uint64_t random_size(void) {
    switch (random_below(5)) {
    case 0:
        return 1 + random_below(100);
    case 1:
        return 1 + random_below(20000);
    case 2:
        return MIB - 64 + random_below(128);
    case 3:
        return 1 + random_below(8 * MIB);
    default:
        return 4096 * (1 + random_below(64));
    }
}

static bool fits(int device, int cls, uint64_t pages) {
    return used[device][cls] + pages <= pool_pages[cls];
}

#include "fuzz_virtual_memory.h"

static void forget_device(int device) {
    for (int i = 0; i < MAX_BLOCKS; i++) {
        if (blocks[i].ptr && blocks[i].device == device)
            blocks[i].ptr = NULL;
    }
    forget_device_mappings(device);
    memset(used[device], 0, sizeof(used[device]));
    set_count[device] = 0;
    if (current == device)
        current = -1;
}

/* Class and pages a good request takes in the strict profile; false when memory is short. */
static bool plan(struct model_block *block, unsigned policy, uint64_t rounded) {
    block->cls = policy == 6 || policy == 7 ? 2 : policy == 1 ? 1 : policy == 0 && rounded > MIB ? 1 : 0;
    block->pages = (rounded + page_bytes[block->cls] - 1) / page_bytes[block->cls];
    if (block->cls == 1 && policy == 0 && !fits(block->device, 1, block->pages)) {
        block->cls = 0;
        block->pages = (rounded + 4095) / 4096;
    }
    return fits(block->device, block->cls, block->pages);
}

static void do_set_device(void) {
    int device = (int)random_below(4) - 1;
    bool good = device >= 0 && device < DEVICES;
    CHECK_EQ(aclrtSetDevice(id_of(device)), good ? ACL_SUCCESS : ACL_ERROR_RT_INVALID_DEVICEID);
    if (good) {
        set_count[device]++;
        current = device;
        OK(aclrtDeviceEnablePeerAccess(id_of(1 - device), 0));
    }
}

static void do_reset_device(void) {
    int device = (int)random_below(4) - 1;
    bool force = random_below(8) == 0;
    int code = force ? aclrtResetDeviceForce(id_of(device)) : aclrtResetDevice(id_of(device));
    if (device < 0 || device >= DEVICES) {
        CHECK_EQ(code, ACL_ERROR_RT_INVALID_DEVICEID);
    } else if (!set_count[device]) {
        CHECK_EQ(code, ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
    } else {
        CHECK_EQ(code, ACL_SUCCESS);
        if (force || --set_count[device] == 0)
            forget_device(device);
    }
}

/* At the end: the device may be set or not. */
static void do_reset_force(int device) {
    CHECK_EQ(aclrtResetDeviceForce(id_of(device)),
             set_count[device] ? ACL_SUCCESS : ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
    if (set_count[device])
        forget_device(device);
}

static void learn(struct model_block *block) {
    for (int i = 0; i < PROBES; i++) {
        block->at[i] = i == 0 ? 0 : i == 1 ? block->size - 1 : random_below(block->size);
        block->byte[i] = (uint8_t)random_below(256);
        for (int k = 0; k < i; k++) {
            if (block->at[k] == block->at[i])
                block->byte[i] = block->byte[k];
        }
        OK(aclrtMemcpy(plus(block->ptr, block->at[i]), 1, &block->byte[i], 1, ACL_MEMCPY_HOST_TO_DEVICE));
    }
}

/* In the card profile the class is what the runtime says. */
static void note_class(struct model_block *block) {
    aclrtPtrAttributes attributes;
    OK(aclrtPointerGetAttributes(block->ptr, &attributes));
    CHECK_EQ(attributes.location.id, id_of(block->device));
    if (!strict && block->cls < 2) {
        block->cls = attributes.pageSize == 4096 ? 0 : 1;
        block->pages = (block->size + page_bytes[block->cls] - 1) / page_bytes[block->cls];
    }
    CHECK_EQ(attributes.pageSize, block->cls == 0 ? 4096 : 2 * MIB);
}

static void do_malloc(void) {
    struct model_block *slot = free_slot(), block = {.device = current};
    unsigned policy = (unsigned)random_below(8);
    bool align32 = random_below(2);
    uint64_t padding = align32 || policy >= 6 ? 0 : 32;
    void *out = (void *)1;
    if (!slot)
        return;
    block.size = random_below(30) == 0 ? 0 : random_size();
    uint64_t rounded = (block.size + padding + 31) & ~(uint64_t)31;
    bool for_scheduler = align32 && (policy < 3 || policy > 5) && random_below(2);
    int code = for_scheduler ? aclrtMallocForTaskScheduler(&out, block.size, (aclrtMemMallocPolicy)policy, NULL)
               : align32     ? aclrtMallocAlign32(&out, block.size, (aclrtMemMallocPolicy)policy)
                             : aclrtMalloc(&out, block.size, (aclrtMemMallocPolicy)policy);
    if (!block.size || current < 0) {
        CHECK_EQ(code, block.size ? ACL_ERROR_RT_CONTEXT_NULL : ACL_ERROR_INVALID_PARAM);
        CHECK(out == (void *)1);
        return;
    }
    bool room = plan(&block, policy, rounded);
    if (strict)
        CHECK_EQ(code, room ? ACL_SUCCESS : ACL_ERROR_RT_MEMORY_ALLOCATION);
    else
        CHECK(code == ACL_SUCCESS || code == ACL_ERROR_RT_MEMORY_ALLOCATION);
    if (code) {
        CHECK(out == NULL);
        return;
    }
    block.ptr = out;
    note_class(&block);
    used[current][block.cls] += block.pages;
    learn(&block);
    *slot = block;
}

static void do_malloc_host(void) {
    struct model_block *slot = free_slot(), block = {.device = -1, .size = 1 + random_below(100000)};
    if (!slot)
        return;
    int code = aclrtMallocHost(&block.ptr, block.size);
    if (!CHECK_EQ(code, current < 0 ? ACL_ERROR_RT_CONTEXT_NULL : ACL_SUCCESS) || code)
        return;
    learn(&block);
    *slot = block;
}

static void do_free(void) {
    struct model_block *block = random_block();
    uint64_t reach = threads > 1 ? 63 : 5000; /* behind a block may lie one of another thread */
    uint64_t shift = random_below(3) == 0 ? 1 + random_below(reach) : 0;
    if (!block)
        return;
    bool host = block->device < 0;
    void *ptr = plus(block->ptr, shift);
    int code = host ? aclrtFreeHost(ptr) : aclrtFree(ptr);
    bool another = false;
    for (int i = 0; shift && i < MAX_BLOCKS; i++) {
        if (blocks[i].ptr == ptr && (blocks[i].device < 0) == host) {
            another = true;
            block = &blocks[i];
        }
    }
    CHECK_EQ(code, shift && !another ? ACL_ERROR_RT_PARAM_INVALID : ACL_SUCCESS);
    if (code)
        return;
    if (threads == 1) /* else another thread may have got the address */
        CHECK_EQ(host ? aclrtFreeHost(ptr) : aclrtFree(ptr), ACL_ERROR_RT_PARAM_INVALID);
    if (!host)
        used[block->device][block->cls] -= block->pages;
    block->ptr = NULL;
}

static void do_check_bytes(void) {
    struct model_block *block = random_block();
    if (!block || current < 0)
        return;
    for (int i = 0; i < PROBES; i++) {
        uint8_t byte = (uint8_t)~block->byte[i];
        OK(aclrtMemcpy(&byte, 1, plus(block->ptr, block->at[i]), 1, ACL_MEMCPY_DEVICE_TO_HOST));
        CHECK_EQ(byte, block->byte[i]);
    }
}

static void do_memset(void) {
    struct model_block *block = random_block();
    if (!block)
        return;
    uint64_t from = random_below(block->size), count = 1 + random_below(block->size - from);
    uint8_t byte = (uint8_t)random_below(3);
    int code = aclrtMemset(plus(block->ptr, from), count, byte, count);
    CHECK_EQ(code, current < 0 ? ACL_ERROR_RT_CONTEXT_NULL : ACL_SUCCESS);
    for (int i = 0; !code && i < PROBES; i++) {
        if (block->at[i] >= from && block->at[i] - from < count)
            block->byte[i] = byte;
    }
}

/* Copies between two blocks; what is known about the source becomes known about the target. */
static void do_copy(void) {
    struct model_block *to = random_block(), *from = random_block();
    if (!to || !from || to == from || current < 0)
        return;
    uint64_t count = to->size < from->size ? to->size : from->size;
    OK(aclrtMemcpy(to->ptr, to->size, from->ptr, count, ACL_MEMCPY_DEFAULT));
    for (int i = 0; i < PROBES; i++) {
        if (to->at[i] < count)
            OK(aclrtMemcpy(&to->byte[i], 1, plus(from->ptr, to->at[i]), 1, ACL_MEMCPY_DEFAULT));
    }
}

static void do_bad_ranges(void) {
    static uint8_t bytes[64];
    struct model_block *block = random_block();
    if (!block || block->device < 0 || current < 0)
        return;
    void *past = plus(block->ptr, block->size - 1);
    uint64_t far = block->pages * page_bytes[block->cls] + 4 * GIB;
    if (strict) {
        CHECK_EQ(aclrtMemcpy(past, 2, bytes, 2, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
        CHECK_EQ(aclrtMemset(past, 64, 1, 64), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    }
    CHECK_EQ(aclrtMemset(block->ptr, UINT64_MAX, 1, far), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemcpy(bytes, 8, block->ptr, 9, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_RT_PARAM_INVALID);
}

static void check_pages(uint64_t got, uint64_t wanted) {
    if (strict)
        CHECK_EQ(got, wanted);
    else
        CHECK(got >= wanted);
}

static void check_model(void) {
    hostacl_live_t live;
    uint64_t count = 0, host_count = 0;
    OK(hostacl_live(&live));
    for (int i = 0; i < MAX_BLOCKS; i++) {
        count += blocks[i].ptr && blocks[i].device >= 0;
        host_count += blocks[i].ptr && blocks[i].device < 0;
    }
    if (threads == 1) {
        CHECK_EQ(live.blocks, count);
        CHECK_EQ(live.host_blocks, host_count);
        check_virtual_memory(&live);
    }
    for (int device = 0; device < DEVICES; device++) {
        const hostacl_device_live_t *own = &live.devices[id_of(device)];
        CHECK_EQ(own->set_count, set_count[device]);
        check_pages(own->pages_4k_used, used[device][0]);
        check_pages(own->pages_2m_used, used[device][1]);
        check_pages(own->pages_1g_used, used[device][2]);
    }
    if (current >= 0 && strict)
        CHECK_EQ(free_bytes(ACL_MEM_HUGE), (pool_pages[1] - used[current][1]) * 2 * MIB);
}

static void (*const actions[])(void) = {
    do_malloc,         do_malloc,         do_malloc,         do_free,           do_free,           do_check_bytes,
    do_check_bytes,    do_memset,         do_copy,           do_copy,           do_bad_ranges,     do_set_device,
    check_model,       do_malloc_host,    check_model,       do_virtual_memory, do_virtual_memory, do_virtual_memory,
    do_virtual_memory, do_virtual_memory, do_virtual_memory, do_virtual_memory, do_virtual_memory, do_virtual_memory,
    do_virtual_memory, do_virtual_memory, do_virtual_memory,
};

static void *make_calls(void *argument) {
    thread = (int)(intptr_t)argument;
    state = (first_seed + (uint64_t)thread) * 0x9e3779b97f4a7c15u + 1;
    start_virtual_memory();
    for (uint64_t i = 0; i < call_count && check_failures == 0; i++) {
        actions[random_below(sizeof(actions) / sizeof(actions[0]))]();
        if (random_below(40) == 0)
            do_reset_device();
        if (check_failures)
            printf("thread %d, after %llu calls\n", thread, (unsigned long long)i);
    }
    for (int i = 0; i < MAX_BLOCKS; i++) {
        if (blocks[i].ptr && blocks[i].device < 0)
            OK(aclrtFreeHost(blocks[i].ptr));
    }
    for (int device = 0; device < DEVICES; device++)
        do_reset_force(device);
    end_virtual_memory();
    return NULL;
}

int main(int argc, char **argv) {
    const char *profile = argc > 3 ? argv[3] : "strict";
    char devices[8];
    pthread_t workers[MAX_THREADS];
    call_count = argc > 1 ? strtoull(argv[1], NULL, 10) : 4000;
    first_seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    threads = argc > 4 ? atoi(argv[4]) : 1;
    if (threads < 1 || threads > MAX_THREADS)
        return 2;
    printf("fuzz %llu %llu %s %d\n", (unsigned long long)call_count, (unsigned long long)first_seed, profile, threads);
    strict = !strcmp(profile, "strict");
    snprintf(devices, sizeof(devices), "%d", threads * DEVICES);
    start("devices", devices, "profile", profile, "pages_4k", "4M", "pages_2m", "48M", "pages_1g", "2", NULL);
    for (int i = 0; i < threads; i++)
        CHECK(!pthread_create(&workers[i], NULL, make_calls, (void *)(intptr_t)i));
    for (int i = 0; i < threads; i++)
        pthread_join(workers[i], NULL);
    check_nothing_alive();
    return check_done();
}
