/* Notifies and events of two processes. */
#include "other_process.h"

static aclrtStream stream;
static aclrtNotify notify;
static aclrtEvent event;

/* ---- The other process ---- */

static void open_event(aclrtEvent *out, const char *text, int *code) {
    aclrtIpcEventHandle handle;
    memset(&handle, 0, sizeof(handle));
    memcpy(handle.reserved, text, strlen(text));
    *code = aclrtIpcOpenEventHandle(handle, out);
}

static long long obey_marks(const char *line) {
    unsigned long long a = 0;
    char text[200] = "";
    int code = 0;
    aclrtEventRecordedStatus status;
    if (!strcmp(line, "stream"))
        return aclrtCreateStream(&stream);
    if (sscanf(line, "import notify %llu %199s", &a, text) == 2)
        return aclrtNotifyImportByKey(&notify, text, a);
    if (!strcmp(line, "record notify"))
        return aclrtRecordNotify(notify, stream);
    if (sscanf(line, "wait notify %llu", &a) == 1)
        return aclrtWaitAndResetNotify(notify, stream, (uint32_t)a);
    if (!strcmp(line, "destroy notify"))
        return aclrtDestroyNotify(notify);
    if (sscanf(line, "open event %199s", text) == 1) {
        open_event(&event, text, &code);
        return code;
    }
    if (!strcmp(line, "record event"))
        return aclrtRecordEvent(event, stream);
    if (!strcmp(line, "wait event"))
        return aclrtStreamWaitEvent(stream, event);
    if (!strcmp(line, "query event"))
        return aclrtQueryEventStatus(event, &status) ? -2 : (long long)status;
    if (sscanf(line, "synchronize event %llu", &a) == 1)
        return aclrtSynchronizeEventWithTimeout(event, (int32_t)a);
    if (!strcmp(line, "destroy event"))
        return aclrtDestroyEvent(event);
    if (sscanf(line, "synchronize %llu", &a) == 1)
        return aclrtSynchronizeStreamWithTimeout(stream, (int32_t)a);
    if (!strcmp(line, "hold"))
        return hostacl_hold(-1);
    if (!strcmp(line, "release streams"))
        return hostacl_release(-1);
    if (!strcmp(line, "drop"))
        return aclrtDestroyStreamForce(stream);
    return -3;
}

/* ---- This process ---- */

static struct other other;

static void set_up(void) {
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    other = start_other();
    CHECK_EQ(ask(&other, "device 0"), 0);
    CHECK_EQ(ask(&other, "stream"), 0);
}

static void tear_down(void) {
    CHECK_EQ(ask(&other, "reset 0"), 0);
    end_other(&other, 0);
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

static void share_notify(void) {
    char key[65];
    OK(aclrtCreateNotify(&notify, 0));
    OK(aclrtNotifyGetExportKey(notify, key, sizeof(key), ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION));
    CHECK_EQ(ask(&other, "import notify 0 %s", key), 0);
}

static void share_event(void) {
    aclrtIpcEventHandle handle;
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC));
    OK(aclrtIpcGetEventHandle(event, &handle));
    CHECK_EQ(ask(&other, "open event %s", handle.reserved), 0);
}

static bool is_done(void) {
    aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    OK(aclrtQueryEventStatus(event, &status));
    return status == ACL_EVENT_RECORDED_STATUS_COMPLETE;
}

static void test_arguments(void) {
    static const char *const wrong[] = {"",
                                        "x",
                                        "hostacl-notify-",
                                        "hostacl-notify-0000000000000000",
                                        "hostacl-notify-ffffffffffffffff",
                                        "hostacl-event-0000000000000001",
                                        "hostacl-memory-0000000000000001",
                                        "hostacl-notify-0000000000000001 "};
    char key[65] = "", again[65] = "";
    int32_t pid = 1;
    int code = 0;
    aclrtIpcEventHandle handle, same;
    aclrtNotify got = (aclrtNotify)7;
    aclrtEvent opened = (aclrtEvent)7;
    start(NULL);
    CHECK_EQ(aclrtNotifyImportByKey(&got, "hostacl-notify-0000000000000001", 0), ACL_ERROR_RT_CONTEXT_NULL);
    open_event(&opened, "hostacl-event-0000000000000001", &code);
    CHECK_EQ(code, ACL_ERROR_RT_CONTEXT_NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtCreateNotify(&notify, 0));
    CHECK_EQ(aclrtNotifyGetExportKey(NULL, key, 65, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtNotifyGetExportKey(notify, NULL, 65, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtNotifyGetExportKey(notify, key, 64, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtNotifyGetExportKey(notify, key, 65, 1), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtNotifyGetExportKey(key, key, 65, 0), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(aclrtNotifySetImportPid(NULL, &pid, 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtNotifySetImportPid(notify, NULL, 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtNotifySetImportPid(notify, &pid, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtNotifySetImportPid(notify, &pid, 1), ACL_ERROR_RT_PARAM_INVALID); /* not exported */
    CHECK_EQ(aclrtNotifyImportByKey(NULL, key, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtNotifyImportByKey(&got, NULL, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtNotifyImportByKey(&got, key, 1), ACL_ERROR_RT_PARAM_INVALID);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        CHECK_EQ(aclrtNotifyImportByKey(&got, wrong[i], 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtNotifyGetExportKey(notify, key, 65, 0));
    OK(aclrtNotifyGetExportKey(notify, again, 65, 2));
    CHECK(key[0] && !strcmp(key, again));
    CHECK_EQ(aclrtNotifyImportByKey(&got, key, 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR); /* its own */
    CHECK(got == (aclrtNotify)7);
    OK(aclrtDestroyNotify(notify));
    CHECK_EQ(live_now().exports, 0);
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC));
    CHECK_EQ(aclrtIpcGetEventHandle(NULL, &handle), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtIpcGetEventHandle(event, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtIpcGetEventHandle(&handle, &handle), ACL_ERROR_RT_INVALID_HANDLE);
    OK(aclrtIpcGetEventHandle(event, &handle));
    OK(aclrtIpcGetEventHandle(event, &same));
    CHECK(!memcmp(&handle, &same, sizeof(handle)));
    CHECK_EQ(aclrtIpcOpenEventHandle(handle, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtIpcOpenEventHandle(handle, &opened), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    memset(&handle, 'x', sizeof(handle)); /* no zero anywhere */
    CHECK_EQ(aclrtIpcOpenEventHandle(handle, &opened), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK(opened == (aclrtEvent)7);
    OK(aclrtDestroyEvent(event));
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    CHECK_EQ(aclrtIpcGetEventHandle(event, &handle), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

/* An event of several processes used by one is like any other. */
static void test_event_alone(void) {
    float ms = 0;
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC));
    CHECK(is_done());
    OK(aclrtSynchronizeEvent(event));
    OK(aclrtStreamWaitEvent(stream, event));
    OK(hostacl_hold(0));
    OK(aclrtRecordEvent(event, stream));
    CHECK(!is_done());
    CHECK_EQ(aclrtSynchronizeEventWithTimeout(event, 10), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
    CHECK_EQ(aclrtEventElapsedTime(&ms, event, event), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
    CHECK_EQ(aclrtResetEvent(event, stream), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    aclrtStream open = NULL;
    OK(aclrtCreateStream(&open));
    OK(aclrtStreamWaitEvent(open, event));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(open, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    OK(hostacl_release(0));
    OK(aclrtSynchronizeStream(open));
    OK(aclrtSynchronizeEvent(event));
    CHECK(is_done());
    CHECK_EQ(aclrtEventElapsedTime(&ms, event, event), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

/* Each of two processes records, the other waits; no wake is missed and one record lets one wait through. */
static void test_notify(void) {
    set_up();
    share_notify();
    CHECK_EQ(ask(&other, "wait notify 0"), 0);
    CHECK_EQ(ask(&other, "synchronize 20"), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    OK(aclrtRecordNotify(notify, stream));
    CHECK_EQ(ask(&other, "synchronize 20000"), 0);
    CHECK_EQ(ask(&other, "wait notify 0"), 0);
    CHECK_EQ(ask(&other, "synchronize 20"), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    OK(aclrtRecordNotify(notify, stream));
    CHECK_EQ(ask(&other, "synchronize 20000"), 0);
    OK(aclrtWaitAndResetNotify(notify, stream, 0));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    CHECK_EQ(ask(&other, "record notify"), 0);
    OK(aclrtSynchronizeStream(stream));
    for (int round = 0; round < 200; round++) {
        OK(aclrtRecordNotify(notify, stream));
        CHECK_EQ(ask(&other, "wait notify 0"), 0);
        CHECK_EQ(ask(&other, "synchronize 20000"), 0);
        CHECK_EQ(ask(&other, "record notify"), 0);
        OK(aclrtWaitAndResetNotify(notify, stream, 0));
        OK(aclrtSynchronizeStream(stream));
    }
    tear_down();
}

/* What was recorded, and what waits, before the export counts. */
static void test_notify_exported_late(void) {
    char key[65];
    set_up();
    OK(aclrtCreateNotify(&notify, 0));
    OK(aclrtRecordNotify(notify, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtNotifyGetExportKey(notify, key, sizeof(key), 2));
    CHECK_EQ(ask(&other, "import notify 2 %s", key), 0);
    CHECK_EQ(ask(&other, "wait notify 0"), 0);
    CHECK_EQ(ask(&other, "synchronize 20000"), 0);
    CHECK_EQ(ask(&other, "destroy notify"), 0);
    OK(aclrtDestroyNotify(notify));
    OK(aclrtCreateNotify(&notify, 0));
    OK(aclrtWaitAndResetNotify(notify, stream, 0));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    OK(aclrtNotifyGetExportKey(notify, key, sizeof(key), 2));
    CHECK_EQ(ask(&other, "import notify 0 %s", key), 0);
    CHECK_EQ(ask(&other, "record notify"), 0);
    OK(aclrtSynchronizeStream(stream));
    tear_down();
}

static void test_notify_pids(void) {
    char key[65];
    int32_t pids[] = {1, 0};
    set_up();
    OK(aclrtCreateNotify(&notify, 0));
    OK(aclrtNotifyGetExportKey(notify, key, sizeof(key), ACL_RT_NOTIFY_EXPORT_FLAG_DEFAULT));
    CHECK_EQ(ask(&other, "import notify 0 %s", key), ACL_ERROR_RT_NO_PERMISSION);
    pids[1] = other.pid;
    OK(aclrtNotifySetImportPid(notify, pids, 2));
    CHECK_EQ(ask(&other, "import notify 0 %s", key), 0);
    CHECK_EQ(ask(&other, "imports"), 1);
    CHECK_EQ(ask(&other, "open 0 %s", key), ACL_ERROR_RT_DRV_INTERNAL_ERROR); /* no key of memory */
    CHECK_EQ(ask(&other, "open event %s", key), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(live_now().exports, 1);
    tear_down();
}

/* The end of either side leaves the other at work. */
static void test_notify_ends(void) {
    char key[65];
    set_up();
    share_notify();
    OK(aclrtDestroyNotify(notify));
    CHECK_EQ(ask(&other, "record notify"), 0);
    CHECK_EQ(ask(&other, "wait notify 0"), 0);
    CHECK_EQ(ask(&other, "synchronize 20000"), 0);
    share_notify();
    OK(aclrtNotifyGetExportKey(notify, key, sizeof(key), 2));
    CHECK_EQ(ask(&other, "wait notify 0"), 0);
    end_other(&other, SIGKILL);
    OK(aclrtRecordNotify(notify, stream));
    OK(aclrtWaitAndResetNotify(notify, stream, 0));
    OK(aclrtSynchronizeStream(stream));
    other = start_other();
    CHECK_EQ(ask(&other, "device 0"), 0);
    OK(aclrtDestroyNotify(notify));
    CHECK_EQ(ask(&other, "import notify 0 %s", key), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    tear_down();
}

/* The recording of one process, seen by the other. */
static void test_event(void) {
    set_up();
    share_event();
    CHECK_EQ(ask(&other, "query event"), ACL_EVENT_RECORDED_STATUS_COMPLETE);
    OK(hostacl_hold(0));
    OK(aclrtRecordEvent(event, stream));
    CHECK_EQ(ask(&other, "query event"), ACL_EVENT_RECORDED_STATUS_NOT_READY);
    CHECK_EQ(ask(&other, "synchronize event 20"), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
    CHECK_EQ(ask(&other, "wait event"), 0);
    CHECK_EQ(ask(&other, "synchronize 20"), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    OK(hostacl_release(0));
    CHECK_EQ(ask(&other, "synchronize 20000"), 0);
    CHECK_EQ(ask(&other, "synchronize event 20000"), 0);
    CHECK_EQ(ask(&other, "query event"), ACL_EVENT_RECORDED_STATUS_COMPLETE);
    CHECK_EQ(ask(&other, "hold"), 0);
    CHECK_EQ(ask(&other, "record event"), 0);
    CHECK(!is_done());
    OK(aclrtStreamWaitEvent(stream, event));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    CHECK_EQ(ask(&other, "release streams"), 0);
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtSynchronizeEvent(event));
    CHECK(is_done());
    for (int round = 0; round < 100; round++) {
        CHECK_EQ(ask(&other, "record event"), 0);
        OK(aclrtSynchronizeEvent(event));
        OK(aclrtRecordEvent(event, stream));
        CHECK_EQ(ask(&other, "synchronize event 20000"), 0);
    }
    tear_down();
}

/* A recording that the other process drops keeps nobody. */
static void test_dropped_recording(void) {
    set_up();
    share_event();
    CHECK_EQ(ask(&other, "hold"), 0);
    CHECK_EQ(ask(&other, "record event"), 0);
    OK(aclrtStreamWaitEvent(stream, event));
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    CHECK_EQ(ask(&other, "drop"), 0);
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_STREAM_ABORT);
    CHECK_EQ(aclrtSynchronizeEvent(event), ACL_ERROR_RT_STREAM_ABORT);
    OK(aclrtRecordEvent(event, stream));
    OK(aclrtSynchronizeEvent(event));
    CHECK_EQ(ask(&other, "query event"), ACL_EVENT_RECORDED_STATUS_COMPLETE);
    tear_down();
}

/* A reset does not wait for what only another process could bring about. */
static void test_reset_with_shared_waits(void) {
    set_up();
    share_notify();
    share_event();
    CHECK_EQ(ask(&other, "hold"), 0);
    CHECK_EQ(ask(&other, "record event"), 0);
    OK(aclrtStreamWaitEvent(stream, event));
    OK(aclrtWaitAndResetNotify(notify, stream, 0));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
    CHECK_EQ(ask(&other, "release streams"), 0);
    CHECK_EQ(ask(&other, "synchronize event 20000"), 0);
    OK(aclrtSetDevice(0));
    tear_down();
}

int main(int argc, char **argv) {
    (void)argv;
    obey_more = obey_marks;
    if (argc > 1)
        return obey();
    test_arguments();
    test_event_alone();
    test_notify();
    test_notify_exported_late();
    test_notify_pids();
    test_notify_ends();
    test_event();
    test_dropped_recording();
    test_reset_with_shared_waits();
    start(NULL);
    return check_done();
}
