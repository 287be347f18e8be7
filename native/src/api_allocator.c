/* Exported: custom allocators of a program. They need no device. Thread safety: any thread, any time. */
#include "acl/acl_rt_allocator.h"
#include "allocator.h"
#include "entry.h"
#include "errors.h"
#include "table.h"

aclrtAllocatorDesc aclrtAllocatorCreateDesc(void) {
    ENTER_OR(NULL, aclrtAllocatorCreateDesc);
    table_lock();
    const struct allocator *allocator = allocator_make();
    aclrtAllocatorDesc handle = allocator ? allocator->handle : NULL;
    table_unlock();
    if (!handle)
        error_raise(ERROR_MEMORY, ACL_ERROR_BAD_ALLOC, "the host has no memory for a description");
    return handle;
}

static int null_argument(const char *name) {
    return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "%s is null", name);
}

static int not_alive(const void *handle) {
    return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "%p is no live description of an allocator", handle);
}

aclError aclrtAllocatorDestroyDesc(aclrtAllocatorDesc allocatorDesc) {
    ENTER(aclrtAllocatorDestroyDesc, allocatorDesc);
    if (!allocatorDesc)
        return null_argument("allocatorDesc");
    table_lock();
    struct allocator *allocator = allocator_at(allocatorDesc);
    if (allocator)
        allocator_end(allocator);
    table_unlock();
    return allocator ? ACL_SUCCESS : not_alive(allocatorDesc);
}

/* A setter: what the description holds at that place becomes the value. */
#define SET(member, value)                                                                                             \
    do {                                                                                                               \
        if (!allocatorDesc || !(value))                                                                                \
            return null_argument(allocatorDesc ? #value : "allocatorDesc");                                            \
        table_lock();                                                                                                  \
        struct allocator *allocator_found = allocator_at(allocatorDesc);                                               \
        if (allocator_found)                                                                                           \
            allocator_found->member = (value);                                                                         \
        table_unlock();                                                                                                \
        return allocator_found ? ACL_SUCCESS : not_alive(allocatorDesc);                                               \
    } while (0)

aclError aclrtAllocatorSetObjToDesc(aclrtAllocatorDesc allocatorDesc, aclrtAllocator allocator) {
    ENTER(aclrtAllocatorSetObjToDesc, allocatorDesc, allocator);
    SET(object, allocator);
}

aclError aclrtAllocatorSetAllocFuncToDesc(aclrtAllocatorDesc allocatorDesc, aclrtAllocatorAllocFunc func) {
    ENTER(aclrtAllocatorSetAllocFuncToDesc, allocatorDesc, func);
    SET(alloc, func);
}

aclError aclrtAllocatorSetFreeFuncToDesc(aclrtAllocatorDesc allocatorDesc, aclrtAllocatorFreeFunc func) {
    ENTER(aclrtAllocatorSetFreeFuncToDesc, allocatorDesc, func);
    SET(free, func);
}

aclError aclrtAllocatorSetAllocAdviseFuncToDesc(aclrtAllocatorDesc allocatorDesc, aclrtAllocatorAllocAdviseFunc func) {
    ENTER(aclrtAllocatorSetAllocAdviseFuncToDesc, allocatorDesc, func);
    SET(alloc_advise, func);
}

aclError aclrtAllocatorSetGetAddrFromBlockFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                                     aclrtAllocatorGetAddrFromBlockFunc func) {
    ENTER(aclrtAllocatorSetGetAddrFromBlockFuncToDesc, allocatorDesc, func);
    SET(block_address, func);
}

aclError aclrtAllocatorRegister(aclrtStream stream, aclrtAllocatorDesc allocatorDesc) {
    ENTER(aclrtAllocatorRegister, stream, allocatorDesc);
    if (!stream || !allocatorDesc)
        return null_argument(stream ? "allocatorDesc" : "stream");
    table_lock();
    const struct allocator *allocator = allocator_at(allocatorDesc);
    bool whole = allocator && allocator->alloc && allocator->free && allocator->block_address;
    bool kept = whole && allocator_register(stream, allocator);
    table_unlock();
    if (kept)
        return ACL_SUCCESS;
    if (!allocator)
        return not_alive(allocatorDesc);
    if (!whole)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM,
                           "the description lacks the function that allocates, that frees or that gives an address");
    return error_raise(ERROR_MEMORY, ACL_ERROR_BAD_ALLOC, "the host has no memory for the entry");
}

aclError aclrtAllocatorGetByStream(aclrtStream stream, aclrtAllocatorDesc *allocatorDesc, aclrtAllocator *allocator,
                                   aclrtAllocatorAllocFunc *allocFunc, aclrtAllocatorFreeFunc *freeFunc,
                                   aclrtAllocatorAllocAdviseFunc *allocAdviseFunc,
                                   aclrtAllocatorGetAddrFromBlockFunc *getAddrFromBlockFunc) {
    ENTER(aclrtAllocatorGetByStream, stream, allocatorDesc, allocator, allocFunc, freeFunc, allocAdviseFunc,
          getAddrFromBlockFunc);
    if (!stream || !allocatorDesc || !allocator || !allocFunc || !freeFunc || !allocAdviseFunc || !getAddrFromBlockFunc)
        return null_argument(stream ? "an out pointer" : "stream");
    table_lock();
    const struct allocator *found = allocator_of(stream);
    if (found) {
        *allocatorDesc = found->handle;
        *allocator = found->object;
        *allocFunc = found->alloc;
        *freeFunc = found->free;
        *allocAdviseFunc = found->alloc_advise;
        *getAddrFromBlockFunc = found->block_address;
    }
    table_unlock();
    if (found)
        return ACL_SUCCESS;
    return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "no allocator is registered for stream %p", stream);
}

aclError aclrtAllocatorUnregister(aclrtStream stream) {
    ENTER(aclrtAllocatorUnregister, stream);
    if (!stream)
        return null_argument("stream");
    table_lock();
    allocator_unregister(stream);
    table_unlock();
    return ACL_SUCCESS;
}
