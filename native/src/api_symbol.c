/* Exported: variables of the current device. A symbol that nobody named (hostacl_symbol) is refused; only the device's
 * compiler makes others. Thread safety: any thread, any time. */
#include "acl/acl.h"
#include "async_copy.h"
#include "context.h"
#include "device.h"
#include "entry.h"
#include "errors.h"
#include "symbols.h"
#include "table.h"

static int unknown(const void *symbol) {
    return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "%p is no symbol of a device variable", symbol);
}

/* The place of a variable on the current device; returns a code. The table lock is held. */
static int find(const void *symbol, uint64_t *addr) {
    const struct context *context = context_need();
    if (!context)
        return ACL_ERROR_RT_CONTEXT_NULL;
    if (!symbol_bytes(symbol))
        return unknown(symbol);
    *addr = symbol_place(symbol, context->device);
    return *addr ? ACL_SUCCESS
                 : error_raise(ERROR_MEMORY, ACL_ERROR_RT_MEMORY_ALLOCATION,
                               "the device has no 4 KiB pages left for the variable");
}

aclError aclrtGetSymbolAddress(const void *symbol, void **devPtr) {
    ENTER(aclrtGetSymbolAddress, symbol, devPtr);
    uint64_t addr = 0;
    if (!symbol || !devPtr)
        return error_null(symbol ? "devPtr" : "symbol");
    table_lock();
    int code = find(symbol, &addr);
    table_unlock();
    if (!code)
        *devPtr = (void *)(uintptr_t)addr;
    return code;
}

aclError aclrtGetSymbolSize(const void *symbol, size_t *size) {
    ENTER(aclrtGetSymbolSize, symbol, size);
    if (!symbol || !size)
        return error_null(symbol ? "size" : "symbol");
    table_lock();
    uint64_t bytes = symbol_bytes(symbol);
    table_unlock();
    if (!bytes)
        return unknown(symbol);
    *size = bytes;
    return ACL_SUCCESS;
}

/* A copy to or from a variable. */
struct request {
    const void *symbol;
    const void *other; /* the other side */
    size_t count;
    size_t offset; /* in the variable */
    aclrtMemcpyKind kind;
    bool to_symbol; /* else from it */
};

/* Makes a copy of a request above 0 bytes; returns a code. */
static int plan(const struct request *request, struct copy *copy) {
    uint64_t addr = 0, end, size;
    if (!request->symbol || !request->other)
        return error_null(!request->symbol ? "symbol" : request->to_symbol ? "src" : "dst");
    if ((uint32_t)request->kind > ACL_MEMCPY_DEFAULT)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "kind %d is not in 0..4", (int)request->kind);
    table_lock();
    int code = find(request->symbol, &addr);
    size = symbol_bytes(request->symbol);
    table_unlock();
    if (code)
        return code;
    if (__builtin_add_overflow(request->offset, request->count, &end) || end > size)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID,
                           "%zu bytes at offset %zu are not in a variable of %llu bytes", request->count,
                           request->offset, (unsigned long long)size);
    uint64_t inside = addr + request->offset, other = (uint64_t)(uintptr_t)request->other;
    *copy = (struct copy){.to.addr = request->to_symbol ? inside : other,
                          .from.addr = request->to_symbol ? other : inside,
                          .width = request->count,
                          .rows = 1};
    return ACL_SUCCESS;
}

static int copy_now(const struct request *request) {
    struct copy copy;
    int code = request->count ? plan(request, &copy) : ACL_SUCCESS;
    return code || !request->count ? code : copy_run(&copy);
}

static int copy_in_order(const struct request *request, aclrtStream stream, enum function_id function) {
    struct copy copy;
    int code = request->count ? plan(request, &copy) : ACL_SUCCESS;
    return code || !request->count ? code : async_copy(&copy, request->kind, stream, function);
}

static int check_room(size_t room, size_t count) {
    if (count <= room)
        return ACL_SUCCESS;
    return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "count %zu is above dstMax %zu", count, room);
}

aclError aclrtMemcpyToSymbol(const void *symbol, const void *src, size_t count, size_t offset, aclrtMemcpyKind kind) {
    ENTER(aclrtMemcpyToSymbol, symbol, src, count, offset, kind);
    struct request request = {symbol, src, count, offset, kind, true};
    return copy_now(&request);
}

aclError aclrtMemcpyToSymbolAsync(const void *symbol, const void *src, size_t count, size_t offset,
                                  aclrtMemcpyKind kind, aclrtStream stream) {
    ENTER(aclrtMemcpyToSymbolAsync, symbol, src, count, offset, kind, stream);
    struct request request = {symbol, src, count, offset, kind, true};
    return copy_in_order(&request, stream, FUNCTION_aclrtMemcpyToSymbolAsync);
}

aclError aclrtMemcpyFromSymbol(void *dst, size_t dstMax, const void *symbol, size_t count, size_t offset,
                               aclrtMemcpyKind kind) {
    ENTER(aclrtMemcpyFromSymbol, dst, dstMax, symbol, count, offset, kind);
    struct request request = {symbol, dst, count, offset, kind, false};
    int code = check_room(dstMax, count);
    return code ? code : copy_now(&request);
}

aclError aclrtMemcpyFromSymbolAsync(void *dst, size_t dstMax, const void *symbol, size_t count, size_t offset,
                                    aclrtMemcpyKind kind, aclrtStream stream) {
    ENTER(aclrtMemcpyFromSymbolAsync, dst, dstMax, symbol, count, offset, kind, stream);
    struct request request = {symbol, dst, count, offset, kind, false};
    int code = check_room(dstMax, count);
    return code ? code : copy_in_order(&request, stream, FUNCTION_aclrtMemcpyFromSymbolAsync);
}
