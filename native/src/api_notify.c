/* Exported: notifies, and words of device memory that streams write and wait for. Thread safety: any thread, any time.
 */
#include "acl/acl.h"
#include "context.h"
#include "entry.h"
#include "errors.h"
#include "notify.h"
#include "place.h"
#include "stream.h"
#include "table.h"
#include "value_task.h"

#define MS_PER_S 1000u
#define WORD_BYTES 8
#define LEAST_KEY_BYTES 65

aclError aclrtCreateNotify(aclrtNotify *notify, uint64_t flag) {
    ENTER(aclrtCreateNotify, notify, flag);
    if (!notify)
        return error_null("notify");
    if (flag > ACL_NOTIFY_DEVICE_USE_ONLY)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "flag %llu is neither 0 nor 1",
                           (unsigned long long)flag);
    table_lock();
    int code = notify_create(notify);
    table_unlock();
    return code;
}

aclError aclrtDestroyNotify(aclrtNotify notify) {
    ENTER(aclrtDestroyNotify, notify);
    if (!notify)
        return error_null("notify");
    table_lock();
    struct notify *found = notify_need(notify);
    if (found)
        notify_destroy(found);
    table_unlock();
    return found ? ACL_SUCCESS : ACL_ERROR_RT_INVALID_HANDLE;
}

aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream) {
    ENTER(aclrtRecordNotify, notify, stream);
    int code;
    if (!notify)
        return error_null("notify");
    table_lock();
    struct stream *where = stream_need(stream, true, &code);
    struct notify *found = where ? notify_need(notify) : NULL;
    if (where)
        code = found ? notify_record(found, where) : ACL_ERROR_RT_INVALID_HANDLE;
    table_unlock();
    return code;
}

aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, uint32_t timeout) {
    ENTER(aclrtWaitAndResetNotify, notify, stream, timeout);
    int code;
    if (!notify)
        return error_null("notify");
    table_lock();
    struct stream *where = stream_need(stream, true, &code);
    struct notify *found = where ? notify_need(notify) : NULL;
    if (where)
        code = found ? notify_wait(found, where, (uint64_t)timeout * MS_PER_S) : ACL_ERROR_RT_INVALID_HANDLE;
    table_unlock();
    return code;
}

/* The live notify of a call that needs a context; null with the code. The table lock is held. */
static struct notify *need(const void *handle, int *code) {
    struct notify *notify = context_need() ? notify_need(handle) : NULL;
    *code = notify ? ACL_SUCCESS : context_current() ? ACL_ERROR_RT_INVALID_HANDLE : ACL_ERROR_RT_CONTEXT_NULL;
    return notify;
}

static int check_flags(uint64_t flags) {
    if (!(flags & ~(uint64_t)ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION))
        return ACL_SUCCESS;
    return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "flags %llu is neither 0 nor 2",
                       (unsigned long long)flags);
}

aclError aclrtNotifyGetExportKey(aclrtNotify notify, char *key, size_t len, uint64_t flags) {
    ENTER(aclrtNotifyGetExportKey, notify, key, len, flags);
    if (!notify || !key)
        return error_null(notify ? "key" : "notify");
    int code = check_flags(flags);
    if (code)
        return code;
    if (len < LEAST_KEY_BYTES)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "len %zu is below %d bytes", len,
                           LEAST_KEY_BYTES);
    table_lock();
    struct notify *found = need(notify, &code);
    if (found)
        code = notify_export(found, !flags, key);
    table_unlock();
    return code;
}

aclError aclrtNotifyImportByKey(aclrtNotify *notify, const char *key, uint64_t flags) {
    ENTER(aclrtNotifyImportByKey, notify, key, flags);
    if (!notify || !key)
        return error_null(notify ? "key" : "notify");
    int code = check_flags(flags);
    if (code)
        return code;
    table_lock();
    code = notify_import(key, notify);
    table_unlock();
    return code;
}

aclError aclrtNotifySetImportPid(aclrtNotify notify, int32_t *pid, size_t num) {
    ENTER(aclrtNotifySetImportPid, notify, IN(pid), num);
    int code;
    if (!notify || !pid)
        return error_null(notify ? "pid" : "notify");
    if (!num)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "num is 0");
    table_lock();
    struct notify *found = need(notify, &code);
    if (found)
        code = notify_allow(found, pid, num);
    table_unlock();
    return code;
}

/* Whether an address may be that of a word; returns a code. */
static int check_word(const void *addr) {
    if (!addr)
        return error_null("devAddr");
    if ((uintptr_t)addr % WORD_BYTES)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "devAddr %p is not at a multiple of 8 bytes",
                           addr);
    return ACL_SUCCESS;
}

/* The stream of a call on a word that is in device memory now; null with the code. The table lock is held. */
static struct stream *word_stream(aclrtStream stream, const void *addr, int *code) {
    struct stream *where = stream_need(stream, true, code);
    enum place_kind place = place_of((uint64_t)(uintptr_t)addr).kind;
    if (!where || place == PLACE_DEVICE)
        return where;
    *code = error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "devAddr %p is %s", addr, place_name(place));
    return NULL;
}

aclError aclrtValueWrite(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream) {
    ENTER(aclrtValueWrite, devAddr, value, flag, stream);
    int code = check_word(devAddr);
    if (code)
        return code;
    if (flag)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "flag %u is not 0", flag);
    table_lock();
    struct stream *where = word_stream(stream, devAddr, &code);
    if (where)
        code = value_write(where, (uint64_t)(uintptr_t)devAddr, value);
    table_unlock();
    return code;
}

aclError aclrtValueWait(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream) {
    ENTER(aclrtValueWait, devAddr, value, flag, stream);
    int code = check_word(devAddr);
    if (code)
        return code;
    if (flag > ACL_STREAM_WAIT_VALUE_NOR)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "flag %u is not in 0..3", flag);
    table_lock();
    struct stream *where = word_stream(stream, devAddr, &code);
    if (where)
        code = value_wait(where, (uint64_t)(uintptr_t)devAddr, value, flag);
    table_unlock();
    return code;
}
