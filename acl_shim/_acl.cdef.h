/* Declarations of the extension module acl_shim._acl, read by cffi. The C behind them is _acl.csrc.c; the steps of
 * adding an ACL function are at its head.
 *
 * Every ACL function F is here as acl_F: the table first, then F's own arguments. Addresses and opaque handles that
 * come from Python are uintptr_t, enums are int, so that plain ints pass without a cast. A struct that F takes by value
 * is passed by its address. */

typedef struct acl_table acl_table;

/* Opens a library and fills a table from it; 0, or -1 with the loader's reason (cut to reason_size) and *out null. */
int acl_open(const char *path, acl_table **out, char *reason, size_t reason_size);
/* Unloads the library and frees the table. Only for a library none of whose functions was called. */
void acl_close(acl_table *table);
/* File the library was loaded from; "" where the loader does not say. */
const char *acl_path(const acl_table *table);
/* 1 where the library has a function of that name (also one that is not in the table), else 0. */
int acl_has(const acl_table *table, const char *name);
/* Names of the functions of the table, in its order; null past the end. */
const char *acl_symbol_name(size_t index);
/* Number behind a pointer, for buffers that are handed over as addresses. */
uintptr_t acl_address(const void *pointer);

/* Answer of acl_F where the library has no F; no aclError has this value. */
#define ACL_SHIM_NO_SYMBOL ...

/* ---- Structures ---- */

typedef struct {
    uint32_t id;
    int type;
} aclrtMemLocation;

typedef struct {
    aclrtMemLocation location;
    uint32_t pageSize;
    uint32_t rsv[4];
} aclrtPtrAttributes;

typedef union {
    uint16_t moduleId;
    uint32_t deviceId;
    uint32_t vaFlag;
    uint8_t rsv[8];
} aclrtMallocAttrValue;

typedef struct {
    int attr;
    aclrtMallocAttrValue value;
} aclrtMallocAttribute;

typedef struct {
    aclrtMallocAttribute *attrs;
    size_t numAttrs;
} aclrtMallocConfig;

typedef struct {
    char name[32];
    uint64_t curMemSize;
    uint64_t memPeakSize;
    size_t reserved[8];
} aclrtMemUsageInfo;

typedef struct {
    aclrtMemLocation dstLoc;
    aclrtMemLocation srcLoc;
    uint8_t rsv[16];
} aclrtMemcpyBatchAttr;

typedef struct {
    int handleType;
    int allocationType;
    int memAttr;
    aclrtMemLocation location;
    uint64_t reserve;
} aclrtPhysicalMemProp;

typedef struct {
    int flags;
    aclrtMemLocation location;
    uint8_t rsv[12];
} aclrtMemAccessDesc;

typedef struct {
    uint8_t data[128];
} aclrtMemFabricHandle;

typedef struct aclrtUtilizationExtendInfo aclrtUtilizationExtendInfo;

typedef struct {
    int32_t cubeUtilization;
    int32_t vectorUtilization;
    int32_t aicpuUtilization;
    int32_t memoryUtilization;
    aclrtUtilizationExtendInfo *utilizationExtend;
} aclrtUtilizationInfo;

typedef struct {
    char bytes[16];
} aclrtUuid;

typedef struct {
    char reserved[64];
} aclrtIpcEventHandle;

typedef struct {
    int allocType;
    int handleType;
    aclrtMemLocation location;
    size_t maxSize;
    unsigned char reserved[32];
} aclrtMemPoolProps;

typedef struct {
    char name[128];
    size_t dimCount;
    int64_t dims[128];
} aclmdlIODims;

/* ---- Start, end, errors ---- */

int acl_aclInit(const acl_table *table, const char *configPath);
int acl_aclFinalize(const acl_table *table);
int acl_aclFinalizeReference(const acl_table *table, uint64_t *refCount);
const char *acl_aclGetRecentErrMsg(const acl_table *table);
int acl_aclrtGetLastError(const acl_table *table, int level);
int acl_aclrtPeekAtLastError(const acl_table *table, int level);
int acl_aclrtGetRunMode(const acl_table *table, int *runMode);
const char *acl_aclrtGetSocName(const acl_table *table);
size_t acl_aclDataTypeSize(const acl_table *table, int dataType);
float acl_aclFloat16ToFloat(const acl_table *table, uint16_t value);
uint16_t acl_aclFloatToFloat16(const acl_table *table, float value);
uintptr_t acl_aclCreateDataBuffer(const acl_table *table, uintptr_t data, size_t size);
int acl_aclDestroyDataBuffer(const acl_table *table, uintptr_t dataBuffer);
uintptr_t acl_aclGetDataBufferAddr(const acl_table *table, uintptr_t dataBuffer);
uint32_t acl_aclGetDataBufferSize(const acl_table *table, uintptr_t dataBuffer);
size_t acl_aclGetDataBufferSizeV2(const acl_table *table, uintptr_t dataBuffer);

/* The text goes to the log as it is. */
void acl_aclAppLog(const acl_table *table, int logLevel, const char *func, const char *file, uint32_t line,
                   const char *fmt);

/* ---- Device and context ---- */

int acl_aclrtSetDevice(const acl_table *table, int32_t deviceId);
int acl_aclrtResetDevice(const acl_table *table, int32_t deviceId);
int acl_aclrtResetDeviceForce(const acl_table *table, int32_t deviceId);
int acl_aclrtGetDevice(const acl_table *table, int32_t *deviceId);
int acl_aclrtGetDeviceCount(const acl_table *table, uint32_t *count);
int acl_aclrtCreateContext(const acl_table *table, uintptr_t *context, int32_t deviceId);
int acl_aclrtDestroyContext(const acl_table *table, uintptr_t context);
int acl_aclrtSetCurrentContext(const acl_table *table, uintptr_t context);
int acl_aclrtGetCurrentContext(const acl_table *table, uintptr_t *context);
int acl_aclrtGetDeviceInfo(const acl_table *table, uint32_t deviceId, int attr, int64_t *value);
int acl_aclrtSynchronizeDevice(const acl_table *table);
int acl_aclrtSynchronizeDeviceWithTimeout(const acl_table *table, int32_t timeout);
int acl_aclrtDeviceCanAccessPeer(const acl_table *table, int32_t *canAccessPeer, int32_t deviceId,
                                 int32_t peerDeviceId);
int acl_aclrtDeviceEnablePeerAccess(const acl_table *table, int32_t peerDeviceId, uint32_t flags);
int acl_aclrtDeviceDisablePeerAccess(const acl_table *table, int32_t peerDeviceId);
int acl_aclrtDeviceGetBareTgid(const acl_table *table, int32_t *pid);
int acl_aclrtDeviceGetUuid(const acl_table *table, int32_t deviceId, aclrtUuid *uuid);
int acl_aclrtQueryDeviceStatus(const acl_table *table, int32_t deviceId, int *deviceStatus);
int acl_aclrtCtxGetCurrentDefaultStream(const acl_table *table, uintptr_t *stream);
int acl_aclrtGetPrimaryCtxState(const acl_table *table, int32_t deviceId, uint32_t *flags, int32_t *active);
int acl_aclrtGetDeviceCapability(const acl_table *table, int32_t deviceId, int devFeatureType, int32_t *value);
int acl_aclrtGetLogicDevIdByUserDevId(const acl_table *table, int32_t userDevid, int32_t *logicDevId);
int acl_aclrtGetUserDevIdByLogicDevId(const acl_table *table, int32_t logicDevId, int32_t *userDevid);
int acl_aclrtGetPhyDevIdByLogicDevId(const acl_table *table, int32_t logicDevId, int32_t *phyDevId);

/* ---- Memory ---- */

int acl_aclrtMalloc(const acl_table *table, uintptr_t *devPtr, size_t size, int policy);
int acl_aclrtMallocAlign32(const acl_table *table, uintptr_t *devPtr, size_t size, int policy);
int acl_aclrtMallocCached(const acl_table *table, uintptr_t *devPtr, size_t size, int policy);
int acl_aclrtMallocWithCfg(const acl_table *table, uintptr_t *devPtr, size_t size, int policy, aclrtMallocConfig *cfg);
int acl_aclrtFree(const acl_table *table, uintptr_t devPtr);
int acl_aclrtMallocHost(const acl_table *table, uintptr_t *hostPtr, size_t size);
int acl_aclrtMallocHostWithCfg(const acl_table *table, uintptr_t *ptr, uint64_t size, aclrtMallocConfig *cfg);
int acl_aclrtFreeHost(const acl_table *table, uintptr_t hostPtr);
int acl_aclrtGetMemInfo(const acl_table *table, int attr, size_t *free, size_t *total);
int acl_aclrtPointerGetAttributes(const acl_table *table, uintptr_t ptr, aclrtPtrAttributes *attributes);
int acl_aclrtMallocForTaskScheduler(const acl_table *table, uintptr_t *devPtr, size_t size, int policy,
                                    aclrtMallocConfig *cfg);
int acl_aclrtFreeWithDevSync(const acl_table *table, uintptr_t devPtr);
int acl_aclrtGetMemUsageInfo(const acl_table *table, int32_t deviceId, aclrtMemUsageInfo *memUsageInfo, size_t inputNum,
                             size_t *outputNum);
int acl_aclrtFreeHostWithDevSync(const acl_table *table, uintptr_t hostPtr);
int acl_aclrtHostRegister(const acl_table *table, uintptr_t ptr, uint64_t size, int type, uintptr_t *devPtr);
int acl_aclrtHostRegisterV2(const acl_table *table, uintptr_t ptr, uint64_t size, uint32_t flag);
int acl_aclrtHostGetDevicePointer(const acl_table *table, uintptr_t pHost, uintptr_t *pDevice, uint32_t flag);
int acl_aclrtHostUnregister(const acl_table *table, uintptr_t ptr);

/* ---- Copy and set ---- */

int acl_aclrtMemcpy(const acl_table *table, uintptr_t dst, size_t destMax, uintptr_t src, size_t count, int kind);
int acl_aclrtMemcpyAsync(const acl_table *table, uintptr_t dst, size_t destMax, uintptr_t src, size_t count, int kind,
                         uintptr_t stream);
int acl_aclrtMemcpy2d(const acl_table *table, uintptr_t dst, size_t dpitch, uintptr_t src, size_t spitch, size_t width,
                      size_t height, int kind);
int acl_aclrtMemcpy2dAsync(const acl_table *table, uintptr_t dst, size_t dpitch, uintptr_t src, size_t spitch,
                           size_t width, size_t height, int kind, uintptr_t stream);
int acl_aclrtMemcpyBatch(const acl_table *table, uintptr_t *dsts, size_t *destMaxs, uintptr_t *srcs, size_t *sizes,
                         size_t numBatches, aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes, size_t numAttrs,
                         size_t *failIndex);
int acl_aclrtMemcpyBatchAsync(const acl_table *table, uintptr_t *dsts, size_t *destMaxs, uintptr_t *srcs, size_t *sizes,
                              size_t numBatches, aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes, size_t numAttrs,
                              size_t *failIndex, uintptr_t stream);
int acl_aclrtMemset(const acl_table *table, uintptr_t devPtr, size_t maxCount, int32_t value, size_t count);
int acl_aclrtMemsetAsync(const acl_table *table, uintptr_t devPtr, size_t maxCount, int32_t value, size_t count,
                         uintptr_t stream);
int acl_aclrtMemsetD32(const acl_table *table, uintptr_t ptr, size_t memSize, uint32_t value, size_t N);
int acl_aclrtMemsetD32Async(const acl_table *table, uintptr_t ptr, size_t memSize, uint32_t value, size_t N,
                            uintptr_t stream);

/* ---- Virtual memory ---- */

int acl_aclrtReserveMemAddress(const acl_table *table, uintptr_t *virPtr, size_t size, size_t alignment,
                               uintptr_t expectPtr, uint64_t flags);
int acl_aclrtReserveMemAddressNoUCMemory(const acl_table *table, uintptr_t *virPtr, size_t size, size_t alignment,
                                         uintptr_t expectPtr, uint64_t flags);
int acl_aclrtReleaseMemAddress(const acl_table *table, uintptr_t virPtr);
int acl_aclrtMallocPhysical(const acl_table *table, uintptr_t *handle, size_t size, const aclrtPhysicalMemProp *prop,
                            uint64_t flags);
int acl_aclrtFreePhysical(const acl_table *table, uintptr_t handle);
int acl_aclrtMapMem(const acl_table *table, uintptr_t virPtr, size_t size, size_t offset, uintptr_t handle,
                    uint64_t flags);
int acl_aclrtMemMapNoAccess(const acl_table *table, uintptr_t virPtr, size_t size, size_t offset, uintptr_t handle,
                            uint64_t flags);
int acl_aclrtUnmapMem(const acl_table *table, uintptr_t virPtr);
int acl_aclrtMemSetAccess(const acl_table *table, uintptr_t virPtr, size_t size, aclrtMemAccessDesc *desc,
                          size_t count);
int acl_aclrtMemGetAccess(const acl_table *table, uintptr_t virPtr, aclrtMemLocation *location, uint64_t *flag);
int acl_aclrtMemGetAllocationGranularity(const acl_table *table, aclrtPhysicalMemProp *prop, int option,
                                         size_t *granularity);
int acl_aclrtMemRetainAllocationHandle(const acl_table *table, uintptr_t virPtr, uintptr_t *handle);
int acl_aclrtMemGetAllocationPropertiesFromHandle(const acl_table *table, uintptr_t handle, aclrtPhysicalMemProp *prop);
int acl_aclrtMemGetAddressRange(const acl_table *table, uintptr_t ptr, uintptr_t *pbase, size_t *psize);
int acl_aclrtMemExportToShareableHandle(const acl_table *table, uintptr_t handle, int handleType, uint64_t flags,
                                        uint64_t *shareableHandle);
int acl_aclrtMemExportToShareableHandleV2(const acl_table *table, uintptr_t handle, uint64_t flags, int shareType,
                                          uintptr_t shareableHandle);
int acl_aclrtMemImportFromShareableHandle(const acl_table *table, uint64_t shareableHandle, int32_t deviceId,
                                          uintptr_t *handle);
int acl_aclrtMemImportFromShareableHandleV2(const acl_table *table, uintptr_t shareableHandle, int shareType,
                                            uint64_t flags, uintptr_t *handle);
int acl_aclrtMemSetPidToShareableHandle(const acl_table *table, uint64_t shareableHandle, int32_t *pid, size_t pidNum);
int acl_aclrtMemSetPidToShareableHandleV2(const acl_table *table, uintptr_t shareableHandle, int shareType,
                                          int32_t *pid, size_t pidNum);

/* ---- Streams ---- */

int acl_aclrtCreateStream(const acl_table *table, uintptr_t *stream);
int acl_aclrtCreateStreamWithConfig(const acl_table *table, uintptr_t *stream, uint32_t priority, uint32_t flag);
int acl_aclrtDestroyStream(const acl_table *table, uintptr_t stream);
int acl_aclrtDestroyStreamForce(const acl_table *table, uintptr_t stream);
int acl_aclrtSynchronizeStream(const acl_table *table, uintptr_t stream);
int acl_aclrtSynchronizeStreamWithTimeout(const acl_table *table, uintptr_t stream, int32_t timeout);
int acl_aclrtStreamQuery(const acl_table *table, uintptr_t stream, int *status);
int acl_aclrtStreamGetId(const acl_table *table, uintptr_t stream, int32_t *streamId);
int acl_aclrtStreamGetPriority(const acl_table *table, uintptr_t stream, uint32_t *priority);
int acl_aclrtStreamGetFlags(const acl_table *table, uintptr_t stream, uint32_t *flags);
int acl_aclrtDeviceGetStreamPriorityRange(const acl_table *table, int32_t *leastPriority, int32_t *greatestPriority);
int acl_aclrtSetStreamFailureMode(const acl_table *table, uintptr_t stream, uint64_t mode);
int acl_aclrtValueWrite(const acl_table *table, uintptr_t devAddr, uint64_t value, uint32_t flag, uintptr_t stream);
int acl_aclrtValueWait(const acl_table *table, uintptr_t devAddr, uint64_t value, uint32_t flag, uintptr_t stream);
int acl_aclrtStreamAbort(const acl_table *table, uintptr_t stream);
int acl_aclrtRegStreamStateCallback(const acl_table *table, const char *regName, uintptr_t callback, uintptr_t args);
int acl_aclrtGetThreadLastTaskId(const acl_table *table, uint32_t *taskId);

/* ---- Callbacks on streams ---- */

int acl_aclrtLaunchCallback(const acl_table *table, uintptr_t fn, uintptr_t userData, int blockType, uintptr_t stream);
int acl_aclrtSubscribeReport(const acl_table *table, uint64_t threadId, uintptr_t stream);
int acl_aclrtUnSubscribeReport(const acl_table *table, uint64_t threadId, uintptr_t stream);
int acl_aclrtProcessReport(const acl_table *table, int32_t timeout);
int acl_aclrtLaunchHostFunc(const acl_table *table, uintptr_t stream, uintptr_t fn, uintptr_t args);
int acl_aclrtSubscribeHostFunc(const acl_table *table, uint64_t hostFuncThreadId, uintptr_t exeStream);
int acl_aclrtUnSubscribeHostFunc(const acl_table *table, uint64_t hostFuncThreadId, uintptr_t exeStream);
int acl_aclrtProcessHostFunc(const acl_table *table, int32_t timeout);
int acl_aclrtSetExceptionInfoCallback(const acl_table *table, uintptr_t callback);
uint32_t acl_aclrtGetTaskIdFromExceptionInfo(const acl_table *table, uintptr_t info);
uint32_t acl_aclrtGetStreamIdFromExceptionInfo(const acl_table *table, uintptr_t info);
uint32_t acl_aclrtGetThreadIdFromExceptionInfo(const acl_table *table, uintptr_t info);
uint32_t acl_aclrtGetDeviceIdFromExceptionInfo(const acl_table *table, uintptr_t info);
uint32_t acl_aclrtGetErrorCodeFromExceptionInfo(const acl_table *table, uintptr_t info);

/* ---- Events and notifies ---- */

int acl_aclrtCreateEvent(const acl_table *table, uintptr_t *event);
int acl_aclrtCreateEventExWithFlag(const acl_table *table, uintptr_t *event, uint32_t flag);
int acl_aclrtCreateEventWithFlag(const acl_table *table, uintptr_t *event, uint32_t flag);
int acl_aclrtDestroyEvent(const acl_table *table, uintptr_t event);
int acl_aclrtEventElapsedTime(const acl_table *table, float *ms, uintptr_t startEvent, uintptr_t endEvent);
int acl_aclrtEventGetTimestamp(const acl_table *table, uintptr_t event, uint64_t *timestamp);
int acl_aclrtQueryEventStatus(const acl_table *table, uintptr_t event, int *status);
int acl_aclrtRecordEvent(const acl_table *table, uintptr_t event, uintptr_t stream);
int acl_aclrtResetEvent(const acl_table *table, uintptr_t event, uintptr_t stream);
int acl_aclrtStreamWaitEvent(const acl_table *table, uintptr_t stream, uintptr_t event);
int acl_aclrtSynchronizeEvent(const acl_table *table, uintptr_t event);
int acl_aclrtSynchronizeEventWithTimeout(const acl_table *table, uintptr_t event, int32_t timeout);
int acl_aclrtIpcGetEventHandle(const acl_table *table, uintptr_t event, aclrtIpcEventHandle *handle);
int acl_aclrtIpcOpenEventHandle(const acl_table *table, const aclrtIpcEventHandle *handle, uintptr_t *event);
int acl_aclrtQueryEventWaitStatus(const acl_table *table, uintptr_t event, int *status);
int acl_aclrtRecordEventWithFlag(const acl_table *table, uintptr_t event, uintptr_t stream, uint32_t flag);
int acl_aclrtSetOpWaitTimeout(const acl_table *table, uint32_t timeout);
int acl_aclrtStreamWaitEventWithFlag(const acl_table *table, uintptr_t stream, uintptr_t event, uint32_t timeout,
                                     uint32_t flag);
int acl_aclrtCreateNotify(const acl_table *table, uintptr_t *notify, uint64_t flag);
int acl_aclrtDestroyNotify(const acl_table *table, uintptr_t notify);
int acl_aclrtNotifyGetExportKey(const acl_table *table, uintptr_t notify, char *key, size_t len, uint64_t flags);
int acl_aclrtNotifyImportByKey(const acl_table *table, uintptr_t *notify, const char *key, uint64_t flags);
int acl_aclrtNotifySetImportPid(const acl_table *table, uintptr_t notify, int32_t *pid, size_t num);
int acl_aclrtRecordNotify(const acl_table *table, uintptr_t notify, uintptr_t stream);
int acl_aclrtWaitAndResetNotify(const acl_table *table, uintptr_t notify, uintptr_t stream, uint32_t timeout);

/* ---- Memory shared between processes ---- */

int acl_aclrtIpcMemGetExportKey(const acl_table *table, uintptr_t devPtr, size_t size, char *key, size_t len,
                                uint64_t flags);
int acl_aclrtIpcMemImportByKey(const acl_table *table, uintptr_t *devPtr, const char *key, uint64_t flags);
int acl_aclrtIpcMemClose(const acl_table *table, const char *key);
int acl_aclrtIpcMemSetImportPid(const acl_table *table, const char *key, int32_t *pid, size_t num);

/* ---- Memory pools in stream order, managed memory ---- */

int acl_aclrtMemPoolCreate(const acl_table *table, uintptr_t *memPool, const aclrtMemPoolProps *poolProps);
int acl_aclrtMemPoolDestroy(const acl_table *table, uintptr_t memPool);
int acl_aclrtMemPoolFreeAsync(const acl_table *table, uintptr_t ptr, uintptr_t stream);
int acl_aclrtMemPoolGetAttr(const acl_table *table, uintptr_t memPool, int attr, uintptr_t value);
int acl_aclrtMemPoolMallocAsync(const acl_table *table, uintptr_t *ptr, size_t size, uintptr_t memPool,
                                uintptr_t stream);
int acl_aclrtMemPoolSetAttr(const acl_table *table, uintptr_t memPool, int attr, uintptr_t value);
int acl_aclrtMemPoolTrimTo(const acl_table *table, uintptr_t memPool, size_t minBytesToKeep);
int acl_aclrtMemAllocManaged(const acl_table *table, uintptr_t *ptr, uint64_t size, uint32_t flag);

/* ---- Custom allocators of streams: kept by the runtime, called by others ---- */

uintptr_t acl_aclrtAllocatorCreateDesc(const acl_table *table);
int acl_aclrtAllocatorDestroyDesc(const acl_table *table, uintptr_t allocatorDesc);
int acl_aclrtAllocatorSetObjToDesc(const acl_table *table, uintptr_t allocatorDesc, uintptr_t allocator);
int acl_aclrtAllocatorSetAllocFuncToDesc(const acl_table *table, uintptr_t allocatorDesc, uintptr_t func);
int acl_aclrtAllocatorSetFreeFuncToDesc(const acl_table *table, uintptr_t allocatorDesc, uintptr_t func);
int acl_aclrtAllocatorSetAllocAdviseFuncToDesc(const acl_table *table, uintptr_t allocatorDesc, uintptr_t func);
int acl_aclrtAllocatorSetGetAddrFromBlockFuncToDesc(const acl_table *table, uintptr_t allocatorDesc, uintptr_t func);
int acl_aclrtAllocatorRegister(const acl_table *table, uintptr_t stream, uintptr_t allocatorDesc);
int acl_aclrtAllocatorGetByStream(const acl_table *table, uintptr_t stream, uintptr_t *allocatorDesc,
                                  uintptr_t *allocator, uintptr_t *allocFunc, uintptr_t *freeFunc,
                                  uintptr_t *allocAdviseFunc, uintptr_t *getAddrFromBlockFunc);
int acl_aclrtAllocatorUnregister(const acl_table *table, uintptr_t stream);

/* ---- Two calls for one crossing ---- */

/* Added to the code of aclrtSetCurrentContext where that refuses; above every aclError. */
#define ACL_SHIM_CONTEXT_REFUSED ...
/* Added to an answer of a call that also returns codes. */
#define ACL_SHIM_ANSWER ...

/* Make a context current and copy between the host and a device; the code of the copy, or that of the refused context
 * plus ACL_SHIM_CONTEXT_REFUSED. */
int64_t acl_copy_in(const acl_table *table, uintptr_t context, uintptr_t dst, size_t dst_max, const void *src,
                    size_t count);
int64_t acl_copy_out(const acl_table *table, uintptr_t context, void *dst, uintptr_t src, size_t count);
/* Make a context current and ask how a stream or an event is: the status plus ACL_SHIM_ANSWER, or as above. */
int64_t acl_query_stream(const acl_table *table, uintptr_t context, uintptr_t stream);
int64_t acl_query_event(const acl_table *table, uintptr_t context, uintptr_t event);
/* Make a context current and record an event, or ask for free and total bytes of memory; the result is as of a copy. */
int64_t acl_record_event(const acl_table *table, uintptr_t context, uintptr_t event, uintptr_t stream);
int64_t acl_mem_info(const acl_table *table, uintptr_t context, int attr, size_t *figures);

/* ---- Blocks of a file on their way to a device (_block_copies.h) ---- */

typedef struct {
    uint64_t offset;
    uint64_t size;
    uint64_t copies;
} acl_block;

typedef struct {
    uint64_t dst;
    uint64_t start;
    uint64_t size;
} acl_block_copy;

typedef struct {
    uint64_t blocks;
    uint64_t copies;
    uint64_t got;
    int64_t os_error;
    int64_t read_ns;
    int64_t copy_ns;
} acl_blocks_done;

/* Make a context current and copy pieces of memory to a device, at once or on a stream; the result is as of
 * acl_copy_in, `done` counts the copies made. */
int64_t acl_copy_block(const acl_table *table, uintptr_t context, uintptr_t memory, const acl_block_copy *copies,
                       uint64_t count, int is_queued, uintptr_t stream, acl_blocks_done *done);
/* Make a context current and move blocks of a file to a device through memory that holds one of them; the result is as
 * of acl_copy_in, `done` says how far it came: 0 with fewer blocks than `count` means that a block could not be read,
 * or that *stop was set. */
int64_t acl_move_blocks(const acl_table *table, uintptr_t context, int file, uintptr_t memory, const acl_block *blocks,
                        uint64_t count, const acl_block_copy *copies, const int *stop, acl_blocks_done *done);

/* ---- Python functions that the runtime calls (_host_function.h) ---- */

/* Addresses of the functions to give to the runtime: to aclrtLaunchHostFunc and aclrtLaunchCallback, whose argument is
 * a key; to aclrtSetExceptionInfoCallback; to aclrtRegStreamStateCallback, whose argument is a key. */
uintptr_t acl_host_function(void);
uintptr_t acl_exception_function(void);
uintptr_t acl_stream_state_function(void);
/* From now on no Python function starts; returns when none runs. */
void acl_end_host_functions(void);
/* In a forked child: forgets the ones that run in the parent. */
void acl_forget_host_functions(void);
extern "Python" void acl_run_host_function(uintptr_t key);
extern "Python" void acl_run_exception_function(uintptr_t info);
extern "Python" void acl_run_stream_state_function(uintptr_t stream, int state, uintptr_t key);

/* ---- Export of memory by DLPack (_dlpack.h) ---- */

/* Makes a tensor of bytes that holds a reference to owner, a Python object by its id; null where there is no memory. */
void *acl_new_tensor(uintptr_t data, size_t size_bytes, int device_type, int device_id, uintptr_t owner,
                     bool versioned);
/* Address of the destructor for a capsule of such a tensor. */
uintptr_t acl_capsule_destructor(bool versioned);

/* ---- Versions, figures, limits, modes; what is done to memory in stream order; variables of a device ---- */

int acl_aclsysGetVersionStr(const acl_table *table, char *pkgName, char *versionStr);
int acl_aclsysGetVersionNum(const acl_table *table, char *pkgName, int32_t *versionNum);
int acl_aclGetCannAttribute(const acl_table *table, int cannAttr, int32_t *value);
int acl_aclGetDeviceCapability(const acl_table *table, uint32_t deviceId, int deviceInfo, int64_t *value);
int acl_aclrtCheckArchCompatibility(const acl_table *table, const char *socVersion, int32_t *canCompatible);
int acl_aclrtGetDeviceUtilizationRate(const acl_table *table, int32_t deviceId, aclrtUtilizationInfo *utilizationInfo);
int acl_aclrtHostMemMapCapabilities(const acl_table *table, uint32_t deviceId, int hacType, int *capabilities);
int acl_aclrtSetDeviceResLimit(const acl_table *table, int32_t deviceId, int type, uint32_t value);
int acl_aclrtGetDeviceResLimit(const acl_table *table, int32_t deviceId, int type, uint32_t *value);
int acl_aclrtResetDeviceResLimit(const acl_table *table, int32_t deviceId);
int acl_aclrtSetStreamResLimit(const acl_table *table, uintptr_t stream, int type, uint32_t value);
int acl_aclrtGetStreamResLimit(const acl_table *table, uintptr_t stream, int type, uint32_t *value);
int acl_aclrtResetStreamResLimit(const acl_table *table, uintptr_t stream);
int acl_aclrtUseStreamResInCurrentThread(const acl_table *table, uintptr_t stream);
int acl_aclrtUnuseStreamResInCurrentThread(const acl_table *table, uintptr_t stream);
int acl_aclrtGetResInCurrentThread(const acl_table *table, int type, uint32_t *value);
int acl_aclrtSetDeviceSatMode(const acl_table *table, int mode);
int acl_aclrtGetDeviceSatMode(const acl_table *table, int *mode);
int acl_aclrtSetStreamOverflowSwitch(const acl_table *table, uintptr_t stream, uint32_t flag);
int acl_aclrtGetStreamOverflowSwitch(const acl_table *table, uintptr_t stream, uint32_t *flag);
int acl_aclrtGetOverflowStatus(const acl_table *table, uintptr_t outputAddr, size_t outputSize, uintptr_t stream);
int acl_aclrtResetOverflowStatus(const acl_table *table, uintptr_t stream);
int acl_aclrtSetOpExecuteTimeOut(const acl_table *table, uint32_t timeout);
int acl_aclrtSetOpExecuteTimeOutV2(const acl_table *table, uint64_t timeout, uint64_t *actualTimeout);
int acl_aclrtDeviceTaskAbort(const acl_table *table, int32_t deviceId, uint32_t timeout);
int acl_aclrtStreamStop(const acl_table *table, uintptr_t stream);
int acl_aclrtMemcpyAsyncWithCondition(const acl_table *table, uintptr_t dst, size_t destMax, uintptr_t src,
                                      size_t count, int kind, uintptr_t stream);
int acl_aclrtReduceAsync(const acl_table *table, uintptr_t dst, uintptr_t src, uint64_t count, int kind, int type,
                         uintptr_t stream, uintptr_t reserve);
int acl_aclrtCmoAsync(const acl_table *table, uintptr_t src, size_t size, int cmoType, uintptr_t stream);
int acl_aclrtMemFlush(const acl_table *table, uintptr_t devPtr, size_t size);
int acl_aclrtMemInvalidate(const acl_table *table, uintptr_t devPtr, size_t size);
int acl_aclrtMemP2PMap(const acl_table *table, uintptr_t devPtr, size_t size, int32_t dstDevId, uint64_t flags);
int acl_aclrtIpcMemSetAttr(const acl_table *table, const char *key, int type, uint64_t attr);
int acl_aclrtMemMapSetLink(const acl_table *table, uintptr_t handle, int adviceLink);
int acl_aclrtMemMapSelectedLink(const acl_table *table, uintptr_t virPtrDst, size_t size, uintptr_t virPtrSrc,
                                uint32_t linkIdx);
int acl_aclrtGetSymbolAddress(const acl_table *table, uintptr_t symbol, uintptr_t *devPtr);
int acl_aclrtGetSymbolSize(const acl_table *table, uintptr_t symbol, size_t *size);
int acl_aclrtMemcpyToSymbol(const acl_table *table, uintptr_t symbol, uintptr_t src, size_t count, size_t offset,
                            int kind);
int acl_aclrtMemcpyToSymbolAsync(const acl_table *table, uintptr_t symbol, uintptr_t src, size_t count, size_t offset,
                                 int kind, uintptr_t stream);
int acl_aclrtMemcpyFromSymbol(const acl_table *table, uintptr_t dst, size_t dstMax, uintptr_t symbol, size_t count,
                              size_t offset, int kind);
int acl_aclrtMemcpyFromSymbolAsync(const acl_table *table, uintptr_t dst, size_t dstMax, uintptr_t symbol, size_t count,
                                   size_t offset, int kind, uintptr_t stream);

/* ---- Models ---- */

int acl_aclmdlQuerySize(const acl_table *table, const char *fileName, size_t *workSize, size_t *weightSize);
int acl_aclmdlQuerySizeFromMem(const acl_table *table, uintptr_t model, size_t modelSize, size_t *workSize,
                               size_t *weightSize);
uintptr_t acl_aclmdlCreateConfigHandle(const acl_table *table);
int acl_aclmdlDestroyConfigHandle(const acl_table *table, uintptr_t handle);
int acl_aclmdlSetConfigOpt(const acl_table *table, uintptr_t handle, int attr, uintptr_t attrValue, size_t valueSize);
int acl_aclmdlSetExternalWeightAddress(const acl_table *table, uintptr_t handle, const char *weightFileName,
                                       uintptr_t devPtr, size_t size);
int acl_aclmdlLoadWithConfig(const acl_table *table, uintptr_t handle, uint32_t *modelId);
int acl_aclmdlUnload(const acl_table *table, uint32_t modelId);
uintptr_t acl_aclmdlCreateDesc(const acl_table *table);
int acl_aclmdlDestroyDesc(const acl_table *table, uintptr_t modelDesc);
int acl_aclmdlGetDesc(const acl_table *table, uintptr_t modelDesc, uint32_t modelId);
size_t acl_aclmdlGetNumInputs(const acl_table *table, uintptr_t modelDesc);
size_t acl_aclmdlGetNumOutputs(const acl_table *table, uintptr_t modelDesc);
size_t acl_aclmdlGetInputSizeByIndex(const acl_table *table, uintptr_t modelDesc, size_t index);
size_t acl_aclmdlGetOutputSizeByIndex(const acl_table *table, uintptr_t modelDesc, size_t index);
const char *acl_aclmdlGetInputNameByIndex(const acl_table *table, uintptr_t modelDesc, size_t index);
const char *acl_aclmdlGetOutputNameByIndex(const acl_table *table, uintptr_t modelDesc, size_t index);
int acl_aclmdlGetInputDims(const acl_table *table, uintptr_t modelDesc, size_t index, aclmdlIODims *dims);
int acl_aclmdlGetOutputDims(const acl_table *table, uintptr_t modelDesc, size_t index, aclmdlIODims *dims);
int acl_aclmdlGetInputFormat(const acl_table *table, uintptr_t modelDesc, size_t index);
int acl_aclmdlGetOutputFormat(const acl_table *table, uintptr_t modelDesc, size_t index);
int acl_aclmdlGetInputDataType(const acl_table *table, uintptr_t modelDesc, size_t index);
int acl_aclmdlGetOutputDataType(const acl_table *table, uintptr_t modelDesc, size_t index);
uintptr_t acl_aclmdlCreateDataset(const acl_table *table);
int acl_aclmdlDestroyDataset(const acl_table *table, uintptr_t dataset);
int acl_aclmdlAddDatasetBuffer(const acl_table *table, uintptr_t dataset, uintptr_t dataBuffer);
int acl_aclmdlExecute(const acl_table *table, uint32_t modelId, uintptr_t input, uintptr_t output);

/* ---- Controls of the host runtime (hostacl.h) ---- */

typedef struct {
    uint64_t set_count;
    uint64_t pages_4k_used;
    uint64_t pages_4k_total;
    uint64_t pages_2m_used;
    uint64_t pages_2m_total;
    uint64_t pages_1g_used;
    uint64_t pages_1g_total;
    uint64_t committed_bytes;
    ...;
} hostacl_device_live_t;

typedef struct {
    uint64_t blocks;
    uint64_t bytes;
    uint64_t host_blocks;
    uint64_t host_bytes;
    uint64_t contexts;
    uint64_t devices_set;
    uint32_t device_count;
    hostacl_device_live_t devices[...];
    uint64_t reservations;
    uint64_t reserved_bytes;
    uint64_t handles;
    uint64_t handle_bytes;
    uint64_t mappings;
    uint64_t exports;
    uint64_t imports;
    uint64_t managed;
    uint64_t managed_bytes;
    uint64_t allocators;
    uint64_t mem_pools;
    uint64_t registered;
    uint64_t registered_bytes;
    uint64_t streams;
    uint64_t tasks;
    uint64_t events;
    uint64_t notifies;
    uint64_t data_buffers;
    uint64_t models;
    uint64_t model_configs;
    uint64_t model_descs;
    ...;
} hostacl_live_t;

const char *acl_hostacl_version(const acl_table *table);
const char *acl_hostacl_error(const acl_table *table);
int acl_hostacl_configure(const acl_table *table, const char *key, const char *value);
int acl_hostacl_reset(const acl_table *table);
int acl_hostacl_fail(const acl_table *table, const char *function, uint64_t nth, int code);
int acl_hostacl_delay(const acl_table *table, const char *function, uint64_t microseconds);
int acl_hostacl_fail_above(const acl_table *table, uint64_t bytes, int code);
int acl_hostacl_short_copy(const acl_table *table, uint64_t nth, uint64_t bytes, int code);
int acl_hostacl_fail_task(const acl_table *table, uint64_t nth, int code);
int acl_hostacl_delay_task(const acl_table *table, const char *function, uint64_t microseconds);
int acl_hostacl_hold(const acl_table *table, int32_t device);
int acl_hostacl_release(const acl_table *table, int32_t device);
int acl_hostacl_symbol(const acl_table *table, uintptr_t symbol, uint64_t bytes);
uint64_t acl_hostacl_calls(const acl_table *table, const char *function);
int acl_hostacl_live(const acl_table *table, hostacl_live_t *out);
int acl_hostacl_live_report(const acl_table *table, char *buf, size_t len);
int acl_hostacl_info(const acl_table *table, char *buf, size_t len);

/* ---- Loops of gevar.formats over elements in host memory; see _format_loops.h and _strided_copy.h ---- */

uint32_t format_float_to_float16(const uint32_t *src, uint16_t *dst, size_t count);
uint32_t format_float16_to_float(const uint16_t *src, float *dst, size_t count);
uint32_t format_int32_to_float16(const int32_t *src, uint16_t *dst, size_t count);
typedef struct {
    int src_width, dst_width;
    const void *results;
    const uint8_t *losses;
    size_t range_count;
    const uint16_t *ranges;
} format_table;

void format_by_table(const format_table *table, const void *src, int width, void *dst, size_t count, int64_t *lost);
int format_copy(void *dst, int64_t dst_size, const void *src, int64_t src_size, int axes, const int64_t *shape,
                const int64_t *dst_steps, const int64_t *src_steps, int64_t width, int64_t filled);
