/* Exported: device blocks shared with other processes by a key of text. The exporter names the processes that may
 * import, unless the export said otherwise; each side closes the key, and the exporter frees the block last. Thread
 * safety: any thread, any time. */
#include "acl/acl.h"
#include "blocks.h"
#include "context.h"
#include "device.h"
#include "entry.h"
#include "errors.h"
#include "ipc_memory.h"
#include "peer.h"
#include "runtime.h"
#include "share.h"
#include "table.h"

static int unknown_key(const char *key) {
    return error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR, "key \"%.64s\" is unknown in this process", key);
}

/* Bytes of a block that may be shared from addr on, in whole pages; 0 with the refusal recorded. */
static uint64_t shareable_bytes(const struct block *block, uint64_t addr, uint64_t size) {
    if (!block || block->pooled) {
        error_raise(ERROR_DRIVER, ACL_ERROR_RT_PARAM_INVALID, "0x%llx is in no block of aclrtMalloc",
                    (unsigned long long)addr);
        return 0;
    }
    uint64_t page_bytes = page_class_bytes(block->chunk->pages.cls);
    uint64_t room = block->range.start + block->range.len - addr;
    if (addr % page_bytes || size > room) {
        error_raise(ERROR_DRIVER, ACL_ERROR_RT_PARAM_INVALID,
                    "0x%llx + %llu bytes must start on a page of %s and end in the block, which has %llu bytes there",
                    (unsigned long long)addr, (unsigned long long)size, page_class_name(block->chunk->pages.cls),
                    (unsigned long long)room);
        return 0;
    }
    return (size + page_bytes - 1) & ~(page_bytes - 1);
}

static int export_block(uint64_t addr, uint64_t size, uint64_t flags, char *key) {
    struct block *block = block_at(addr);
    uint64_t bytes = shareable_bytes(block, addr, size);
    if (!bytes)
        return ACL_ERROR_RT_PARAM_INVALID;
    if (block->share && share_ended(block->share) && block_used_elsewhere(block->range.start))
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR,
                           "the key was closed, but another process still uses the block");
    if (!block->share) {
        const struct region *region = &block->chunk->region;
        struct share_offer offer = {
            .phys = region->phys,
            .pages = region->pages,
            .offset = addr - region->range.start,
            .owner = block->range.start,
            .bytes = bytes,
            .location = {.id = (uint32_t)region->device->id, .type = ACL_MEM_LOCATION_TYPE_DEVICE},
            .check_pids = flags == ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT};
        block->share = share_open(&offer);
        if (block->share)
            phys_touch_all(region->phys, region->pages);
    }
    if (!block->share)
        return error_raise(ERROR_MEMORY, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "the host refuses a file for the export");
    share_text(share_token(block->share), key);
    return ACL_SUCCESS;
}

aclError aclrtIpcMemGetExportKey(void *devPtr, size_t size, char *key, size_t len, uint64_t flags) {
    ENTER(aclrtIpcMemGetExportKey, devPtr, size, key, len, flags);
    if (!devPtr || !key)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "%s is null", devPtr ? "key" : "devPtr");
    if (!size)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "size is 0");
    if (len != SHARE_TEXT_BYTES || flags > ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID,
                           "len is %zu and must be %d, flags is %llu and must be 0 or 1", len, SHARE_TEXT_BYTES,
                           (unsigned long long)flags);
    table_lock();
    int code = export_block((uint64_t)(uintptr_t)devPtr, size, flags, key);
    table_unlock();
    return code;
}

static int import_block(uint64_t token, uint64_t flags, void **out) {
    struct import *import;
    const struct context *context = context_need();
    if (!context)
        return ACL_ERROR_RT_CONTEXT_NULL;
    struct device *current = context->device;
    if (ipc_block_find(token))
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR,
                           "the key was imported before; close it first");
    int code = import_open(token, &import);
    if (code)
        return code;
    struct device *device = device_at((int32_t)import->location.id);
    struct ipc_block *block = device && device_open(device) ? ipc_block_make(device, import) : NULL;
    if (!block) {
        import_close(import);
        return error_raise(ERROR_MEMORY, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL,
                           "the memory cannot be placed: this process lacks its device, addresses or host memory");
    }
    if (flags == ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS)
        peer_enable(current, device);
    *out = (void *)(uintptr_t)block->region.range.start;
    return ACL_SUCCESS;
}

aclError aclrtIpcMemImportByKey(void **devPtr, const char *key, uint64_t flags) {
    ENTER(aclrtIpcMemImportByKey, devPtr, key, flags);
    uint64_t token;
    if (!devPtr || !key)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "%s is null", devPtr ? "key" : "devPtr");
    if (flags > ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "flags is %llu and must be 0 or 1",
                           (unsigned long long)flags);
    if (!share_parse(key, &token))
        return unknown_key(key);
    table_lock();
    int code = import_block(token, flags, devPtr);
    table_unlock();
    return code;
}

aclError aclrtIpcMemClose(const char *key) {
    ENTER(aclrtIpcMemClose, key);
    uint64_t token;
    if (!key)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "key is null");
    if (!share_parse(key, &token))
        return unknown_key(key);
    table_lock();
    struct ipc_block *imported = ipc_block_find(token);
    bool known = imported || block_end_share(token);
    if (imported)
        ipc_block_end(imported);
    table_unlock();
    return known ? ACL_SUCCESS : unknown_key(key);
}

aclError aclrtIpcMemSetImportPid(const char *key, int32_t *pid, size_t num) {
    ENTER(aclrtIpcMemSetImportPid, key, IN(pid), num);
    uint64_t token;
    if (!key || !pid)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "%s is null", key ? "pid" : "key");
    if (!num)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "num is 0");
    if (!share_parse(key, &token))
        return unknown_key(key);
    table_lock();
    struct share *share = share_find(token);
    bool good = share && share_allow(share, pid, num);
    table_unlock();
    if (good)
        return ACL_SUCCESS;
    return share ? error_raise(ERROR_DRIVER, ACL_ERROR_RT_OVER_LIMIT, "%zu more processes cannot be listed", num)
                 : unknown_key(key);
}

/* There is one way to all memory, so the attribute only has to exist. */
aclError aclrtIpcMemSetAttr(const char *key, aclrtIpcMemAttrType type, uint64_t attr) {
    ENTER(aclrtIpcMemSetAttr, key, type, attr);
    uint64_t token;
    if (!key)
        return error_null("key");
    if (type != ACL_RT_IPC_MEM_ATTR_ACCESS_LINK || attr > ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_UB_MULTI_PORT_PATH)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID,
                           "type is %d and must be 0, attr is %llu and must be 0 to 3", (int)type,
                           (unsigned long long)attr);
    if (!share_parse(key, &token))
        return unknown_key(key);
    table_lock();
    bool known = share_find(token);
    table_unlock();
    return known ? ACL_SUCCESS : unknown_key(key);
}
