/* Controls of the host runtime, for tests and tools; a card's library has none of them.
 *
 * hostacl_version marks the library: who finds it by dlsym talks to the host runtime. Calls that can fail return an ACL
 * code, 0 for success; hostacl_error then explains the last refusal on the calling thread. All calls may be made from
 * any thread. Sizes are bytes. */
#ifndef GEVAR_HOSTACL_H
#define GEVAR_HOSTACL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HOSTACL_API __attribute__((visibility("default")))
#define HOSTACL_VERSION "0.1.0"
#define HOSTACL_MAX_DEVICES 64

/* Version text of the host runtime, static. */
HOSTACL_API const char *hostacl_version(void);

/* Text of the last refusal by a hostacl call on this thread, "" when there was none; valid until the next refusal. */
HOSTACL_API const char *hostacl_error(void);

/* Sets one option. The same keys are read from the environment as HOSTACL_<KEY> in capitals, at the first call of the
 * library and at hostacl_reset. These are allowed while no device is set, no context made and nothing allocated or
 * reserved, else 148051:
 *   devices        number of devices, 1 to 64 (2)
 *   soc_name       product, e.g. Ascend910B1 (the default); decides padding, 1 GiB pages, memory type and pool sizes
 *   capacity       bytes of memory per device; pools that are not given follow from it
 *   pages_4k       bytes of the pool of 4 KiB pages per device
 *   pages_2m       bytes of the pool of 2 MiB pages per device
 *   pages_1g       number of 1 GiB pages per device, or none: the driver lacks the feature
 *   profile        strict (default) or card
 *   first_address  lowest device address; then nothing is reserved and reading a device address need not fault
 *   mode           isolated (default) or unified: memory is also mapped at its device address, so that host code which
 *                  plays a kernel can use device pointers; vm.max_map_count then limits blocks and mappings
 *   hugetlb        1: pools of 2 MiB and 1 GiB pages consist of huge pages of the host where it has them (0)
 *   virtual_memory on (default), or off: the driver lacks reserved ranges, their calls return 207000
 * These may change at any time:
 *   poison         byte that new device and host memory is filled with, or off (default: its content is left open)
 *   poison_free    byte that memory is filled with when it is freed, or off (default)
 *   stacks         on: live objects keep the calls that made them, for hostacl_live_report; off (default)
 *   leaks          what happens when objects are alive at process exit: off (default), report to stderr, or fail: the
 *                  report, then exit code 99
 *   trace          where a JSON line for every call goes: off (default), stderr, fd:N or the path of a file
 *   hold           on: streams are made held, as by hostacl_hold; off (default)
 *   app_log        where aclAppLog writes: off (default), stderr, fd:N or the path of a file
 * Numbers are decimal or 0x hexadecimal; sizes may end in K, M, G or T (powers of 1024). */
HOSTACL_API int hostacl_configure(const char *key, const char *value);

/* Back to the start: everything is freed and destroyed, device counts are 0, counters and planned faults are gone,
 * options are those of the environment. Handles and addresses from before are dead. */
HOSTACL_API int hostacl_reset(void);

/* ---- Faults. hostacl_reset takes them back, then those of the environment are in force. ---- */

/* Makes the nth call from now (1 is the next) of an exported function return code before it has any effect; other calls
 * run. nth 0 clears the failure of that function. A null function with nth 0 clears all.
 * Environment: HOSTACL_FAIL=aclrtMalloc:3:207001,aclrtMemcpy:1:507899 */
HOSTACL_API int hostacl_fail(const char *function, uint64_t nth, int code);

/* Makes every call of an exported function wait first; 0 ends that. A null function with 0 ends it for all.
 * Environment: HOSTACL_DELAY=aclrtMemcpy:200,aclrtMalloc:50 */
HOSTACL_API int hostacl_delay(const char *function, uint64_t microseconds);

/* Makes allocations of device, host and physical memory above bytes fail with code; code 0 ends that.
 * Environment: HOSTACL_FAIL_ABOVE=1G or HOSTACL_FAIL_ABOVE=1G:207005 (207001 without a code) */
HOSTACL_API int hostacl_fail_above(uint64_t bytes, int code);

/* Makes the nth copy from now (1 is the next) move only its first bytes and return code, or report it where the copy is
 * asynchronous; code 0 hides the loss. Copies of no bytes and refused ones do not count. nth 0 ends that.
 * Environment: HOSTACL_SHORT_COPY=2:4096:507899 */
HOSTACL_API int hostacl_short_copy(uint64_t nth, uint64_t bytes, int code);

/* Makes the nth task from now (1 is the next) that a stream takes in hand fail with code instead of running; who
 * synchronises gets the code. nth 0 ends that.
 * Environment: HOSTACL_FAIL_TASK=3:507899 */
HOSTACL_API int hostacl_fail_task(uint64_t nth, int code);

/* Makes every task that calls of an exported function give to a stream wait before it runs; 0 ends that. A null
 * function stands for all functions. Environment: HOSTACL_DELAY_TASK=aclrtMemcpyAsync:200,aclrtRecordEvent:50 */
HOSTACL_API int hostacl_delay_task(const char *function, uint64_t microseconds);

/* Holds every stream of a device (-1: of all devices) that exists now: it takes tasks and runs none. When the call
 * returns, none of them moves a byte. A held stream that is destroyed, or whose context or device goes, is released. */
HOSTACL_API int hostacl_hold(int32_t device);

/* Lets the streams of a device (-1: of all devices) go on. With -1 the option hold is off from then on. */
HOSTACL_API int hostacl_release(int32_t device);

/* Makes symbol the stand-in of a variable of bytes on every device, as the device's compiler does on a card: the calls
 * with "Symbol" in their name then know it. Each device has its own, zero at first. 0 bytes take the symbol away. */
HOSTACL_API int hostacl_symbol(const void *symbol, uint64_t bytes);

/* ---- What happens and what is there ---- */

/* Calls of an exported function since the start or the last reset, refused ones included; 0 for an unknown name. */
HOSTACL_API uint64_t hostacl_calls(const char *function);

/* What is alive on one device. */
typedef struct {
    uint64_t set_count;       /* SetDevice calls not yet undone */
    uint64_t pages_4k_used;   /* 4 KiB pages taken */
    uint64_t pages_4k_total;  /* 4 KiB pages there are */
    uint64_t pages_2m_used;   /* 2 MiB pages taken */
    uint64_t pages_2m_total;  /* 2 MiB pages there are */
    uint64_t pages_1g_used;   /* 1 GiB pages taken */
    uint64_t pages_1g_total;  /* 1 GiB pages there are */
    uint64_t committed_bytes; /* host memory behind the device's pages now */
} hostacl_device_live_t;

/* What is alive in the process. */
typedef struct {
    uint64_t blocks;      /* device blocks of the aclrtMalloc family */
    uint64_t bytes;       /* their bytes, rounded up to whole pages */
    uint64_t host_blocks; /* pinned host blocks */
    uint64_t host_bytes;  /* their bytes, rounded up to whole pages */
    uint64_t contexts;    /* explicit contexts */
    uint64_t devices_set; /* devices with a set count above 0 */
    uint32_t device_count;
    hostacl_device_live_t devices[HOSTACL_MAX_DEVICES];
    uint64_t reservations;     /* reserved ranges of device address */
    uint64_t reserved_bytes;   /* their bytes */
    uint64_t handles;          /* physical memory handles, those held by mappings only included */
    uint64_t handle_bytes;     /* bytes of their pages */
    uint64_t mappings;         /* mappings of handles into reserved ranges */
    uint64_t exports;          /* handles and blocks offered to other processes, also those only kept for their users */
    uint64_t imports;          /* handles and blocks of other processes in use here */
    uint64_t managed;          /* pieces of managed memory */
    uint64_t managed_bytes;    /* their bytes, multiples of 2 MiB */
    uint64_t allocators;       /* descriptions of custom allocators */
    uint64_t mem_pools;        /* stream-ordered memory pools; their blocks count as blocks */
    uint64_t registered;       /* ranges of host memory registered by the caller */
    uint64_t registered_bytes; /* their bytes */
    uint64_t streams;          /* streams without the default ones */
    uint64_t tasks;            /* tasks of all streams that are not through */
    uint64_t events;           /* events */
    uint64_t notifies;         /* notifies */
    uint64_t data_buffers;     /* of aclCreateDataBuffer */
    uint64_t models;           /* loaded models; blocks that they allocated count as blocks */
    uint64_t model_configs;    /* of aclmdlCreateConfigHandle */
    uint64_t model_descs;      /* of aclmdlCreateDesc */
} hostacl_live_t;

HOSTACL_API int hostacl_live(hostacl_live_t *out);

/* Writes one line per live object, with the option stacks the calls that made it on the lines below, each after four
 * spaces; at most len bytes with the closing zero. Returns the length of the whole text, as snprintf does. buf may be
 * null when len is 0. */
HOSTACL_API int hostacl_live_report(char *buf, size_t len);

/* Writes "key: value" lines: version, profile, soc_name, address range and whether it is reserved, pool sizes, devices.
 * Returns the length of the whole text, as snprintf does. buf may be null when len is 0. */
HOSTACL_API int hostacl_info(char *buf, size_t len);

#ifdef __cplusplus
}
#endif

#endif
