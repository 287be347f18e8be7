/* Exported: the controls hostacl_configure, _reset, _fail, _calls, _error and _version. They are no part of the ACL
 * interface and are not counted. Thread safety: any thread, any time; the text of hostacl_error belongs to the thread.
 */
#include <stdio.h>

#include "acl/acl_base.h"
#include "entry.h"
#include "hostacl.h"
#include "runtime.h"

static _Thread_local struct complaint complaint;

static int refuse(int code, const char *text) {
    snprintf(complaint.text, sizeof(complaint.text), "%s", text);
    return code;
}

const char *hostacl_version(void) {
    return "hostacl " HOSTACL_VERSION;
}

const char *hostacl_error(void) {
    return complaint.text;
}

int hostacl_configure(const char *key, const char *value) {
    if (!key || !value)
        return refuse(ACL_ERROR_INVALID_PARAM, "key or value is null");
    runtime_start();
    const char *blocked = runtime_blocked();
    if (blocked)
        return refuse(ACL_ERROR_RT_DEV_SETUP_ERROR, blocked);
    return runtime_configure(key, value, &complaint);
}

int hostacl_reset(void) {
    runtime_start();
    if (runtime_forked())
        return refuse(ACL_ERROR_RT_DEV_SETUP_ERROR, runtime_blocked());
    entry_reset();
    return runtime_reset(&complaint);
}

int hostacl_fail(const char *function, uint64_t nth, int code) {
    if (!function && nth)
        return refuse(ACL_ERROR_INVALID_PARAM, "function is null; only nth 0 may clear all functions");
    if (nth && !code)
        return refuse(ACL_ERROR_INVALID_PARAM, "code 0 is no failure");
    if (!function) {
        for (enum function_id each = 0; each < FUNCTION_COUNT; each++)
            entry_fail(each, 0, 0);
        return ACL_SUCCESS;
    }
    enum function_id found = entry_find(function);
    if (found == FUNCTION_COUNT) {
        snprintf(complaint.text, sizeof(complaint.text), "%.60s is no exported function", function);
        return ACL_ERROR_INVALID_PARAM;
    }
    entry_fail(found, nth, code);
    return ACL_SUCCESS;
}

uint64_t hostacl_calls(const char *function) {
    enum function_id found = function ? entry_find(function) : FUNCTION_COUNT;
    return found < FUNCTION_COUNT ? entry_calls(found) : 0;
}
