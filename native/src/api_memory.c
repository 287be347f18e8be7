/* Exported: device memory.
 *
 * Sizes and page classes: the entry rounds the size up to 32 bytes, aclrtMalloc and aclrtMallocCached after adding the
 * padding of the product. Memory for the task scheduler is as that with a configuration. The rounded size decides the
 * class for the HUGE_FIRST policies: above 1 MiB 2 MiB pages, else 4 KiB pages. Plain aclrtMalloc serves every P2P
 * policy but the 1 GiB one from 4 KiB pages; only aclrtMallocWithCfg honours the huge ones.
 *
 * Out pointers: left alone when entry or runtime refuse, null when the driver has no memory.
 *
 * Thread safety: any thread, any time. A block may be freed on another thread and while another device is current; the
 * free waits for copies that use the block. */
#include "acl/acl.h"
#include "blocks.h"
#include "context.h"
#include "device.h"
#include "entry.h"
#include "errors.h"
#include "faults.h"
#include "host_blocks.h"
#include "malloc_config.h"
#include "managed.h"
#include "poison.h"
#include "runtime.h"
#include "stream.h"
#include "table.h"

#define ROUNDING 32
#define HUGE_ABOVE MIB
#define MODIFIERS                                                                                                      \
    ((uint32_t)ACL_MEM_TYPE_LOW_BAND_WIDTH | (uint32_t)ACL_MEM_TYPE_HIGH_BAND_WIDTH |                                  \
     (uint32_t)ACL_MEM_ACCESS_USER_SPACE_READONLY)

/* What differs between the entries. */
struct malloc_entry {
    bool padded;    /* the product's padding is added to the size */
    bool plain_p2p; /* policies 3 to 5 end on 4 KiB pages */
    bool few;       /* policies other than 0, 1, 2 and 6 act as 0 */
};

static const struct malloc_entry malloc_entry = {.padded = true, .plain_p2p = true};
static const struct malloc_entry align32_entry = {.plain_p2p = true};
static const struct malloc_entry cached_entry = {.padded = true, .few = true};
static const struct malloc_entry config_entry = {.padded = false};

/* The policy an entry acts on: without modifier bits, unknown ones as HUGE_FIRST. */
static uint32_t effective_policy(const struct malloc_entry *entry, uint32_t policy) {
    policy &= ~MODIFIERS;
    bool other = policy > ACL_MEM_MALLOC_HUGE1G_ONLY_P2P;
    bool few = entry->few && policy > ACL_MEM_MALLOC_NORMAL_ONLY && policy != ACL_MEM_MALLOC_HUGE1G_ONLY;
    return other || few ? (uint32_t)ACL_MEM_MALLOC_HUGE_FIRST : policy;
}

/* Page class and kind of memory for an effective policy and a rounded size. */
static void choose_pages(const struct malloc_entry *entry, uint32_t policy, struct block_request *request) {
    enum page_class by_size = request->rounded > HUGE_ABOVE ? PAGE_2M : PAGE_4K;
    switch (policy) {
    case ACL_MEM_MALLOC_HUGE_ONLY_P2P:
        request->p2p = true;
        request->cls = entry->plain_p2p ? PAGE_4K : PAGE_2M;
        break;
    case ACL_MEM_MALLOC_HUGE_ONLY:
        request->cls = PAGE_2M;
        break;
    case ACL_MEM_MALLOC_NORMAL_ONLY_P2P:
        request->p2p = true;
        request->cls = PAGE_4K;
        break;
    case ACL_MEM_MALLOC_NORMAL_ONLY:
        request->cls = PAGE_4K;
        break;
    case ACL_MEM_MALLOC_HUGE1G_ONLY_P2P:
        request->p2p = true;
        request->cls = PAGE_1G;
        break;
    case ACL_MEM_MALLOC_HUGE1G_ONLY:
        request->cls = PAGE_1G;
        break;
    case ACL_MEM_MALLOC_HUGE_FIRST_P2P:
        request->p2p = true;
        request->cls = entry->plain_p2p ? PAGE_4K : by_size;
        request->fall_back = true;
        break;
    default:
        request->cls = by_size;
        request->fall_back = true;
    }
}

static int take_block(void **out, const struct block_request *request) {
    uint64_t addr;
    struct context *context = context_need();
    if (!context)
        return ACL_ERROR_RT_CONTEXT_NULL;
    int32_t id = context->device->id;
    if (request->cls == PAGE_1G && !config_has_giant_pages(runtime_config()))
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s has no 1 GiB pages here",
                           runtime_config()->soc_name);
    int fault = fault_of_allocation(request->asked);
    if (!fault && block_malloc(context->device, request, &addr)) {
        *out = (void *)(uintptr_t)addr;
        return ACL_SUCCESS;
    }
    *out = NULL;
    return fault ? fault : device_raise_short(device_at(id), request->cls, request->asked, request->rounded);
}

/* Everything after the null and size checks. */
static int malloc_rounded(const struct malloc_entry *entry, void **out, size_t size, uint32_t policy) {
    policy = effective_policy(entry, policy);
    bool giant = policy == ACL_MEM_MALLOC_HUGE1G_ONLY || policy == ACL_MEM_MALLOC_HUGE1G_ONLY_P2P;
    table_lock();
    uint64_t padding = entry->padded && !giant ? runtime_config()->product->padding : 0;
    int code;
    if (size > UINT64_MAX - padding - ROUNDING) {
        code = error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "size %zu cannot be rounded up within 64 bits", size);
    } else {
        struct block_request request = {.asked = size};
        request.rounded = (size + padding + ROUNDING - 1) & ~(uint64_t)(ROUNDING - 1);
        choose_pages(entry, policy, &request);
        code = take_block(out, &request);
    }
    table_unlock();
    if (!code)
        poison_new_bytes((uint64_t)(uintptr_t)*out, size);
    return code;
}

/* Null and size checks of the entry layer; returns a code. */
static int check_request(void *const *out, size_t size) {
    if (!out)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "devPtr is null");
    if (!size)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "size is 0");
    return ACL_SUCCESS;
}

static int malloc_block(const struct malloc_entry *entry, void **out, size_t size, aclrtMemMallocPolicy policy) {
    int code = check_request(out, size);
    return code ? code : malloc_rounded(entry, out, size, (uint32_t)policy);
}

aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy) {
    ENTER(aclrtMalloc, devPtr, size, policy);
    return malloc_block(&malloc_entry, devPtr, size, policy);
}

aclError aclrtMallocAlign32(void **devPtr, size_t size, aclrtMemMallocPolicy policy) {
    ENTER(aclrtMallocAlign32, devPtr, size, policy);
    return malloc_block(&align32_entry, devPtr, size, policy);
}

aclError aclrtMallocCached(void **devPtr, size_t size, aclrtMemMallocPolicy policy) {
    ENTER(aclrtMallocCached, devPtr, size, policy);
    return malloc_block(&cached_entry, devPtr, size, policy);
}

/* A named device must be the current one. The context itself is asked for later. */
static int check_wishes(const struct malloc_wishes *wishes) {
    table_lock();
    const struct context *context = context_current();
    int64_t current = context ? context->device->id : wishes->device;
    table_unlock();
    if (!wishes->on_device || wishes->device == current)
        return ACL_SUCCESS;
    return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "cfg names device %lld, current is device %lld",
                       (long long)wishes->device, (long long)current);
}

static int malloc_wished(void **devPtr, size_t size, aclrtMemMallocPolicy policy, const aclrtMallocConfig *cfg) {
    struct malloc_wishes wishes;
    int code = check_request(devPtr, size);
    if (!code)
        code = malloc_config_read(cfg, true, &wishes);
    if (!code)
        code = check_wishes(&wishes);
    return code ? code : malloc_rounded(&config_entry, devPtr, size, (uint32_t)policy);
}

aclError aclrtMallocWithCfg(void **devPtr, size_t size, aclrtMemMallocPolicy policy, aclrtMallocConfig *cfg) {
    ENTER(aclrtMallocWithCfg, devPtr, size, policy, IN(cfg));
    return malloc_wished(devPtr, size, policy, cfg);
}

aclError aclrtMallocForTaskScheduler(void **devPtr, size_t size, aclrtMemMallocPolicy policy, aclrtMallocConfig *cfg) {
    ENTER(aclrtMallocForTaskScheduler, devPtr, size, policy, IN(cfg));
    return malloc_wished(devPtr, size, policy, cfg);
}

static aclError free_block(void *devPtr) {
    uint64_t addr = (uint64_t)(uintptr_t)devPtr;
    table_lock();
    bool shared = block_used_elsewhere(addr);
    bool freed = !shared && (block_free(addr) || managed_free(addr) ||
                             (runtime_config()->profile->free_takes_host && host_block_free(addr)));
    table_unlock();
    if (freed)
        return ACL_SUCCESS;
    if (shared)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR,
                           "another process still uses the block at %p; close the key there first", devPtr);
    return error_raise(ERROR_DRIVER, ACL_ERROR_RT_PARAM_INVALID, "%p is not the start of a live block", devPtr);
}

aclError aclrtFree(void *devPtr) {
    ENTER(aclrtFree, devPtr);
    return devPtr ? free_block(devPtr) : error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "devPtr is null");
}

aclError aclrtFreeWithDevSync(void *devPtr) {
    ENTER(aclrtFreeWithDevSync, devPtr);
    if (!devPtr)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "devPtr is null");
    int code = streams_synchronize_current();
    return code ? code : free_block(devPtr);
}
