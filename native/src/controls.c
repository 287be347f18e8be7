/* Exported: the controls hostacl_configure, _reset, _fail, _fail_task, _fail_above, _short_copy, _delay,
 * _delay_task, _hold, _release, _symbol, _calls, _error and _version. They are no part of the ACL interface and are not
 * counted. Thread safety: any thread, any time; the text of hostacl_error belongs to the thread.
 */
#include <stdio.h>

#include "acl/acl_base.h"
#include "device.h"
#include "entry.h"
#include "faults.h"
#include "hostacl.h"
#include "runtime.h"
#include "stream_hold.h"
#include "symbols.h"
#include "table.h"

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

/* The functions a control names: one, or for null all of them. False when there is none of that name. */
static bool find_functions(const char *function, enum function_id *first, enum function_id *end) {
    *first = function ? entry_find(function) : 0;
    *end = function ? *first + 1 : FUNCTION_COUNT;
    if (*first < FUNCTION_COUNT)
        return true;
    snprintf(complaint.text, sizeof(complaint.text), "%.60s is no exported function", function);
    return false;
}

int hostacl_fail(const char *function, uint64_t nth, int code) {
    enum function_id each, end;
    runtime_start();
    if (!function && nth)
        return refuse(ACL_ERROR_INVALID_PARAM, "function is null; only nth 0 may clear all functions");
    if (nth && !code)
        return refuse(ACL_ERROR_INVALID_PARAM, "code 0 is no failure");
    if (!find_functions(function, &each, &end))
        return ACL_ERROR_INVALID_PARAM;
    for (; each < end; each++)
        entry_fail(each, nth, code);
    return ACL_SUCCESS;
}

int hostacl_delay(const char *function, uint64_t microseconds) {
    enum function_id each, end;
    runtime_start();
    if (!function && microseconds)
        return refuse(ACL_ERROR_INVALID_PARAM, "function is null; only 0 microseconds may be set for all functions");
    if (!find_functions(function, &each, &end))
        return ACL_ERROR_INVALID_PARAM;
    for (; each < end; each++)
        entry_delay(each, microseconds);
    return ACL_SUCCESS;
}

int hostacl_fail_above(uint64_t bytes, int code) {
    runtime_start();
    if (runtime_forked())
        return refuse(ACL_ERROR_RT_DEV_SETUP_ERROR, runtime_blocked());
    table_lock();
    faults_fail_above(bytes, code);
    table_unlock();
    return ACL_SUCCESS;
}

int hostacl_short_copy(uint64_t nth, uint64_t bytes, int code) {
    runtime_start();
    if (runtime_forked())
        return refuse(ACL_ERROR_RT_DEV_SETUP_ERROR, runtime_blocked());
    table_lock();
    faults_short_copy(nth, bytes, code);
    table_unlock();
    return ACL_SUCCESS;
}

int hostacl_fail_task(uint64_t nth, int code) {
    runtime_start();
    if (runtime_forked())
        return refuse(ACL_ERROR_RT_DEV_SETUP_ERROR, runtime_blocked());
    if (nth && !code)
        return refuse(ACL_ERROR_INVALID_PARAM, "code 0 is no failure");
    table_lock();
    faults_fail_task(nth, code);
    table_unlock();
    return ACL_SUCCESS;
}

int hostacl_delay_task(const char *function, uint64_t microseconds) {
    enum function_id each, end;
    runtime_start();
    if (runtime_forked())
        return refuse(ACL_ERROR_RT_DEV_SETUP_ERROR, runtime_blocked());
    if (!find_functions(function, &each, &end))
        return ACL_ERROR_INVALID_PARAM;
    table_lock();
    for (; each < end; each++)
        faults_delay_task(each, microseconds);
    table_unlock();
    return ACL_SUCCESS;
}

/* Holds or releases the streams of a device, or of all. */
static int act_on_streams(int32_t id, void (*act)(const struct device *)) {
    runtime_start();
    const char *blocked = runtime_blocked();
    if (blocked)
        return refuse(ACL_ERROR_RT_DEV_SETUP_ERROR, blocked);
    table_lock();
    const struct device *device = device_at(id);
    bool good = device || id == -1;
    if (good)
        act(device);
    table_unlock();
    return good ? ACL_SUCCESS : refuse(ACL_ERROR_INVALID_PARAM, "there is no such device; -1 means all");
}

int hostacl_hold(int32_t device) {
    return act_on_streams(device, stream_hold);
}

int hostacl_release(int32_t device) {
    runtime_start();
    int code = device == -1 && !runtime_blocked() ? runtime_configure("hold", "off", &complaint) : ACL_SUCCESS;
    if (code)
        return code;
    return act_on_streams(device, stream_release);
}

int hostacl_symbol(const void *symbol, uint64_t bytes) {
    runtime_start();
    const char *blocked = runtime_blocked();
    if (blocked)
        return refuse(ACL_ERROR_RT_DEV_SETUP_ERROR, blocked);
    if (!symbol)
        return refuse(ACL_ERROR_INVALID_PARAM, "symbol is null");
    table_lock();
    bool good = symbol_define(symbol, bytes);
    table_unlock();
    return good ? ACL_SUCCESS
                : refuse(ACL_ERROR_INVALID_PARAM, bytes ? "the symbol has another size" : "unknown symbol");
}

uint64_t hostacl_calls(const char *function) {
    enum function_id found = function ? entry_find(function) : FUNCTION_COUNT;
    return found < FUNCTION_COUNT ? entry_calls(found) : 0;
}
