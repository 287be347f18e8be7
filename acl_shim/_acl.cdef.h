/* Declarations of the extension module acl_shim._acl, read by cffi. The C behind them is _acl.csrc.c; the steps of
 * adding an ACL function are at its head.
 *
 * Every ACL function F is here as acl_F: the table first, then F's own arguments. Addresses and opaque handles that
 * come from Python are uintptr_t, enums are int, so that plain ints pass without a cast. */

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

/* ---- Start, end, errors ---- */

int acl_aclInit(const acl_table *table, const char *configPath);
int acl_aclFinalize(const acl_table *table);
int acl_aclFinalizeReference(const acl_table *table, uint64_t *refCount);
const char *acl_aclGetRecentErrMsg(const acl_table *table);
int acl_aclrtGetLastError(const acl_table *table, int level);
int acl_aclrtPeekAtLastError(const acl_table *table, int level);
int acl_aclrtGetRunMode(const acl_table *table, int *runMode);
const char *acl_aclrtGetSocName(const acl_table *table);

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

/* ---- Memory ---- */

int acl_aclrtMalloc(const acl_table *table, uintptr_t *devPtr, size_t size, int policy);
int acl_aclrtMallocAlign32(const acl_table *table, uintptr_t *devPtr, size_t size, int policy);
int acl_aclrtMallocCached(const acl_table *table, uintptr_t *devPtr, size_t size, int policy);
int acl_aclrtMallocWithCfg(const acl_table *table, uintptr_t *devPtr, size_t size, int policy, aclrtMallocConfig *cfg);
int acl_aclrtFree(const acl_table *table, uintptr_t devPtr);
int acl_aclrtMallocHost(const acl_table *table, uintptr_t *hostPtr, size_t size);
int acl_aclrtMallocHostWithCfg(const acl_table *table, uintptr_t *ptr, uint64_t size, aclrtMallocConfig *cfg);
int acl_aclrtFreeHost(const acl_table *table, uintptr_t hostPtr);
int acl_aclrtMemcpy(const acl_table *table, uintptr_t dst, size_t destMax, uintptr_t src, size_t count, int kind);
int acl_aclrtMemset(const acl_table *table, uintptr_t devPtr, size_t maxCount, int32_t value, size_t count);
int acl_aclrtGetMemInfo(const acl_table *table, int attr, size_t *free, size_t *total);
int acl_aclrtPointerGetAttributes(const acl_table *table, uintptr_t ptr, aclrtPtrAttributes *attributes);

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
    ...;
} hostacl_live_t;

const char *acl_hostacl_version(const acl_table *table);
const char *acl_hostacl_error(const acl_table *table);
int acl_hostacl_configure(const acl_table *table, const char *key, const char *value);
int acl_hostacl_reset(const acl_table *table);
int acl_hostacl_fail(const acl_table *table, const char *function, uint64_t nth, int code);
uint64_t acl_hostacl_calls(const acl_table *table, const char *function);
int acl_hostacl_live(const acl_table *table, hostacl_live_t *out);
int acl_hostacl_live_report(const acl_table *table, char *buf, size_t len);
int acl_hostacl_info(const acl_table *table, char *buf, size_t len);
