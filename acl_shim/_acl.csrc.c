/* The function table of the binding: one table of function pointers per opened library, filled by dlopen and dlsym.
 *
 * Several libraries may be open in one process; each call names its table, so none is "the" library. A function that
 * the library lacks is a null pointer in its table; its wrapper then answers ACL_SHIM_NO_SYMBOL instead of calling.
 * The table's types are taken from the public headers, so a wrapper that disagrees with them does not compile. Tables
 * are written once, before anybody else sees them, and read without a lock from any thread.
 *
 * To add an ACL function F: 1. its name in ACL_FUNCTIONS below; 2. its wrapper acl_F below; 3. the prototype of acl_F
 * in _acl.cdef.h; 4. a method F in the protocol of api.py. Nothing else lists functions. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "acl/acl.h"
#include "hostacl.h"

#define ACL_SHIM_NO_SYMBOL (-1000001)

#define ACL_FUNCTIONS(F)                                                                                               \
    F(aclInit)                                                                                                         \
    F(aclFinalize)                                                                                                     \
    F(aclFinalizeReference)                                                                                            \
    F(aclGetRecentErrMsg)                                                                                              \
    F(aclrtGetLastError)                                                                                               \
    F(aclrtPeekAtLastError)                                                                                            \
    F(aclrtGetRunMode)                                                                                                 \
    F(aclrtGetSocName)                                                                                                 \
    F(aclrtSetDevice)                                                                                                  \
    F(aclrtResetDevice)                                                                                                \
    F(aclrtResetDeviceForce)                                                                                           \
    F(aclrtGetDevice)                                                                                                  \
    F(aclrtGetDeviceCount)                                                                                             \
    F(aclrtCreateContext)                                                                                              \
    F(aclrtDestroyContext)                                                                                             \
    F(aclrtSetCurrentContext)                                                                                          \
    F(aclrtGetCurrentContext)                                                                                          \
    F(aclrtMalloc)                                                                                                     \
    F(aclrtMallocAlign32)                                                                                              \
    F(aclrtMallocCached)                                                                                               \
    F(aclrtMallocWithCfg)                                                                                              \
    F(aclrtFree)                                                                                                       \
    F(aclrtMallocHost)                                                                                                 \
    F(aclrtMallocHostWithCfg)                                                                                          \
    F(aclrtFreeHost)                                                                                                   \
    F(aclrtMemcpy)                                                                                                     \
    F(aclrtMemset)                                                                                                     \
    F(aclrtGetMemInfo)                                                                                                 \
    F(aclrtPointerGetAttributes)                                                                                       \
    F(hostacl_version)                                                                                                 \
    F(hostacl_error)                                                                                                   \
    F(hostacl_configure)                                                                                               \
    F(hostacl_reset)                                                                                                   \
    F(hostacl_fail)                                                                                                    \
    F(hostacl_calls)                                                                                                   \
    F(hostacl_live)                                                                                                    \
    F(hostacl_live_report)                                                                                             \
    F(hostacl_info)

typedef struct acl_table {
    void *library; /* handle of dlopen */
#define FIELD(function) __typeof__(function) *function;
    ACL_FUNCTIONS(FIELD)
#undef FIELD
} acl_table;

static const char *const symbol_names[] = {
#define NAME(function) #function,
    ACL_FUNCTIONS(NAME)
#undef NAME
};

static void fill(acl_table *table) {
    /* POSIX gives functions as void pointers; storing through one is the conversion it names. */
#define LOOK_UP(function) *(void **)&table->function = dlsym(table->library, #function);
    ACL_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
}

static int acl_open(const char *path, acl_table **out, char *reason, size_t reason_size) {
    *out = NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char *text = dlerror();
        snprintf(reason, reason_size, "%s", text != NULL ? text : "the loader gives no reason");
        return -1;
    }
    acl_table *table = calloc(1, sizeof *table);
    if (table == NULL) {
        dlclose(library);
        snprintf(reason, reason_size, "no memory for a table of %zu bytes", sizeof *table);
        return -1;
    }
    table->library = library;
    fill(table);
    *out = table;
    return 0;
}

static void acl_close(acl_table *table) {
    dlclose(table->library);
    free(table);
}

static const char *acl_path(const acl_table *table) {
    struct link_map *map = NULL;
    return dlinfo(table->library, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "";
}

static int acl_has(const acl_table *table, const char *name) {
    return dlsym(table->library, name) != NULL;
}

static const char *acl_symbol_name(size_t index) {
    return index < sizeof symbol_names / sizeof *symbol_names ? symbol_names[index] : NULL;
}

static uintptr_t acl_address(const void *pointer) {
    return (uintptr_t)pointer;
}

/* Calls a function of the table, or answers `missing` where the library has none. */
#define CALL_OR(missing, function, ...) (table->function != NULL ? table->function(__VA_ARGS__) : (missing))
#define CALL(function, ...) CALL_OR(ACL_SHIM_NO_SYMBOL, function, __VA_ARGS__)

/* ---- Start, end, errors ---- */

static int acl_aclInit(const acl_table *table, const char *configPath) {
    return CALL(aclInit, configPath);
}

static int acl_aclFinalize(const acl_table *table) {
    return CALL(aclFinalize);
}

static int acl_aclFinalizeReference(const acl_table *table, uint64_t *refCount) {
    return CALL(aclFinalizeReference, refCount);
}

static const char *acl_aclGetRecentErrMsg(const acl_table *table) {
    return CALL_OR(NULL, aclGetRecentErrMsg);
}

static int acl_aclrtGetLastError(const acl_table *table, int level) {
    return CALL(aclrtGetLastError, (aclrtLastErrLevel)level);
}

static int acl_aclrtPeekAtLastError(const acl_table *table, int level) {
    return CALL(aclrtPeekAtLastError, (aclrtLastErrLevel)level);
}

static int acl_aclrtGetRunMode(const acl_table *table, int *runMode) {
    return CALL(aclrtGetRunMode, (aclrtRunMode *)runMode);
}

static const char *acl_aclrtGetSocName(const acl_table *table) {
    return CALL_OR(NULL, aclrtGetSocName);
}

/* ---- Device and context ---- */

static int acl_aclrtSetDevice(const acl_table *table, int32_t deviceId) {
    return CALL(aclrtSetDevice, deviceId);
}

static int acl_aclrtResetDevice(const acl_table *table, int32_t deviceId) {
    return CALL(aclrtResetDevice, deviceId);
}

static int acl_aclrtResetDeviceForce(const acl_table *table, int32_t deviceId) {
    return CALL(aclrtResetDeviceForce, deviceId);
}

static int acl_aclrtGetDevice(const acl_table *table, int32_t *deviceId) {
    return CALL(aclrtGetDevice, deviceId);
}

static int acl_aclrtGetDeviceCount(const acl_table *table, uint32_t *count) {
    return CALL(aclrtGetDeviceCount, count);
}

static int acl_aclrtCreateContext(const acl_table *table, uintptr_t *context, int32_t deviceId) {
    return CALL(aclrtCreateContext, (aclrtContext *)context, deviceId);
}

static int acl_aclrtDestroyContext(const acl_table *table, uintptr_t context) {
    return CALL(aclrtDestroyContext, (aclrtContext)context);
}

static int acl_aclrtSetCurrentContext(const acl_table *table, uintptr_t context) {
    return CALL(aclrtSetCurrentContext, (aclrtContext)context);
}

static int acl_aclrtGetCurrentContext(const acl_table *table, uintptr_t *context) {
    return CALL(aclrtGetCurrentContext, (aclrtContext *)context);
}

/* ---- Memory ---- */

static int acl_aclrtMalloc(const acl_table *table, uintptr_t *devPtr, size_t size, int policy) {
    return CALL(aclrtMalloc, (void **)devPtr, size, (aclrtMemMallocPolicy)policy);
}

static int acl_aclrtMallocAlign32(const acl_table *table, uintptr_t *devPtr, size_t size, int policy) {
    return CALL(aclrtMallocAlign32, (void **)devPtr, size, (aclrtMemMallocPolicy)policy);
}

static int acl_aclrtMallocCached(const acl_table *table, uintptr_t *devPtr, size_t size, int policy) {
    return CALL(aclrtMallocCached, (void **)devPtr, size, (aclrtMemMallocPolicy)policy);
}

static int acl_aclrtMallocWithCfg(const acl_table *table, uintptr_t *devPtr, size_t size, int policy,
                                  aclrtMallocConfig *cfg) {
    return CALL(aclrtMallocWithCfg, (void **)devPtr, size, (aclrtMemMallocPolicy)policy, cfg);
}

static int acl_aclrtFree(const acl_table *table, uintptr_t devPtr) {
    return CALL(aclrtFree, (void *)devPtr);
}

static int acl_aclrtMallocHost(const acl_table *table, uintptr_t *hostPtr, size_t size) {
    return CALL(aclrtMallocHost, (void **)hostPtr, size);
}

static int acl_aclrtMallocHostWithCfg(const acl_table *table, uintptr_t *ptr, uint64_t size, aclrtMallocConfig *cfg) {
    return CALL(aclrtMallocHostWithCfg, (void **)ptr, size, cfg);
}

static int acl_aclrtFreeHost(const acl_table *table, uintptr_t hostPtr) {
    return CALL(aclrtFreeHost, (void *)hostPtr);
}

static int acl_aclrtMemcpy(const acl_table *table, uintptr_t dst, size_t destMax, uintptr_t src, size_t count,
                           int kind) {
    return CALL(aclrtMemcpy, (void *)dst, destMax, (const void *)src, count, (aclrtMemcpyKind)kind);
}

static int acl_aclrtMemset(const acl_table *table, uintptr_t devPtr, size_t maxCount, int32_t value, size_t count) {
    return CALL(aclrtMemset, (void *)devPtr, maxCount, value, count);
}

static int acl_aclrtGetMemInfo(const acl_table *table, int attr, size_t *free_bytes, size_t *total) {
    return CALL(aclrtGetMemInfo, (aclrtMemAttr)attr, free_bytes, total);
}

static int acl_aclrtPointerGetAttributes(const acl_table *table, uintptr_t ptr, aclrtPtrAttributes *attributes) {
    return CALL(aclrtPointerGetAttributes, (const void *)ptr, attributes);
}

/* ---- Controls of the host runtime ---- */

static const char *acl_hostacl_version(const acl_table *table) {
    return CALL_OR(NULL, hostacl_version);
}

static const char *acl_hostacl_error(const acl_table *table) {
    return CALL_OR(NULL, hostacl_error);
}

static int acl_hostacl_configure(const acl_table *table, const char *key, const char *value) {
    return CALL(hostacl_configure, key, value);
}

static int acl_hostacl_reset(const acl_table *table) {
    return CALL(hostacl_reset);
}

static int acl_hostacl_fail(const acl_table *table, const char *function, uint64_t nth, int code) {
    return CALL(hostacl_fail, function, nth, code);
}

static uint64_t acl_hostacl_calls(const acl_table *table, const char *function) {
    return CALL_OR(0, hostacl_calls, function);
}

static int acl_hostacl_live(const acl_table *table, hostacl_live_t *out) {
    return CALL(hostacl_live, out);
}

static int acl_hostacl_live_report(const acl_table *table, char *buf, size_t len) {
    return CALL(hostacl_live_report, buf, len);
}

static int acl_hostacl_info(const acl_table *table, char *buf, size_t len) {
    return CALL(hostacl_info, buf, len);
}
