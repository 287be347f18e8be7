/* The function table of the binding: one table of function pointers per opened library, filled by dlopen and dlsym.
 *
 * Several libraries may be open in one process; each call names its table, so none is "the" library. A function that
 * the library lacks is a null pointer in its table; its wrapper then answers ACL_SHIM_NO_SYMBOL instead of calling.
 * The table's types are taken from the public headers, so a wrapper that disagrees with them does not compile. Tables
 * are written once, before anybody else sees them, and read without a lock from any thread.
 *
 * To add an ACL function F: 1. its name in ACL_FUNCTIONS below; 2. its wrapper acl_F below; 3. the prototype of acl_F
 * in _acl.cdef.h; 4. a method F in one of the protocols that api.py puts together. A function that Python scripts call
 * under its pyACL name has a row in pyacl/acl/_calls.py besides; models (acl.mdl) are no part of that facade. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "_dlpack.h"
#include "_format_loops.h"
#include "_host_function.h"
#include "_strided_copy.h"
#include "acl/acl.h"
#include "acl/acl_rt_allocator.h"
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
    F(aclrtGetDeviceInfo)                                                                                              \
    F(aclrtSynchronizeDevice)                                                                                          \
    F(aclrtSynchronizeDeviceWithTimeout)                                                                               \
    F(aclrtDeviceCanAccessPeer)                                                                                        \
    F(aclrtDeviceEnablePeerAccess)                                                                                     \
    F(aclrtDeviceDisablePeerAccess)                                                                                    \
    F(aclrtDeviceGetBareTgid)                                                                                          \
    F(aclrtDeviceGetUuid)                                                                                              \
    F(aclrtQueryDeviceStatus)                                                                                          \
    F(aclrtCtxGetCurrentDefaultStream)                                                                                 \
    F(aclrtGetPrimaryCtxState)                                                                                         \
    F(aclrtMallocForTaskScheduler)                                                                                     \
    F(aclrtFreeWithDevSync)                                                                                            \
    F(aclrtGetMemUsageInfo)                                                                                            \
    F(aclrtFreeHostWithDevSync)                                                                                        \
    F(aclrtHostRegister)                                                                                               \
    F(aclrtHostRegisterV2)                                                                                             \
    F(aclrtHostGetDevicePointer)                                                                                       \
    F(aclrtHostUnregister)                                                                                             \
    F(aclrtMemcpyAsync)                                                                                                \
    F(aclrtMemcpy2d)                                                                                                   \
    F(aclrtMemcpy2dAsync)                                                                                              \
    F(aclrtMemcpyBatch)                                                                                                \
    F(aclrtMemcpyBatchAsync)                                                                                           \
    F(aclrtMemsetAsync)                                                                                                \
    F(aclrtMemsetD32)                                                                                                  \
    F(aclrtMemsetD32Async)                                                                                             \
    F(aclrtReserveMemAddress)                                                                                          \
    F(aclrtReserveMemAddressNoUCMemory)                                                                                \
    F(aclrtReleaseMemAddress)                                                                                          \
    F(aclrtMallocPhysical)                                                                                             \
    F(aclrtFreePhysical)                                                                                               \
    F(aclrtMapMem)                                                                                                     \
    F(aclrtMemMapNoAccess)                                                                                             \
    F(aclrtUnmapMem)                                                                                                   \
    F(aclrtMemSetAccess)                                                                                               \
    F(aclrtMemGetAccess)                                                                                               \
    F(aclrtMemGetAllocationGranularity)                                                                                \
    F(aclrtMemRetainAllocationHandle)                                                                                  \
    F(aclrtMemGetAllocationPropertiesFromHandle)                                                                       \
    F(aclrtMemGetAddressRange)                                                                                         \
    F(aclrtMemExportToShareableHandle)                                                                                 \
    F(aclrtMemExportToShareableHandleV2)                                                                               \
    F(aclrtMemImportFromShareableHandle)                                                                               \
    F(aclrtMemImportFromShareableHandleV2)                                                                             \
    F(aclrtMemSetPidToShareableHandle)                                                                                 \
    F(aclrtMemSetPidToShareableHandleV2)                                                                               \
    F(aclrtCreateStream)                                                                                               \
    F(aclrtCreateStreamWithConfig)                                                                                     \
    F(aclrtDestroyStream)                                                                                              \
    F(aclrtDestroyStreamForce)                                                                                         \
    F(aclrtSynchronizeStream)                                                                                          \
    F(aclrtSynchronizeStreamWithTimeout)                                                                               \
    F(aclrtStreamQuery)                                                                                                \
    F(aclrtStreamGetId)                                                                                                \
    F(aclrtStreamGetPriority)                                                                                          \
    F(aclrtStreamGetFlags)                                                                                             \
    F(aclrtDeviceGetStreamPriorityRange)                                                                               \
    F(aclrtSetStreamFailureMode)                                                                                       \
    F(aclrtValueWrite)                                                                                                 \
    F(aclrtValueWait)                                                                                                  \
    F(aclrtLaunchCallback)                                                                                             \
    F(aclrtSubscribeReport)                                                                                            \
    F(aclrtUnSubscribeReport)                                                                                          \
    F(aclrtProcessReport)                                                                                              \
    F(aclrtLaunchHostFunc)                                                                                             \
    F(aclrtSubscribeHostFunc)                                                                                          \
    F(aclrtUnSubscribeHostFunc)                                                                                        \
    F(aclrtProcessHostFunc)                                                                                            \
    F(aclrtCreateEvent)                                                                                                \
    F(aclrtCreateEventExWithFlag)                                                                                      \
    F(aclrtCreateEventWithFlag)                                                                                        \
    F(aclrtDestroyEvent)                                                                                               \
    F(aclrtEventElapsedTime)                                                                                           \
    F(aclrtEventGetTimestamp)                                                                                          \
    F(aclrtQueryEventStatus)                                                                                           \
    F(aclrtRecordEvent)                                                                                                \
    F(aclrtResetEvent)                                                                                                 \
    F(aclrtStreamWaitEvent)                                                                                            \
    F(aclrtSynchronizeEvent)                                                                                           \
    F(aclrtSynchronizeEventWithTimeout)                                                                                \
    F(aclrtIpcGetEventHandle)                                                                                          \
    F(aclrtIpcOpenEventHandle)                                                                                         \
    F(aclrtQueryEventWaitStatus)                                                                                       \
    F(aclrtRecordEventWithFlag)                                                                                        \
    F(aclrtSetOpWaitTimeout)                                                                                           \
    F(aclrtStreamWaitEventWithFlag)                                                                                    \
    F(aclrtCreateNotify)                                                                                               \
    F(aclrtDestroyNotify)                                                                                              \
    F(aclrtNotifyGetExportKey)                                                                                         \
    F(aclrtNotifyImportByKey)                                                                                          \
    F(aclrtNotifySetImportPid)                                                                                         \
    F(aclrtRecordNotify)                                                                                               \
    F(aclrtWaitAndResetNotify)                                                                                         \
    F(aclrtIpcMemGetExportKey)                                                                                         \
    F(aclrtIpcMemImportByKey)                                                                                          \
    F(aclrtIpcMemClose)                                                                                                \
    F(aclrtIpcMemSetImportPid)                                                                                         \
    F(aclrtMemPoolCreate)                                                                                              \
    F(aclrtMemPoolDestroy)                                                                                             \
    F(aclrtMemPoolFreeAsync)                                                                                           \
    F(aclrtMemPoolGetAttr)                                                                                             \
    F(aclrtMemPoolMallocAsync)                                                                                         \
    F(aclrtMemPoolSetAttr)                                                                                             \
    F(aclrtMemPoolTrimTo)                                                                                              \
    F(aclrtMemAllocManaged)                                                                                            \
    F(aclDataTypeSize)                                                                                                 \
    F(aclFloat16ToFloat)                                                                                               \
    F(aclFloatToFloat16)                                                                                               \
    F(aclCreateDataBuffer)                                                                                             \
    F(aclDestroyDataBuffer)                                                                                            \
    F(aclGetDataBufferAddr)                                                                                            \
    F(aclGetDataBufferSize)                                                                                            \
    F(aclGetDataBufferSizeV2)                                                                                          \
    F(aclrtGetDeviceCapability)                                                                                        \
    F(aclrtGetLogicDevIdByUserDevId)                                                                                   \
    F(aclrtGetUserDevIdByLogicDevId)                                                                                   \
    F(aclrtGetPhyDevIdByLogicDevId)                                                                                    \
    F(aclrtStreamAbort)                                                                                                \
    F(aclrtRegStreamStateCallback)                                                                                     \
    F(aclrtGetThreadLastTaskId)                                                                                        \
    F(aclrtSetExceptionInfoCallback)                                                                                   \
    F(aclrtGetTaskIdFromExceptionInfo)                                                                                 \
    F(aclrtGetStreamIdFromExceptionInfo)                                                                               \
    F(aclrtGetThreadIdFromExceptionInfo)                                                                               \
    F(aclrtGetDeviceIdFromExceptionInfo)                                                                               \
    F(aclrtGetErrorCodeFromExceptionInfo)                                                                              \
    F(aclAppLog)                                                                                                       \
    F(aclrtAllocatorCreateDesc)                                                                                        \
    F(aclrtAllocatorDestroyDesc)                                                                                       \
    F(aclrtAllocatorSetObjToDesc)                                                                                      \
    F(aclrtAllocatorSetAllocFuncToDesc)                                                                                \
    F(aclrtAllocatorSetFreeFuncToDesc)                                                                                 \
    F(aclrtAllocatorSetAllocAdviseFuncToDesc)                                                                          \
    F(aclrtAllocatorSetGetAddrFromBlockFuncToDesc)                                                                     \
    F(aclrtAllocatorRegister)                                                                                          \
    F(aclrtAllocatorGetByStream)                                                                                       \
    F(aclrtAllocatorUnregister)                                                                                        \
    F(aclsysGetVersionStr)                                                                                             \
    F(aclsysGetVersionNum)                                                                                             \
    F(aclGetCannAttribute)                                                                                             \
    F(aclGetDeviceCapability)                                                                                          \
    F(aclrtCheckArchCompatibility)                                                                                     \
    F(aclrtGetDeviceUtilizationRate)                                                                                   \
    F(aclrtHostMemMapCapabilities)                                                                                     \
    F(aclrtSetDeviceResLimit)                                                                                          \
    F(aclrtGetDeviceResLimit)                                                                                          \
    F(aclrtResetDeviceResLimit)                                                                                        \
    F(aclrtSetStreamResLimit)                                                                                          \
    F(aclrtGetStreamResLimit)                                                                                          \
    F(aclrtResetStreamResLimit)                                                                                        \
    F(aclrtUseStreamResInCurrentThread)                                                                                \
    F(aclrtUnuseStreamResInCurrentThread)                                                                              \
    F(aclrtGetResInCurrentThread)                                                                                      \
    F(aclrtSetDeviceSatMode)                                                                                           \
    F(aclrtGetDeviceSatMode)                                                                                           \
    F(aclrtSetStreamOverflowSwitch)                                                                                    \
    F(aclrtGetStreamOverflowSwitch)                                                                                    \
    F(aclrtGetOverflowStatus)                                                                                          \
    F(aclrtResetOverflowStatus)                                                                                        \
    F(aclrtSetOpExecuteTimeOut)                                                                                        \
    F(aclrtSetOpExecuteTimeOutV2)                                                                                      \
    F(aclrtDeviceTaskAbort)                                                                                            \
    F(aclrtStreamStop)                                                                                                 \
    F(aclrtMemcpyAsyncWithCondition)                                                                                   \
    F(aclrtReduceAsync)                                                                                                \
    F(aclrtCmoAsync)                                                                                                   \
    F(aclrtMemFlush)                                                                                                   \
    F(aclrtMemInvalidate)                                                                                              \
    F(aclrtMemP2PMap)                                                                                                  \
    F(aclrtIpcMemSetAttr)                                                                                              \
    F(aclrtMemMapSetLink)                                                                                              \
    F(aclrtMemMapSelectedLink)                                                                                         \
    F(aclrtGetSymbolAddress)                                                                                           \
    F(aclrtGetSymbolSize)                                                                                              \
    F(aclrtMemcpyToSymbol)                                                                                             \
    F(aclrtMemcpyToSymbolAsync)                                                                                        \
    F(aclrtMemcpyFromSymbol)                                                                                           \
    F(aclrtMemcpyFromSymbolAsync)                                                                                      \
    F(aclmdlQuerySize)                                                                                                 \
    F(aclmdlQuerySizeFromMem)                                                                                          \
    F(aclmdlCreateConfigHandle)                                                                                        \
    F(aclmdlDestroyConfigHandle)                                                                                       \
    F(aclmdlSetConfigOpt)                                                                                              \
    F(aclmdlSetExternalWeightAddress)                                                                                  \
    F(aclmdlLoadWithConfig)                                                                                            \
    F(aclmdlUnload)                                                                                                    \
    F(aclmdlCreateDesc)                                                                                                \
    F(aclmdlDestroyDesc)                                                                                               \
    F(aclmdlGetDesc)                                                                                                   \
    F(aclmdlGetNumInputs)                                                                                              \
    F(aclmdlGetNumOutputs)                                                                                             \
    F(aclmdlGetInputSizeByIndex)                                                                                       \
    F(aclmdlGetOutputSizeByIndex)                                                                                      \
    F(aclmdlGetInputNameByIndex)                                                                                       \
    F(aclmdlGetOutputNameByIndex)                                                                                      \
    F(aclmdlGetInputDims)                                                                                              \
    F(aclmdlGetOutputDims)                                                                                             \
    F(aclmdlGetInputFormat)                                                                                            \
    F(aclmdlGetOutputFormat)                                                                                           \
    F(aclmdlGetInputDataType)                                                                                          \
    F(aclmdlGetOutputDataType)                                                                                         \
    F(aclmdlCreateDataset)                                                                                             \
    F(aclmdlDestroyDataset)                                                                                            \
    F(aclmdlAddDatasetBuffer)                                                                                          \
    F(aclmdlExecute)                                                                                                   \
    F(hostacl_version)                                                                                                 \
    F(hostacl_error)                                                                                                   \
    F(hostacl_configure)                                                                                               \
    F(hostacl_reset)                                                                                                   \
    F(hostacl_fail)                                                                                                    \
    F(hostacl_delay)                                                                                                   \
    F(hostacl_fail_above)                                                                                              \
    F(hostacl_short_copy)                                                                                              \
    F(hostacl_fail_task)                                                                                               \
    F(hostacl_delay_task)                                                                                              \
    F(hostacl_hold)                                                                                                    \
    F(hostacl_release)                                                                                                 \
    F(hostacl_symbol)                                                                                                  \
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

#include "_block_copies.h" /* after CALL, which it uses */

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

static size_t acl_aclDataTypeSize(const acl_table *table, int dataType) {
    return CALL_OR(0, aclDataTypeSize, (aclDataType)dataType);
}

static float acl_aclFloat16ToFloat(const acl_table *table, uint16_t value) {
    return CALL_OR(0, aclFloat16ToFloat, value);
}

static uint16_t acl_aclFloatToFloat16(const acl_table *table, float value) {
    return CALL_OR(0, aclFloatToFloat16, value);
}

static uintptr_t acl_aclCreateDataBuffer(const acl_table *table, uintptr_t data, size_t size) {
    return (uintptr_t)CALL_OR(NULL, aclCreateDataBuffer, (void *)data, size);
}

static int acl_aclDestroyDataBuffer(const acl_table *table, uintptr_t dataBuffer) {
    return CALL(aclDestroyDataBuffer, (const aclDataBuffer *)dataBuffer);
}

static uintptr_t acl_aclGetDataBufferAddr(const acl_table *table, uintptr_t dataBuffer) {
    return (uintptr_t)CALL_OR(NULL, aclGetDataBufferAddr, (const aclDataBuffer *)dataBuffer);
}

static uint32_t acl_aclGetDataBufferSize(const acl_table *table, uintptr_t dataBuffer) {
    return CALL_OR(0, aclGetDataBufferSize, (const aclDataBuffer *)dataBuffer);
}

static size_t acl_aclGetDataBufferSizeV2(const acl_table *table, uintptr_t dataBuffer) {
    return CALL_OR(0, aclGetDataBufferSizeV2, (const aclDataBuffer *)dataBuffer);
}

static void acl_aclAppLog(const acl_table *table, int logLevel, const char *func, const char *file, uint32_t line,
                          const char *fmt) {
    if (table->aclAppLog != NULL)
        table->aclAppLog((aclLogLevel)logLevel, func, file, line, "%s", fmt);
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

static int acl_aclrtGetDeviceInfo(const acl_table *table, uint32_t deviceId, int attr, int64_t *value) {
    return CALL(aclrtGetDeviceInfo, deviceId, (aclrtDevAttr)attr, value);
}

static int acl_aclrtSynchronizeDevice(const acl_table *table) {
    return CALL(aclrtSynchronizeDevice);
}

static int acl_aclrtSynchronizeDeviceWithTimeout(const acl_table *table, int32_t timeout) {
    return CALL(aclrtSynchronizeDeviceWithTimeout, timeout);
}

static int acl_aclrtDeviceCanAccessPeer(const acl_table *table, int32_t *canAccessPeer, int32_t deviceId,
                                        int32_t peerDeviceId) {
    return CALL(aclrtDeviceCanAccessPeer, canAccessPeer, deviceId, peerDeviceId);
}

static int acl_aclrtDeviceEnablePeerAccess(const acl_table *table, int32_t peerDeviceId, uint32_t flags) {
    return CALL(aclrtDeviceEnablePeerAccess, peerDeviceId, flags);
}

static int acl_aclrtDeviceDisablePeerAccess(const acl_table *table, int32_t peerDeviceId) {
    return CALL(aclrtDeviceDisablePeerAccess, peerDeviceId);
}

static int acl_aclrtDeviceGetBareTgid(const acl_table *table, int32_t *pid) {
    return CALL(aclrtDeviceGetBareTgid, pid);
}

static int acl_aclrtDeviceGetUuid(const acl_table *table, int32_t deviceId, aclrtUuid *uuid) {
    return CALL(aclrtDeviceGetUuid, deviceId, uuid);
}

static int acl_aclrtQueryDeviceStatus(const acl_table *table, int32_t deviceId, int *deviceStatus) {
    return CALL(aclrtQueryDeviceStatus, deviceId, (aclrtDeviceStatus *)deviceStatus);
}

static int acl_aclrtCtxGetCurrentDefaultStream(const acl_table *table, uintptr_t *stream) {
    return CALL(aclrtCtxGetCurrentDefaultStream, (aclrtStream *)stream);
}

static int acl_aclrtGetPrimaryCtxState(const acl_table *table, int32_t deviceId, uint32_t *flags, int32_t *active) {
    return CALL(aclrtGetPrimaryCtxState, deviceId, flags, active);
}

static int acl_aclrtGetDeviceCapability(const acl_table *table, int32_t deviceId, int devFeatureType, int32_t *value) {
    return CALL(aclrtGetDeviceCapability, deviceId, (aclrtDevFeatureType)devFeatureType, value);
}

static int acl_aclrtGetLogicDevIdByUserDevId(const acl_table *table, int32_t userDevid, int32_t *logicDevId) {
    return CALL(aclrtGetLogicDevIdByUserDevId, userDevid, logicDevId);
}

static int acl_aclrtGetUserDevIdByLogicDevId(const acl_table *table, int32_t logicDevId, int32_t *userDevid) {
    return CALL(aclrtGetUserDevIdByLogicDevId, logicDevId, userDevid);
}

static int acl_aclrtGetPhyDevIdByLogicDevId(const acl_table *table, int32_t logicDevId, int32_t *phyDevId) {
    return CALL(aclrtGetPhyDevIdByLogicDevId, logicDevId, phyDevId);
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

static int acl_aclrtGetMemInfo(const acl_table *table, int attr, size_t *free_bytes, size_t *total) {
    return CALL(aclrtGetMemInfo, (aclrtMemAttr)attr, free_bytes, total);
}

static int acl_aclrtPointerGetAttributes(const acl_table *table, uintptr_t ptr, aclrtPtrAttributes *attributes) {
    return CALL(aclrtPointerGetAttributes, (const void *)ptr, attributes);
}

static int acl_aclrtMallocForTaskScheduler(const acl_table *table, uintptr_t *devPtr, size_t size, int policy,
                                           aclrtMallocConfig *cfg) {
    return CALL(aclrtMallocForTaskScheduler, (void **)devPtr, size, (aclrtMemMallocPolicy)policy, cfg);
}

static int acl_aclrtFreeWithDevSync(const acl_table *table, uintptr_t devPtr) {
    return CALL(aclrtFreeWithDevSync, (void *)devPtr);
}

static int acl_aclrtGetMemUsageInfo(const acl_table *table, int32_t deviceId, aclrtMemUsageInfo *memUsageInfo,
                                    size_t inputNum, size_t *outputNum) {
    return CALL(aclrtGetMemUsageInfo, deviceId, memUsageInfo, inputNum, outputNum);
}

static int acl_aclrtFreeHostWithDevSync(const acl_table *table, uintptr_t hostPtr) {
    return CALL(aclrtFreeHostWithDevSync, (void *)hostPtr);
}

static int acl_aclrtHostRegister(const acl_table *table, uintptr_t ptr, uint64_t size, int type, uintptr_t *devPtr) {
    return CALL(aclrtHostRegister, (void *)ptr, size, (aclrtHostRegisterType)type, (void **)devPtr);
}

static int acl_aclrtHostRegisterV2(const acl_table *table, uintptr_t ptr, uint64_t size, uint32_t flag) {
    return CALL(aclrtHostRegisterV2, (void *)ptr, size, flag);
}

static int acl_aclrtHostGetDevicePointer(const acl_table *table, uintptr_t pHost, uintptr_t *pDevice, uint32_t flag) {
    return CALL(aclrtHostGetDevicePointer, (void *)pHost, (void **)pDevice, flag);
}

static int acl_aclrtHostUnregister(const acl_table *table, uintptr_t ptr) {
    return CALL(aclrtHostUnregister, (void *)ptr);
}

/* ---- Copy and set ---- */

static int acl_aclrtMemcpy(const acl_table *table, uintptr_t dst, size_t destMax, uintptr_t src, size_t count,
                           int kind) {
    return CALL(aclrtMemcpy, (void *)dst, destMax, (const void *)src, count, (aclrtMemcpyKind)kind);
}

static int acl_aclrtMemcpyAsync(const acl_table *table, uintptr_t dst, size_t destMax, uintptr_t src, size_t count,
                                int kind, uintptr_t stream) {
    return CALL(aclrtMemcpyAsync, (void *)dst, destMax, (const void *)src, count, (aclrtMemcpyKind)kind,
                (aclrtStream)stream);
}

static int acl_aclrtMemcpy2d(const acl_table *table, uintptr_t dst, size_t dpitch, uintptr_t src, size_t spitch,
                             size_t width, size_t height, int kind) {
    return CALL(aclrtMemcpy2d, (void *)dst, dpitch, (const void *)src, spitch, width, height, (aclrtMemcpyKind)kind);
}

static int acl_aclrtMemcpy2dAsync(const acl_table *table, uintptr_t dst, size_t dpitch, uintptr_t src, size_t spitch,
                                  size_t width, size_t height, int kind, uintptr_t stream) {
    return CALL(aclrtMemcpy2dAsync, (void *)dst, dpitch, (const void *)src, spitch, width, height,
                (aclrtMemcpyKind)kind, (aclrtStream)stream);
}

static int acl_aclrtMemcpyBatch(const acl_table *table, uintptr_t *dsts, size_t *destMaxs, uintptr_t *srcs,
                                size_t *sizes, size_t numBatches, aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes,
                                size_t numAttrs, size_t *failIndex) {
    return CALL(aclrtMemcpyBatch, (void **)dsts, destMaxs, (void **)srcs, sizes, numBatches, attrs, attrsIndexes,
                numAttrs, failIndex);
}

static int acl_aclrtMemcpyBatchAsync(const acl_table *table, uintptr_t *dsts, size_t *destMaxs, uintptr_t *srcs,
                                     size_t *sizes, size_t numBatches, aclrtMemcpyBatchAttr *attrs,
                                     size_t *attrsIndexes, size_t numAttrs, size_t *failIndex, uintptr_t stream) {
    return CALL(aclrtMemcpyBatchAsync, (void **)dsts, destMaxs, (void **)srcs, sizes, numBatches, attrs, attrsIndexes,
                numAttrs, failIndex, (aclrtStream)stream);
}

static int acl_aclrtMemset(const acl_table *table, uintptr_t devPtr, size_t maxCount, int32_t value, size_t count) {
    return CALL(aclrtMemset, (void *)devPtr, maxCount, value, count);
}

static int acl_aclrtMemsetAsync(const acl_table *table, uintptr_t devPtr, size_t maxCount, int32_t value, size_t count,
                                uintptr_t stream) {
    return CALL(aclrtMemsetAsync, (void *)devPtr, maxCount, value, count, (aclrtStream)stream);
}

static int acl_aclrtMemsetD32(const acl_table *table, uintptr_t ptr, size_t memSize, uint32_t value, size_t N) {
    return CALL(aclrtMemsetD32, (void *)ptr, memSize, value, N);
}

static int acl_aclrtMemsetD32Async(const acl_table *table, uintptr_t ptr, size_t memSize, uint32_t value, size_t N,
                                   uintptr_t stream) {
    return CALL(aclrtMemsetD32Async, (void *)ptr, memSize, value, N, (aclrtStream)stream);
}

/* ---- Virtual memory ---- */

static int acl_aclrtReserveMemAddress(const acl_table *table, uintptr_t *virPtr, size_t size, size_t alignment,
                                      uintptr_t expectPtr, uint64_t flags) {
    return CALL(aclrtReserveMemAddress, (void **)virPtr, size, alignment, (void *)expectPtr, flags);
}

static int acl_aclrtReserveMemAddressNoUCMemory(const acl_table *table, uintptr_t *virPtr, size_t size,
                                                size_t alignment, uintptr_t expectPtr, uint64_t flags) {
    return CALL(aclrtReserveMemAddressNoUCMemory, (void **)virPtr, size, alignment, (void *)expectPtr, flags);
}

static int acl_aclrtReleaseMemAddress(const acl_table *table, uintptr_t virPtr) {
    return CALL(aclrtReleaseMemAddress, (void *)virPtr);
}

static int acl_aclrtMallocPhysical(const acl_table *table, uintptr_t *handle, size_t size,
                                   const aclrtPhysicalMemProp *prop, uint64_t flags) {
    return CALL(aclrtMallocPhysical, (aclrtDrvMemHandle *)handle, size, prop, flags);
}

static int acl_aclrtFreePhysical(const acl_table *table, uintptr_t handle) {
    return CALL(aclrtFreePhysical, (aclrtDrvMemHandle)handle);
}

static int acl_aclrtMapMem(const acl_table *table, uintptr_t virPtr, size_t size, size_t offset, uintptr_t handle,
                           uint64_t flags) {
    return CALL(aclrtMapMem, (void *)virPtr, size, offset, (aclrtDrvMemHandle)handle, flags);
}

static int acl_aclrtMemMapNoAccess(const acl_table *table, uintptr_t virPtr, size_t size, size_t offset,
                                   uintptr_t handle, uint64_t flags) {
    return CALL(aclrtMemMapNoAccess, (void *)virPtr, size, offset, (aclrtDrvMemHandle)handle, flags);
}

static int acl_aclrtUnmapMem(const acl_table *table, uintptr_t virPtr) {
    return CALL(aclrtUnmapMem, (void *)virPtr);
}

static int acl_aclrtMemSetAccess(const acl_table *table, uintptr_t virPtr, size_t size, aclrtMemAccessDesc *desc,
                                 size_t count) {
    return CALL(aclrtMemSetAccess, (void *)virPtr, size, desc, count);
}

static int acl_aclrtMemGetAccess(const acl_table *table, uintptr_t virPtr, aclrtMemLocation *location, uint64_t *flag) {
    return CALL(aclrtMemGetAccess, (void *)virPtr, location, flag);
}

static int acl_aclrtMemGetAllocationGranularity(const acl_table *table, aclrtPhysicalMemProp *prop, int option,
                                                size_t *granularity) {
    return CALL(aclrtMemGetAllocationGranularity, prop, (aclrtMemGranularityOptions)option, granularity);
}

static int acl_aclrtMemRetainAllocationHandle(const acl_table *table, uintptr_t virPtr, uintptr_t *handle) {
    return CALL(aclrtMemRetainAllocationHandle, (void *)virPtr, (aclrtDrvMemHandle *)handle);
}

static int acl_aclrtMemGetAllocationPropertiesFromHandle(const acl_table *table, uintptr_t handle,
                                                         aclrtPhysicalMemProp *prop) {
    return CALL(aclrtMemGetAllocationPropertiesFromHandle, (aclrtDrvMemHandle)handle, prop);
}

static int acl_aclrtMemGetAddressRange(const acl_table *table, uintptr_t ptr, uintptr_t *pbase, size_t *psize) {
    return CALL(aclrtMemGetAddressRange, (void *)ptr, (void **)pbase, psize);
}

static int acl_aclrtMemExportToShareableHandle(const acl_table *table, uintptr_t handle, int handleType, uint64_t flags,
                                               uint64_t *shareableHandle) {
    return CALL(aclrtMemExportToShareableHandle, (aclrtDrvMemHandle)handle, (aclrtMemHandleType)handleType, flags,
                shareableHandle);
}

static int acl_aclrtMemExportToShareableHandleV2(const acl_table *table, uintptr_t handle, uint64_t flags,
                                                 int shareType, uintptr_t shareableHandle) {
    return CALL(aclrtMemExportToShareableHandleV2, (aclrtDrvMemHandle)handle, flags,
                (aclrtMemSharedHandleType)shareType, (void *)shareableHandle);
}

static int acl_aclrtMemImportFromShareableHandle(const acl_table *table, uint64_t shareableHandle, int32_t deviceId,
                                                 uintptr_t *handle) {
    return CALL(aclrtMemImportFromShareableHandle, shareableHandle, deviceId, (aclrtDrvMemHandle *)handle);
}

static int acl_aclrtMemImportFromShareableHandleV2(const acl_table *table, uintptr_t shareableHandle, int shareType,
                                                   uint64_t flags, uintptr_t *handle) {
    return CALL(aclrtMemImportFromShareableHandleV2, (void *)shareableHandle, (aclrtMemSharedHandleType)shareType,
                flags, (aclrtDrvMemHandle *)handle);
}

static int acl_aclrtMemSetPidToShareableHandle(const acl_table *table, uint64_t shareableHandle, int32_t *pid,
                                               size_t pidNum) {
    return CALL(aclrtMemSetPidToShareableHandle, shareableHandle, pid, pidNum);
}

static int acl_aclrtMemSetPidToShareableHandleV2(const acl_table *table, uintptr_t shareableHandle, int shareType,
                                                 int32_t *pid, size_t pidNum) {
    return CALL(aclrtMemSetPidToShareableHandleV2, (void *)shareableHandle, (aclrtMemSharedHandleType)shareType, pid,
                pidNum);
}

/* ---- Streams ---- */

static int acl_aclrtCreateStream(const acl_table *table, uintptr_t *stream) {
    return CALL(aclrtCreateStream, (aclrtStream *)stream);
}

static int acl_aclrtCreateStreamWithConfig(const acl_table *table, uintptr_t *stream, uint32_t priority,
                                           uint32_t flag) {
    return CALL(aclrtCreateStreamWithConfig, (aclrtStream *)stream, priority, flag);
}

static int acl_aclrtDestroyStream(const acl_table *table, uintptr_t stream) {
    return CALL(aclrtDestroyStream, (aclrtStream)stream);
}

static int acl_aclrtDestroyStreamForce(const acl_table *table, uintptr_t stream) {
    return CALL(aclrtDestroyStreamForce, (aclrtStream)stream);
}

static int acl_aclrtSynchronizeStream(const acl_table *table, uintptr_t stream) {
    return CALL(aclrtSynchronizeStream, (aclrtStream)stream);
}

static int acl_aclrtSynchronizeStreamWithTimeout(const acl_table *table, uintptr_t stream, int32_t timeout) {
    return CALL(aclrtSynchronizeStreamWithTimeout, (aclrtStream)stream, timeout);
}

static int acl_aclrtStreamQuery(const acl_table *table, uintptr_t stream, int *status) {
    return CALL(aclrtStreamQuery, (aclrtStream)stream, (aclrtStreamStatus *)status);
}

static int acl_aclrtStreamGetId(const acl_table *table, uintptr_t stream, int32_t *streamId) {
    return CALL(aclrtStreamGetId, (aclrtStream)stream, streamId);
}

static int acl_aclrtStreamGetPriority(const acl_table *table, uintptr_t stream, uint32_t *priority) {
    return CALL(aclrtStreamGetPriority, (aclrtStream)stream, priority);
}

static int acl_aclrtStreamGetFlags(const acl_table *table, uintptr_t stream, uint32_t *flags) {
    return CALL(aclrtStreamGetFlags, (aclrtStream)stream, flags);
}

static int acl_aclrtDeviceGetStreamPriorityRange(const acl_table *table, int32_t *leastPriority,
                                                 int32_t *greatestPriority) {
    return CALL(aclrtDeviceGetStreamPriorityRange, leastPriority, greatestPriority);
}

static int acl_aclrtSetStreamFailureMode(const acl_table *table, uintptr_t stream, uint64_t mode) {
    return CALL(aclrtSetStreamFailureMode, (aclrtStream)stream, mode);
}

static int acl_aclrtValueWrite(const acl_table *table, uintptr_t devAddr, uint64_t value, uint32_t flag,
                               uintptr_t stream) {
    return CALL(aclrtValueWrite, (void *)devAddr, value, flag, (aclrtStream)stream);
}

static int acl_aclrtValueWait(const acl_table *table, uintptr_t devAddr, uint64_t value, uint32_t flag,
                              uintptr_t stream) {
    return CALL(aclrtValueWait, (void *)devAddr, value, flag, (aclrtStream)stream);
}

static int acl_aclrtStreamAbort(const acl_table *table, uintptr_t stream) {
    return CALL(aclrtStreamAbort, (aclrtStream)stream);
}

static int acl_aclrtRegStreamStateCallback(const acl_table *table, const char *regName, uintptr_t callback,
                                           uintptr_t args) {
    return CALL(aclrtRegStreamStateCallback, regName, (aclrtStreamStateCallback)callback, (void *)args);
}

static int acl_aclrtGetThreadLastTaskId(const acl_table *table, uint32_t *taskId) {
    return CALL(aclrtGetThreadLastTaskId, taskId);
}

/* ---- Callbacks on streams ---- */

static int acl_aclrtLaunchCallback(const acl_table *table, uintptr_t fn, uintptr_t userData, int blockType,
                                   uintptr_t stream) {
    return CALL(aclrtLaunchCallback, (aclrtCallback)fn, (void *)userData, (aclrtCallbackBlockType)blockType,
                (aclrtStream)stream);
}

static int acl_aclrtSubscribeReport(const acl_table *table, uint64_t threadId, uintptr_t stream) {
    return CALL(aclrtSubscribeReport, threadId, (aclrtStream)stream);
}

static int acl_aclrtUnSubscribeReport(const acl_table *table, uint64_t threadId, uintptr_t stream) {
    return CALL(aclrtUnSubscribeReport, threadId, (aclrtStream)stream);
}

static int acl_aclrtProcessReport(const acl_table *table, int32_t timeout) {
    return CALL(aclrtProcessReport, timeout);
}

static int acl_aclrtLaunchHostFunc(const acl_table *table, uintptr_t stream, uintptr_t fn, uintptr_t args) {
    return CALL(aclrtLaunchHostFunc, (aclrtStream)stream, (aclrtHostFunc)fn, (void *)args);
}

static int acl_aclrtSubscribeHostFunc(const acl_table *table, uint64_t hostFuncThreadId, uintptr_t exeStream) {
    return CALL(aclrtSubscribeHostFunc, hostFuncThreadId, (aclrtStream)exeStream);
}

static int acl_aclrtUnSubscribeHostFunc(const acl_table *table, uint64_t hostFuncThreadId, uintptr_t exeStream) {
    return CALL(aclrtUnSubscribeHostFunc, hostFuncThreadId, (aclrtStream)exeStream);
}

static int acl_aclrtProcessHostFunc(const acl_table *table, int32_t timeout) {
    return CALL(aclrtProcessHostFunc, timeout);
}

static int acl_aclrtSetExceptionInfoCallback(const acl_table *table, uintptr_t callback) {
    return CALL(aclrtSetExceptionInfoCallback, (aclrtExceptionInfoCallback)callback);
}

static uint32_t acl_aclrtGetTaskIdFromExceptionInfo(const acl_table *table, uintptr_t info) {
    return CALL_OR(UINT32_MAX, aclrtGetTaskIdFromExceptionInfo, (const aclrtExceptionInfo *)info);
}

static uint32_t acl_aclrtGetStreamIdFromExceptionInfo(const acl_table *table, uintptr_t info) {
    return CALL_OR(UINT32_MAX, aclrtGetStreamIdFromExceptionInfo, (const aclrtExceptionInfo *)info);
}

static uint32_t acl_aclrtGetThreadIdFromExceptionInfo(const acl_table *table, uintptr_t info) {
    return CALL_OR(UINT32_MAX, aclrtGetThreadIdFromExceptionInfo, (const aclrtExceptionInfo *)info);
}

static uint32_t acl_aclrtGetDeviceIdFromExceptionInfo(const acl_table *table, uintptr_t info) {
    return CALL_OR(UINT32_MAX, aclrtGetDeviceIdFromExceptionInfo, (const aclrtExceptionInfo *)info);
}

static uint32_t acl_aclrtGetErrorCodeFromExceptionInfo(const acl_table *table, uintptr_t info) {
    return CALL_OR(UINT32_MAX, aclrtGetErrorCodeFromExceptionInfo, (const aclrtExceptionInfo *)info);
}

/* ---- Events and notifies ---- */

static int acl_aclrtCreateEvent(const acl_table *table, uintptr_t *event) {
    return CALL(aclrtCreateEvent, (aclrtEvent *)event);
}

static int acl_aclrtCreateEventExWithFlag(const acl_table *table, uintptr_t *event, uint32_t flag) {
    return CALL(aclrtCreateEventExWithFlag, (aclrtEvent *)event, flag);
}

static int acl_aclrtCreateEventWithFlag(const acl_table *table, uintptr_t *event, uint32_t flag) {
    return CALL(aclrtCreateEventWithFlag, (aclrtEvent *)event, flag);
}

static int acl_aclrtDestroyEvent(const acl_table *table, uintptr_t event) {
    return CALL(aclrtDestroyEvent, (aclrtEvent)event);
}

static int acl_aclrtEventElapsedTime(const acl_table *table, float *ms, uintptr_t startEvent, uintptr_t endEvent) {
    return CALL(aclrtEventElapsedTime, ms, (aclrtEvent)startEvent, (aclrtEvent)endEvent);
}

static int acl_aclrtEventGetTimestamp(const acl_table *table, uintptr_t event, uint64_t *timestamp) {
    return CALL(aclrtEventGetTimestamp, (aclrtEvent)event, timestamp);
}

static int acl_aclrtQueryEventStatus(const acl_table *table, uintptr_t event, int *status) {
    return CALL(aclrtQueryEventStatus, (aclrtEvent)event, (aclrtEventRecordedStatus *)status);
}

static int acl_aclrtRecordEvent(const acl_table *table, uintptr_t event, uintptr_t stream) {
    return CALL(aclrtRecordEvent, (aclrtEvent)event, (aclrtStream)stream);
}

static int acl_aclrtResetEvent(const acl_table *table, uintptr_t event, uintptr_t stream) {
    return CALL(aclrtResetEvent, (aclrtEvent)event, (aclrtStream)stream);
}

static int acl_aclrtStreamWaitEvent(const acl_table *table, uintptr_t stream, uintptr_t event) {
    return CALL(aclrtStreamWaitEvent, (aclrtStream)stream, (aclrtEvent)event);
}

static int acl_aclrtSynchronizeEvent(const acl_table *table, uintptr_t event) {
    return CALL(aclrtSynchronizeEvent, (aclrtEvent)event);
}

static int acl_aclrtSynchronizeEventWithTimeout(const acl_table *table, uintptr_t event, int32_t timeout) {
    return CALL(aclrtSynchronizeEventWithTimeout, (aclrtEvent)event, timeout);
}

static int acl_aclrtIpcGetEventHandle(const acl_table *table, uintptr_t event, aclrtIpcEventHandle *handle) {
    return CALL(aclrtIpcGetEventHandle, (aclrtEvent)event, handle);
}

static int acl_aclrtIpcOpenEventHandle(const acl_table *table, const aclrtIpcEventHandle *handle, uintptr_t *event) {
    return CALL(aclrtIpcOpenEventHandle, *handle, (aclrtEvent *)event);
}

static int acl_aclrtQueryEventWaitStatus(const acl_table *table, uintptr_t event, int *status) {
    return CALL(aclrtQueryEventWaitStatus, (aclrtEvent)event, (aclrtEventWaitStatus *)status);
}

static int acl_aclrtRecordEventWithFlag(const acl_table *table, uintptr_t event, uintptr_t stream, uint32_t flag) {
    return CALL(aclrtRecordEventWithFlag, (aclrtEvent)event, (aclrtStream)stream, flag);
}

static int acl_aclrtSetOpWaitTimeout(const acl_table *table, uint32_t timeout) {
    return CALL(aclrtSetOpWaitTimeout, timeout);
}

static int acl_aclrtStreamWaitEventWithFlag(const acl_table *table, uintptr_t stream, uintptr_t event, uint32_t timeout,
                                            uint32_t flag) {
    return CALL(aclrtStreamWaitEventWithFlag, (aclrtStream)stream, (aclrtEvent)event, timeout, flag);
}

static int acl_aclrtCreateNotify(const acl_table *table, uintptr_t *notify, uint64_t flag) {
    return CALL(aclrtCreateNotify, (aclrtNotify *)notify, flag);
}

static int acl_aclrtDestroyNotify(const acl_table *table, uintptr_t notify) {
    return CALL(aclrtDestroyNotify, (aclrtNotify)notify);
}

static int acl_aclrtNotifyGetExportKey(const acl_table *table, uintptr_t notify, char *key, size_t len,
                                       uint64_t flags) {
    return CALL(aclrtNotifyGetExportKey, (aclrtNotify)notify, key, len, flags);
}

static int acl_aclrtNotifyImportByKey(const acl_table *table, uintptr_t *notify, const char *key, uint64_t flags) {
    return CALL(aclrtNotifyImportByKey, (aclrtNotify *)notify, key, flags);
}

static int acl_aclrtNotifySetImportPid(const acl_table *table, uintptr_t notify, int32_t *pid, size_t num) {
    return CALL(aclrtNotifySetImportPid, (aclrtNotify)notify, pid, num);
}

static int acl_aclrtRecordNotify(const acl_table *table, uintptr_t notify, uintptr_t stream) {
    return CALL(aclrtRecordNotify, (aclrtNotify)notify, (aclrtStream)stream);
}

static int acl_aclrtWaitAndResetNotify(const acl_table *table, uintptr_t notify, uintptr_t stream, uint32_t timeout) {
    return CALL(aclrtWaitAndResetNotify, (aclrtNotify)notify, (aclrtStream)stream, timeout);
}

/* ---- Memory shared between processes ---- */

static int acl_aclrtIpcMemGetExportKey(const acl_table *table, uintptr_t devPtr, size_t size, char *key, size_t len,
                                       uint64_t flags) {
    return CALL(aclrtIpcMemGetExportKey, (void *)devPtr, size, key, len, flags);
}

static int acl_aclrtIpcMemImportByKey(const acl_table *table, uintptr_t *devPtr, const char *key, uint64_t flags) {
    return CALL(aclrtIpcMemImportByKey, (void **)devPtr, key, flags);
}

static int acl_aclrtIpcMemClose(const acl_table *table, const char *key) {
    return CALL(aclrtIpcMemClose, key);
}

static int acl_aclrtIpcMemSetImportPid(const acl_table *table, const char *key, int32_t *pid, size_t num) {
    return CALL(aclrtIpcMemSetImportPid, key, pid, num);
}

/* ---- Memory pools in stream order, managed memory ---- */

static int acl_aclrtMemPoolCreate(const acl_table *table, uintptr_t *memPool, const aclrtMemPoolProps *poolProps) {
    return CALL(aclrtMemPoolCreate, (aclrtMemPool *)memPool, poolProps);
}

static int acl_aclrtMemPoolDestroy(const acl_table *table, uintptr_t memPool) {
    return CALL(aclrtMemPoolDestroy, (const aclrtMemPool)memPool);
}

static int acl_aclrtMemPoolFreeAsync(const acl_table *table, uintptr_t ptr, uintptr_t stream) {
    return CALL(aclrtMemPoolFreeAsync, (void *)ptr, (aclrtStream)stream);
}

static int acl_aclrtMemPoolGetAttr(const acl_table *table, uintptr_t memPool, int attr, uintptr_t value) {
    return CALL(aclrtMemPoolGetAttr, (aclrtMemPool)memPool, (aclrtMemPoolAttr)attr, (void *)value);
}

static int acl_aclrtMemPoolMallocAsync(const acl_table *table, uintptr_t *ptr, size_t size, uintptr_t memPool,
                                       uintptr_t stream) {
    return CALL(aclrtMemPoolMallocAsync, (void **)ptr, size, (aclrtMemPool)memPool, (aclrtStream)stream);
}

static int acl_aclrtMemPoolSetAttr(const acl_table *table, uintptr_t memPool, int attr, uintptr_t value) {
    return CALL(aclrtMemPoolSetAttr, (aclrtMemPool)memPool, (aclrtMemPoolAttr)attr, (void *)value);
}

static int acl_aclrtMemPoolTrimTo(const acl_table *table, uintptr_t memPool, size_t minBytesToKeep) {
    return CALL(aclrtMemPoolTrimTo, (aclrtMemPool)memPool, minBytesToKeep);
}

static int acl_aclrtMemAllocManaged(const acl_table *table, uintptr_t *ptr, uint64_t size, uint32_t flag) {
    return CALL(aclrtMemAllocManaged, (void **)ptr, size, flag);
}

/* ---- Custom allocators of streams ---- */

static uintptr_t acl_aclrtAllocatorCreateDesc(const acl_table *table) {
    return (uintptr_t)CALL_OR(NULL, aclrtAllocatorCreateDesc);
}

static int acl_aclrtAllocatorDestroyDesc(const acl_table *table, uintptr_t allocatorDesc) {
    return CALL(aclrtAllocatorDestroyDesc, (aclrtAllocatorDesc)allocatorDesc);
}

static int acl_aclrtAllocatorSetObjToDesc(const acl_table *table, uintptr_t allocatorDesc, uintptr_t allocator) {
    return CALL(aclrtAllocatorSetObjToDesc, (aclrtAllocatorDesc)allocatorDesc, (aclrtAllocator)allocator);
}

static int acl_aclrtAllocatorSetAllocFuncToDesc(const acl_table *table, uintptr_t allocatorDesc, uintptr_t func) {
    return CALL(aclrtAllocatorSetAllocFuncToDesc, (aclrtAllocatorDesc)allocatorDesc, (aclrtAllocatorAllocFunc)func);
}

static int acl_aclrtAllocatorSetFreeFuncToDesc(const acl_table *table, uintptr_t allocatorDesc, uintptr_t func) {
    return CALL(aclrtAllocatorSetFreeFuncToDesc, (aclrtAllocatorDesc)allocatorDesc, (aclrtAllocatorFreeFunc)func);
}

static int acl_aclrtAllocatorSetAllocAdviseFuncToDesc(const acl_table *table, uintptr_t allocatorDesc, uintptr_t func) {
    return CALL(aclrtAllocatorSetAllocAdviseFuncToDesc, (aclrtAllocatorDesc)allocatorDesc,
                (aclrtAllocatorAllocAdviseFunc)func);
}

static int acl_aclrtAllocatorSetGetAddrFromBlockFuncToDesc(const acl_table *table, uintptr_t allocatorDesc,
                                                           uintptr_t func) {
    return CALL(aclrtAllocatorSetGetAddrFromBlockFuncToDesc, (aclrtAllocatorDesc)allocatorDesc,
                (aclrtAllocatorGetAddrFromBlockFunc)func);
}

static int acl_aclrtAllocatorRegister(const acl_table *table, uintptr_t stream, uintptr_t allocatorDesc) {
    return CALL(aclrtAllocatorRegister, (aclrtStream)stream, (aclrtAllocatorDesc)allocatorDesc);
}

static int acl_aclrtAllocatorGetByStream(const acl_table *table, uintptr_t stream, uintptr_t *allocatorDesc,
                                         uintptr_t *allocator, uintptr_t *allocFunc, uintptr_t *freeFunc,
                                         uintptr_t *allocAdviseFunc, uintptr_t *getAddrFromBlockFunc) {
    return CALL(aclrtAllocatorGetByStream, (aclrtStream)stream, (aclrtAllocatorDesc *)allocatorDesc,
                (aclrtAllocator *)allocator, (aclrtAllocatorAllocFunc *)allocFunc, (aclrtAllocatorFreeFunc *)freeFunc,
                (aclrtAllocatorAllocAdviseFunc *)allocAdviseFunc,
                (aclrtAllocatorGetAddrFromBlockFunc *)getAddrFromBlockFunc);
}

static int acl_aclrtAllocatorUnregister(const acl_table *table, uintptr_t stream) {
    return CALL(aclrtAllocatorUnregister, (aclrtStream)stream);
}

/* ---- Versions, figures, limits, modes; what is done to memory in stream order; variables of a device ---- */

static int acl_aclsysGetVersionStr(const acl_table *table, char *pkgName, char *versionStr) {
    return CALL(aclsysGetVersionStr, pkgName, versionStr);
}

static int acl_aclsysGetVersionNum(const acl_table *table, char *pkgName, int32_t *versionNum) {
    return CALL(aclsysGetVersionNum, pkgName, versionNum);
}

static int acl_aclGetCannAttribute(const acl_table *table, int cannAttr, int32_t *value) {
    return CALL(aclGetCannAttribute, (aclCannAttr)cannAttr, value);
}

static int acl_aclGetDeviceCapability(const acl_table *table, uint32_t deviceId, int deviceInfo, int64_t *value) {
    return CALL(aclGetDeviceCapability, deviceId, (aclDeviceInfo)deviceInfo, value);
}

static int acl_aclrtCheckArchCompatibility(const acl_table *table, const char *socVersion, int32_t *canCompatible) {
    return CALL(aclrtCheckArchCompatibility, socVersion, canCompatible);
}

static int acl_aclrtGetDeviceUtilizationRate(const acl_table *table, int32_t deviceId,
                                             aclrtUtilizationInfo *utilizationInfo) {
    return CALL(aclrtGetDeviceUtilizationRate, deviceId, utilizationInfo);
}

static int acl_aclrtHostMemMapCapabilities(const acl_table *table, uint32_t deviceId, int hacType, int *capabilities) {
    return CALL(aclrtHostMemMapCapabilities, deviceId, (aclrtHacType)hacType,
                (aclrtHostMemMapCapability *)capabilities);
}

static int acl_aclrtSetDeviceResLimit(const acl_table *table, int32_t deviceId, int type, uint32_t value) {
    return CALL(aclrtSetDeviceResLimit, deviceId, (aclrtDevResLimitType)type, value);
}

static int acl_aclrtGetDeviceResLimit(const acl_table *table, int32_t deviceId, int type, uint32_t *value) {
    return CALL(aclrtGetDeviceResLimit, deviceId, (aclrtDevResLimitType)type, value);
}

static int acl_aclrtResetDeviceResLimit(const acl_table *table, int32_t deviceId) {
    return CALL(aclrtResetDeviceResLimit, deviceId);
}

static int acl_aclrtSetStreamResLimit(const acl_table *table, uintptr_t stream, int type, uint32_t value) {
    return CALL(aclrtSetStreamResLimit, (aclrtStream)stream, (aclrtDevResLimitType)type, value);
}

static int acl_aclrtGetStreamResLimit(const acl_table *table, uintptr_t stream, int type, uint32_t *value) {
    return CALL(aclrtGetStreamResLimit, (aclrtStream)stream, (aclrtDevResLimitType)type, value);
}

static int acl_aclrtResetStreamResLimit(const acl_table *table, uintptr_t stream) {
    return CALL(aclrtResetStreamResLimit, (aclrtStream)stream);
}

static int acl_aclrtUseStreamResInCurrentThread(const acl_table *table, uintptr_t stream) {
    return CALL(aclrtUseStreamResInCurrentThread, (aclrtStream)stream);
}

static int acl_aclrtUnuseStreamResInCurrentThread(const acl_table *table, uintptr_t stream) {
    return CALL(aclrtUnuseStreamResInCurrentThread, (aclrtStream)stream);
}

static int acl_aclrtGetResInCurrentThread(const acl_table *table, int type, uint32_t *value) {
    return CALL(aclrtGetResInCurrentThread, (aclrtDevResLimitType)type, value);
}

static int acl_aclrtSetDeviceSatMode(const acl_table *table, int mode) {
    return CALL(aclrtSetDeviceSatMode, (aclrtFloatOverflowMode)mode);
}

static int acl_aclrtGetDeviceSatMode(const acl_table *table, int *mode) {
    return CALL(aclrtGetDeviceSatMode, (aclrtFloatOverflowMode *)mode);
}

static int acl_aclrtSetStreamOverflowSwitch(const acl_table *table, uintptr_t stream, uint32_t flag) {
    return CALL(aclrtSetStreamOverflowSwitch, (aclrtStream)stream, flag);
}

static int acl_aclrtGetStreamOverflowSwitch(const acl_table *table, uintptr_t stream, uint32_t *flag) {
    return CALL(aclrtGetStreamOverflowSwitch, (aclrtStream)stream, flag);
}

static int acl_aclrtGetOverflowStatus(const acl_table *table, uintptr_t outputAddr, size_t outputSize,
                                      uintptr_t stream) {
    return CALL(aclrtGetOverflowStatus, (void *)outputAddr, outputSize, (aclrtStream)stream);
}

static int acl_aclrtResetOverflowStatus(const acl_table *table, uintptr_t stream) {
    return CALL(aclrtResetOverflowStatus, (aclrtStream)stream);
}

static int acl_aclrtSetOpExecuteTimeOut(const acl_table *table, uint32_t timeout) {
    return CALL(aclrtSetOpExecuteTimeOut, timeout);
}

static int acl_aclrtSetOpExecuteTimeOutV2(const acl_table *table, uint64_t timeout, uint64_t *actualTimeout) {
    return CALL(aclrtSetOpExecuteTimeOutV2, timeout, actualTimeout);
}

static int acl_aclrtDeviceTaskAbort(const acl_table *table, int32_t deviceId, uint32_t timeout) {
    return CALL(aclrtDeviceTaskAbort, deviceId, timeout);
}

static int acl_aclrtStreamStop(const acl_table *table, uintptr_t stream) {
    return CALL(aclrtStreamStop, (aclrtStream)stream);
}

static int acl_aclrtMemcpyAsyncWithCondition(const acl_table *table, uintptr_t dst, size_t destMax, uintptr_t src,
                                             size_t count, int kind, uintptr_t stream) {
    return CALL(aclrtMemcpyAsyncWithCondition, (void *)dst, destMax, (const void *)src, count, (aclrtMemcpyKind)kind,
                (aclrtStream)stream);
}

static int acl_aclrtReduceAsync(const acl_table *table, uintptr_t dst, uintptr_t src, uint64_t count, int kind,
                                int type, uintptr_t stream, uintptr_t reserve) {
    return CALL(aclrtReduceAsync, (void *)dst, (const void *)src, count, (aclrtReduceKind)kind, (aclDataType)type,
                (aclrtStream)stream, (void *)reserve);
}

static int acl_aclrtCmoAsync(const acl_table *table, uintptr_t src, size_t size, int cmoType, uintptr_t stream) {
    return CALL(aclrtCmoAsync, (void *)src, size, (aclrtCmoType)cmoType, (aclrtStream)stream);
}

static int acl_aclrtMemFlush(const acl_table *table, uintptr_t devPtr, size_t size) {
    return CALL(aclrtMemFlush, (void *)devPtr, size);
}

static int acl_aclrtMemInvalidate(const acl_table *table, uintptr_t devPtr, size_t size) {
    return CALL(aclrtMemInvalidate, (void *)devPtr, size);
}

static int acl_aclrtMemP2PMap(const acl_table *table, uintptr_t devPtr, size_t size, int32_t dstDevId, uint64_t flags) {
    return CALL(aclrtMemP2PMap, (void *)devPtr, size, dstDevId, flags);
}

static int acl_aclrtIpcMemSetAttr(const acl_table *table, const char *key, int type, uint64_t attr) {
    return CALL(aclrtIpcMemSetAttr, key, (aclrtIpcMemAttrType)type, attr);
}

static int acl_aclrtMemMapSetLink(const acl_table *table, uintptr_t handle, int adviceLink) {
    return CALL(aclrtMemMapSetLink, (aclrtDrvMemHandle)handle, (aclrtMemLinkType)adviceLink);
}

static int acl_aclrtMemMapSelectedLink(const acl_table *table, uintptr_t virPtrDst, size_t size, uintptr_t virPtrSrc,
                                       uint32_t linkIdx) {
    return CALL(aclrtMemMapSelectedLink, (void *)virPtrDst, size, (void *)virPtrSrc, linkIdx);
}

static int acl_aclrtGetSymbolAddress(const acl_table *table, uintptr_t symbol, uintptr_t *devPtr) {
    return CALL(aclrtGetSymbolAddress, (const void *)symbol, (void **)devPtr);
}

static int acl_aclrtGetSymbolSize(const acl_table *table, uintptr_t symbol, size_t *size) {
    return CALL(aclrtGetSymbolSize, (const void *)symbol, size);
}

static int acl_aclrtMemcpyToSymbol(const acl_table *table, uintptr_t symbol, uintptr_t src, size_t count, size_t offset,
                                   int kind) {
    return CALL(aclrtMemcpyToSymbol, (const void *)symbol, (const void *)src, count, offset, (aclrtMemcpyKind)kind);
}

static int acl_aclrtMemcpyToSymbolAsync(const acl_table *table, uintptr_t symbol, uintptr_t src, size_t count,
                                        size_t offset, int kind, uintptr_t stream) {
    return CALL(aclrtMemcpyToSymbolAsync, (const void *)symbol, (const void *)src, count, offset, (aclrtMemcpyKind)kind,
                (aclrtStream)stream);
}

static int acl_aclrtMemcpyFromSymbol(const acl_table *table, uintptr_t dst, size_t dstMax, uintptr_t symbol,
                                     size_t count, size_t offset, int kind) {
    return CALL(aclrtMemcpyFromSymbol, (void *)dst, dstMax, (const void *)symbol, count, offset, (aclrtMemcpyKind)kind);
}

static int acl_aclrtMemcpyFromSymbolAsync(const acl_table *table, uintptr_t dst, size_t dstMax, uintptr_t symbol,
                                          size_t count, size_t offset, int kind, uintptr_t stream) {
    return CALL(aclrtMemcpyFromSymbolAsync, (void *)dst, dstMax, (const void *)symbol, count, offset,
                (aclrtMemcpyKind)kind, (aclrtStream)stream);
}

/* ---- Two calls for one crossing ---- */

#define ACL_SHIM_CONTEXT_REFUSED ((int64_t)1 << 32)

#define ACL_SHIM_ANSWER ((int64_t)1 << 33)

/* 0, or the code of a context that cannot be made current. */
static int64_t enter(const acl_table *table, uintptr_t context) {
    int code = CALL(aclrtSetCurrentContext, (aclrtContext)context);
    return code == ACL_SUCCESS ? ACL_SUCCESS : ACL_SHIM_CONTEXT_REFUSED + code;
}

static int64_t acl_query_stream(const acl_table *table, uintptr_t context, uintptr_t stream) {
    aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
    int64_t code = enter(table, context);
    if (code == ACL_SUCCESS)
        code = CALL(aclrtStreamQuery, (aclrtStream)stream, &status);
    return code == ACL_SUCCESS ? ACL_SHIM_ANSWER + status : code;
}

static int64_t acl_query_event(const acl_table *table, uintptr_t context, uintptr_t event) {
    aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    int64_t code = enter(table, context);
    if (code == ACL_SUCCESS)
        code = CALL(aclrtQueryEventStatus, (aclrtEvent)event, &status);
    return code == ACL_SUCCESS ? ACL_SHIM_ANSWER + status : code;
}

static int64_t acl_record_event(const acl_table *table, uintptr_t context, uintptr_t event, uintptr_t stream) {
    int64_t code = enter(table, context);
    return code == ACL_SUCCESS ? CALL(aclrtRecordEvent, (aclrtEvent)event, (aclrtStream)stream) : code;
}

static int64_t acl_mem_info(const acl_table *table, uintptr_t context, int attr, size_t *figures) {
    int64_t code = enter(table, context);
    return code == ACL_SUCCESS ? CALL(aclrtGetMemInfo, (aclrtMemAttr)attr, &figures[0], &figures[1]) : code;
}

static int64_t copy_in_context(const acl_table *table, uintptr_t context, void *dst, size_t dst_max, const void *src,
                               size_t count, aclrtMemcpyKind kind) {
    int64_t code = enter(table, context);
    return code == ACL_SUCCESS ? CALL(aclrtMemcpy, dst, dst_max, src, count, kind) : code;
}

static int64_t acl_copy_in(const acl_table *table, uintptr_t context, uintptr_t dst, size_t dst_max, const void *src,
                           size_t count) {
    return copy_in_context(table, context, (void *)dst, dst_max, src, count, ACL_MEMCPY_HOST_TO_DEVICE);
}

static int64_t acl_copy_out(const acl_table *table, uintptr_t context, void *dst, uintptr_t src, size_t count) {
    return copy_in_context(table, context, dst, count, (const void *)src, count, ACL_MEMCPY_DEVICE_TO_HOST);
}

static int64_t acl_copy_block(const acl_table *table, uintptr_t context, uintptr_t memory, const acl_block_copy *copies,
                              uint64_t count, int is_queued, uintptr_t stream, acl_blocks_done *done) {
    int64_t code = enter(table, context);
    return code == ACL_SUCCESS
               ? block_copy(table, (const char *)memory, copies, count, is_queued, (aclrtStream)stream, done)
               : code;
}

static int64_t acl_move_blocks(const acl_table *table, uintptr_t context, int file, uintptr_t memory,
                               const acl_block *blocks, uint64_t count, const acl_block_copy *copies, const int *stop,
                               acl_blocks_done *done) {
    int64_t code = enter(table, context);
    return code == ACL_SUCCESS ? block_move_all(table, file, (char *)memory, blocks, count, copies, stop, done) : code;
}

/* ---- Models ---- */

static int acl_aclmdlQuerySize(const acl_table *table, const char *fileName, size_t *workSize, size_t *weightSize) {
    return CALL(aclmdlQuerySize, fileName, workSize, weightSize);
}

static int acl_aclmdlQuerySizeFromMem(const acl_table *table, uintptr_t model, size_t modelSize, size_t *workSize,
                                      size_t *weightSize) {
    return CALL(aclmdlQuerySizeFromMem, (const void *)model, modelSize, workSize, weightSize);
}

static uintptr_t acl_aclmdlCreateConfigHandle(const acl_table *table) {
    return (uintptr_t)CALL_OR(NULL, aclmdlCreateConfigHandle);
}

static int acl_aclmdlDestroyConfigHandle(const acl_table *table, uintptr_t handle) {
    return CALL(aclmdlDestroyConfigHandle, (aclmdlConfigHandle *)handle);
}

static int acl_aclmdlSetConfigOpt(const acl_table *table, uintptr_t handle, int attr, uintptr_t attrValue,
                                  size_t valueSize) {
    return CALL(aclmdlSetConfigOpt, (aclmdlConfigHandle *)handle, (aclmdlConfigAttr)attr, (const void *)attrValue,
                valueSize);
}

static int acl_aclmdlSetExternalWeightAddress(const acl_table *table, uintptr_t handle, const char *weightFileName,
                                              uintptr_t devPtr, size_t size) {
    return CALL(aclmdlSetExternalWeightAddress, (aclmdlConfigHandle *)handle, weightFileName, (void *)devPtr, size);
}

static int acl_aclmdlLoadWithConfig(const acl_table *table, uintptr_t handle, uint32_t *modelId) {
    return CALL(aclmdlLoadWithConfig, (const aclmdlConfigHandle *)handle, modelId);
}

static int acl_aclmdlUnload(const acl_table *table, uint32_t modelId) {
    return CALL(aclmdlUnload, modelId);
}

static uintptr_t acl_aclmdlCreateDesc(const acl_table *table) {
    return (uintptr_t)CALL_OR(NULL, aclmdlCreateDesc);
}

static int acl_aclmdlDestroyDesc(const acl_table *table, uintptr_t modelDesc) {
    return CALL(aclmdlDestroyDesc, (aclmdlDesc *)modelDesc);
}

static int acl_aclmdlGetDesc(const acl_table *table, uintptr_t modelDesc, uint32_t modelId) {
    return CALL(aclmdlGetDesc, (aclmdlDesc *)modelDesc, modelId);
}

static size_t acl_aclmdlGetNumInputs(const acl_table *table, uintptr_t modelDesc) {
    return CALL_OR(0, aclmdlGetNumInputs, (aclmdlDesc *)modelDesc);
}

static size_t acl_aclmdlGetNumOutputs(const acl_table *table, uintptr_t modelDesc) {
    return CALL_OR(0, aclmdlGetNumOutputs, (aclmdlDesc *)modelDesc);
}

static size_t acl_aclmdlGetInputSizeByIndex(const acl_table *table, uintptr_t modelDesc, size_t index) {
    return CALL_OR(0, aclmdlGetInputSizeByIndex, (aclmdlDesc *)modelDesc, index);
}

static size_t acl_aclmdlGetOutputSizeByIndex(const acl_table *table, uintptr_t modelDesc, size_t index) {
    return CALL_OR(0, aclmdlGetOutputSizeByIndex, (aclmdlDesc *)modelDesc, index);
}

static const char *acl_aclmdlGetInputNameByIndex(const acl_table *table, uintptr_t modelDesc, size_t index) {
    return CALL_OR(NULL, aclmdlGetInputNameByIndex, (const aclmdlDesc *)modelDesc, index);
}

static const char *acl_aclmdlGetOutputNameByIndex(const acl_table *table, uintptr_t modelDesc, size_t index) {
    return CALL_OR(NULL, aclmdlGetOutputNameByIndex, (const aclmdlDesc *)modelDesc, index);
}

static int acl_aclmdlGetInputDims(const acl_table *table, uintptr_t modelDesc, size_t index, aclmdlIODims *dims) {
    return CALL(aclmdlGetInputDims, (const aclmdlDesc *)modelDesc, index, dims);
}

static int acl_aclmdlGetOutputDims(const acl_table *table, uintptr_t modelDesc, size_t index, aclmdlIODims *dims) {
    return CALL(aclmdlGetOutputDims, (const aclmdlDesc *)modelDesc, index, dims);
}

static int acl_aclmdlGetInputFormat(const acl_table *table, uintptr_t modelDesc, size_t index) {
    return (int)CALL_OR(ACL_FORMAT_UNDEFINED, aclmdlGetInputFormat, (const aclmdlDesc *)modelDesc, index);
}

static int acl_aclmdlGetOutputFormat(const acl_table *table, uintptr_t modelDesc, size_t index) {
    return (int)CALL_OR(ACL_FORMAT_UNDEFINED, aclmdlGetOutputFormat, (const aclmdlDesc *)modelDesc, index);
}

static int acl_aclmdlGetInputDataType(const acl_table *table, uintptr_t modelDesc, size_t index) {
    return (int)CALL_OR(ACL_DT_UNDEFINED, aclmdlGetInputDataType, (const aclmdlDesc *)modelDesc, index);
}

static int acl_aclmdlGetOutputDataType(const acl_table *table, uintptr_t modelDesc, size_t index) {
    return (int)CALL_OR(ACL_DT_UNDEFINED, aclmdlGetOutputDataType, (const aclmdlDesc *)modelDesc, index);
}

static uintptr_t acl_aclmdlCreateDataset(const acl_table *table) {
    return (uintptr_t)CALL_OR(NULL, aclmdlCreateDataset);
}

static int acl_aclmdlDestroyDataset(const acl_table *table, uintptr_t dataset) {
    return CALL(aclmdlDestroyDataset, (const aclmdlDataset *)dataset);
}

static int acl_aclmdlAddDatasetBuffer(const acl_table *table, uintptr_t dataset, uintptr_t dataBuffer) {
    return CALL(aclmdlAddDatasetBuffer, (aclmdlDataset *)dataset, (aclDataBuffer *)dataBuffer);
}

static int acl_aclmdlExecute(const acl_table *table, uint32_t modelId, uintptr_t input, uintptr_t output) {
    return CALL(aclmdlExecute, modelId, (const aclmdlDataset *)input, (aclmdlDataset *)output);
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

static int acl_hostacl_delay(const acl_table *table, const char *function, uint64_t microseconds) {
    return CALL(hostacl_delay, function, microseconds);
}

static int acl_hostacl_fail_above(const acl_table *table, uint64_t bytes, int code) {
    return CALL(hostacl_fail_above, bytes, code);
}

static int acl_hostacl_short_copy(const acl_table *table, uint64_t nth, uint64_t bytes, int code) {
    return CALL(hostacl_short_copy, nth, bytes, code);
}

static int acl_hostacl_fail_task(const acl_table *table, uint64_t nth, int code) {
    return CALL(hostacl_fail_task, nth, code);
}

static int acl_hostacl_delay_task(const acl_table *table, const char *function, uint64_t microseconds) {
    return CALL(hostacl_delay_task, function, microseconds);
}

static int acl_hostacl_hold(const acl_table *table, int32_t device) {
    return CALL(hostacl_hold, device);
}

static int acl_hostacl_release(const acl_table *table, int32_t device) {
    return CALL(hostacl_release, device);
}

static int acl_hostacl_symbol(const acl_table *table, uintptr_t symbol, uint64_t bytes) {
    return CALL(hostacl_symbol, (const void *)symbol, bytes);
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
