/* Start, options in force and reset.
 *
 * The first call of any exported function reads the environment and takes the device address range. A bad variable is
 * printed once and blocks every call until hostacl_reset finds a good environment. A forked child is blocked for good:
 * threads that held locks or moved bytes are missing there and the device memory was not handed on. It is told apart by
 * a page that the kernel wipes on fork, which costs a load per call.
 *
 * Thread safety: started once; the options are guarded by the table lock; the blocking text is written before the flag
 * that announces it. */
#include "runtime.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>

#include "acl/acl_base.h"
#include "allocator.h"
#include "app_log.h"
#include "context.h"
#include "data_buffer.h"
#include "device.h"
#include "errors.h"
#include "event.h"
#include "exception_info.h"
#include "faults.h"
#include "host_blocks.h"
#include "host_memory.h"
#include "host_register.h"
#include "init_state.h"
#include "leaks.h"
#include "managed.h"
#include "model_handles.h"
#include "pagetable.h"
#include "physical.h"
#include "poison.h"
#include "reserve.h"
#include "stack.h"
#include "stream_state.h"
#include "symbols.h"
#include "table.h"
#include "trace.h"
#include "vspace.h"

#define PAGE 4096

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const volatile char *alive;       /* 1 in the process that started, wiped to 0 in its children */
static struct config config;             /* options in force */
static struct complaint bad_environment; /* what blocks every call */
static atomic_bool blocked;              /* bad_environment holds a text */

/* Tells the modules that act without the table lock; false with a complaint when a file cannot be opened. */
static bool apply(const struct config *next, struct complaint *complaint) {
    if (!trace_to(next->trace, complaint) || !app_log_to(next->app_log, complaint))
        return false;
    poison_apply(next);
    if (next->stacks)
        stack_prepare();
    if (next->leaks != LEAKS_IGNORED)
        leaks_prepare();
    return true;
}

/* Reads the options and opens the address range; the table lock is held or not yet needed. */
static void load(void) {
    struct complaint complaint = {""};
    config_defaults(&config);
    bool good = config_from_environment(&config, &complaint) && apply(&config, &complaint) &&
                faults_from_environment(&complaint);
    if (!good) {
        config_defaults(&config);
        apply(&config, &(struct complaint){""});
        bad_environment = complaint;
        fprintf(stderr, "hostacl: %s\n", complaint.text);
    }
    atomic_store(&blocked, !good);
    vspace_open(&config);
}

static void start(void) {
    char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static char unmarked = 1;
    if (page == MAP_FAILED || madvise(page, PAGE, MADV_WIPEONFORK))
        page = &unmarked;
    *page = 1;
    alive = page;
    load();
}

void runtime_start(void) {
    pthread_once(&once, start);
}

bool runtime_forked(void) {
    return !*alive;
}

const char *runtime_blocked(void) {
    if (runtime_forked())
        return "this process was forked from one that used the runtime; start a new process with exec instead";
    return atomic_load(&blocked) ? bad_environment.text : NULL;
}

enum leak_action runtime_leaks_at_exit(void) {
    if (!alive || runtime_blocked() || !table_lock_within(1))
        return LEAKS_IGNORED;
    enum leak_action action = config.leaks;
    table_unlock();
    return action;
}

const struct config *runtime_config(void) {
    return &config;
}

/* Whether anything is held that depends on the options. */
static bool in_use(void) {
    return device_any_open() || host_memory()->open || host_memory()->handles || host_register_count() ||
           host_blocks_count() > 0 || reservations_count() > 0;
}

/* Ends whatever is held; devices and host blocks first, as only they can be waited for. */
static void end_all(void) {
    while (device_any_open() || host_blocks_count() > 0) {
        device_close_all();
        host_blocks_free_all();
    }
    host_unregister_all();
    managed_free_all();
    allocators_drop_all();
    physicals_drop_device(host_memory());
    host_memory_close_if_idle();
    reservations_drop_all();
    data_buffers_drop_all();
    model_configs_drop_all();
    model_descs_drop_all();
    symbols_drop_all();
    pagetable_close();
}

int runtime_configure(const char *key, const char *value, struct complaint *complaint) {
    int code = ACL_SUCCESS;
    bool any_time = config_any_time(key);
    table_lock();
    struct config next = config;
    if (!any_time && in_use()) {
        snprintf(
            complaint->text, sizeof(complaint->text),
            "%.40s: a device is open, or host memory or addresses are held; release them or call hostacl_reset first",
            key);
        code = ACL_ERROR_RELATIVE_RESOURCE_NOT_CLEARED;
    } else if (!config_set(&next, key, value, complaint) || !apply(&next, complaint)) {
        code = ACL_ERROR_INVALID_PARAM;
    } else {
        config = next;
        if (!any_time) {
            pagetable_close();
            vspace_close();
            vspace_open(&config);
        }
    }
    table_unlock();
    return code;
}

int runtime_reset(struct complaint *complaint) {
    table_lock();
    end_all();
    device_forget_settings();
    init_state_reset();
    error_reset();
    faults_reset();
    stream_state_reset();
    exception_reset();
    event_set_wait_limit(0);
    vspace_close();
    load();
    bool good = !atomic_load(&blocked);
    if (!good)
        *complaint = bad_environment;
    table_unlock();
    return good ? ACL_SUCCESS : ACL_ERROR_INVALID_PARAM;
}
