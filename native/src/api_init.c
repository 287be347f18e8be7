/* Exported: initialisation, error state, what the runtime is. None of these calls needs a device.
 *
 * Thread safety: any thread, any time; the state is guarded by the table lock or belongs to the thread. */
#include "acl/acl.h"
#include "context.h"
#include "entry.h"
#include "errors.h"
#include "init_state.h"
#include "runtime.h"
#include "table.h"

aclError aclInit(const char *configPath) {
    ENTER(aclInit, configPath);
    table_lock();
    int code = init_state_enter(configPath);
    table_unlock();
    return code;
}

aclError aclFinalize(void) {
    ENTER(aclFinalize);
    table_lock();
    int code = init_state_leave_all();
    table_unlock();
    return code;
}

aclError aclFinalizeReference(uint64_t *refCount) {
    ENTER(aclFinalizeReference, refCount);
    table_lock();
    int code = init_state_leave(refCount);
    table_unlock();
    return code;
}

const char *aclGetRecentErrMsg(void) {
    ENTER_OR(runtime_blocked(), aclGetRecentErrMsg);
    table_lock();
    bool has_context = context_current();
    table_unlock();
    return error_recent(has_context);
}

static aclError last_error(aclrtLastErrLevel level, bool clear) {
    if (level != ACL_RT_THREAD_LEVEL)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "level %d is not ACL_RT_THREAD_LEVEL (0)", (int)level);
    return error_last(clear);
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
    ENTER(aclrtPeekAtLastError, level);
    return last_error(level, false);
}

aclError aclrtGetLastError(aclrtLastErrLevel level) {
    ENTER(aclrtGetLastError, level);
    return last_error(level, true);
}

aclError aclrtGetRunMode(aclrtRunMode *runMode) {
    ENTER(aclrtGetRunMode, runMode);
    if (!runMode)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "runMode is null");
    *runMode = ACL_HOST;
    return ACL_SUCCESS;
}

const char *aclrtGetSocName(void) {
    ENTER_OR(NULL, aclrtGetSocName);
    table_lock();
    const char *name = runtime_config()->soc_name;
    table_unlock();
    return name;
}
