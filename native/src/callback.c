/* Callbacks and host functions.
 *
 * A reporter is a thread that a program told to take the callbacks of some streams. A task of the stream puts the call
 * into the list of its reporter, which takes it out in aclrtProcessReport. Where the stream is to wait for the return,
 * a second task behind the first one does. A call is kept by the reporter and by that second task.
 *
 * Host functions need no reporter: the worker of the stream calls them, unless a thread was told to take those of the
 * stream; it does so in aclrtProcessHostFunc. A thread may take both kinds, in two lists.
 *
 * Thread safety: callers hold the table lock. Functions of the program are called without it. */
#include "callback.h"

#include <pthread.h>
#include <stdlib.h>

#include "acl/acl_base.h"
#include "errors.h"
#include "stream.h"
#include "stream_queue.h"
#include "task.h"

struct call {
    struct call *next;           /* calls the reporter has not taken */
    const struct stream *stream; /* where it came from */
    enum reporter_kind kind;     /* whose list it goes to */
    struct reporter *reporter;   /* in whose list it is, or null */
    callback_fn *fn;             /* function of the program */
    void *user;                  /* its argument */
    bool posted;                 /* it got into a list */
    bool over;                   /* it returned or was dropped */
    uint32_t users;              /* a list or a thread that calls, and tasks */
};

struct reporter {
    struct reporter *next;   /* all reporters */
    enum reporter_kind kind; /* what it takes */
    uint64_t thread;         /* pthread_t of the thread */
    uint32_t streams;        /* streams whose calls it takes; it ends with the last */
    uint32_t waiting;        /* threads in callback_process that keep it */
    struct call *first;      /* calls to make, oldest first */
};

/* A task that hands a call over, or waits for its end. */
struct call_task {
    struct task task;
    struct call *call; /* what to hand over or to wait for */
};

struct host_task {
    struct task task;
    callback_fn *fn; /* function of the program */
    void *user;      /* its argument */
};

static struct reporter *reporters;

static void leave_call(struct call *call) {
    if (--call->users == 0)
        free(call);
}

/* The list or the calling thread has done with it. */
static void end_call(struct call *call) {
    call->over = true;
    table_wake_for(call);
    leave_call(call);
}

/* Takes a call out of its list. */
static void take_out(struct call *call) {
    struct call **link = &call->reporter->first;
    while (*link != call)
        link = &(*link)->next;
    *link = call->next;
    call->reporter = NULL;
}

/* What each kind of reporter takes, and the call that tells it to. */
static const struct {
    const char *calls;
    const char *subscribe;
} kinds[REPORTER_KINDS] = {[REPORTS] = {"callbacks", "aclrtSubscribeReport"},
                           [HOST_FUNCTIONS] = {"host functions", "aclrtSubscribeHostFunc"}};

static struct reporter *find(enum reporter_kind kind, uint64_t thread) {
    struct reporter *reporter = reporters;
    while (reporter && (reporter->kind != kind || reporter->thread != thread))
        reporter = reporter->next;
    return reporter;
}

/* The reporter of a thread, made if need be; null when the host is out of memory. */
static struct reporter *find_or_make(enum reporter_kind kind, uint64_t thread) {
    struct reporter *reporter = find(kind, thread);
    if (reporter)
        return reporter;
    reporter = calloc(1, sizeof(*reporter));
    if (!reporter)
        return NULL;
    reporter->kind = kind;
    reporter->thread = thread;
    reporter->next = reporters;
    reporters = reporter;
    return reporter;
}

static void end_if_unused(struct reporter *reporter) {
    struct reporter **link = &reporters;
    if (reporter->streams || reporter->waiting)
        return;
    while (*link != reporter)
        link = &(*link)->next;
    *link = reporter->next;
    free(reporter);
}

int callback_subscribe(enum reporter_kind kind, uint64_t thread, struct stream *stream) {
    const struct reporter *taken = stream->reporters[kind];
    if (taken)
        return error_raise(ERROR_STATE, ACL_ERROR_RT_STREAM_SUBSCRIBE, "thread %llu takes the %s of stream %d already",
                           (unsigned long long)taken->thread, kinds[kind].calls, stream->id);
    struct reporter *reporter = find_or_make(kind, thread);
    if (!reporter)
        return error_raise(ERROR_MEMORY, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "the host has no memory for a reporter");
    reporter->streams++;
    stream->reporters[kind] = reporter;
    return ACL_SUCCESS;
}

/* Drops the calls of a stream that its reporter has not taken. */
static void drop_calls(const struct reporter *reporter, const struct stream *stream) {
    for (struct call *call = reporter->first, *next; call; call = next) {
        next = call->next;
        if (call->stream == stream) {
            take_out(call);
            end_call(call);
        }
    }
}

static void leave(enum reporter_kind kind, struct stream *stream) {
    struct reporter *reporter = stream->reporters[kind];
    stream->reporters[kind] = NULL;
    drop_calls(reporter, stream);
    if (--reporter->streams == 0)
        table_wake_for(reporter);
    end_if_unused(reporter);
}

void callback_leave(struct stream *stream) {
    for (enum reporter_kind kind = 0; kind < REPORTER_KINDS; kind++) {
        if (stream->reporters[kind])
            leave(kind, stream);
    }
}

int callback_unsubscribe(enum reporter_kind kind, uint64_t thread, struct stream *stream) {
    if (!stream->reporters[kind] || stream->reporters[kind]->thread != thread)
        return error_raise(ERROR_STATE, ACL_ERROR_RT_THREAD_SUBSCRIBE, "thread %llu does not take the %s of stream %d",
                           (unsigned long long)thread, kinds[kind].calls, stream->id);
    leave(kind, stream);
    return ACL_SUCCESS;
}

static struct call *call_of(const struct task *task) {
    return ((const struct call_task *)task)->call;
}

/* Hands the call over to the reporter of the stream. */
static int run_post(struct task *task) {
    struct call *call = call_of(task);
    struct reporter *reporter = call->stream->reporters[call->kind];
    if (!reporter)
        return error_raise(ERROR_STATE, ACL_ERROR_RT_STREAM_NO_CB_REG, "no thread takes the %s of the stream",
                           kinds[call->kind].calls);
    struct call **link = &reporter->first;
    while (*link)
        link = &(*link)->next;
    *link = call;
    call->reporter = reporter;
    call->posted = true;
    call->users++;
    table_wake_for(reporter);
    return ACL_SUCCESS;
}

static void end_post(struct task *task) {
    struct call *call = call_of(task);
    call->over = call->over || !call->posted;
    leave_call(call);
}

static bool is_over(const struct task *task) {
    return call_of(task)->over;
}

/* The call is being made, or a thread stands ready to make it. */
static bool is_coming(const struct task *task) {
    const struct call *call = call_of(task);
    return !call->reporter || call->reporter->waiting;
}

static int run_nothing(struct task *task) {
    (void)task;
    return ACL_SUCCESS;
}

/* A call whose end nobody waits for any more is not made. */
static void end_wait(struct task *task) {
    struct call *call = call_of(task);
    if (call->reporter) {
        take_out(call);
        call->over = true;
        call->users--;
    }
    leave_call(call);
}

static int submit(struct stream *stream, const struct task_kind *kind, struct call *call) {
    enum function_id function = call->kind == REPORTS ? FUNCTION_aclrtLaunchCallback : FUNCTION_aclrtLaunchHostFunc;
    struct call_task *task = task_new(sizeof(*task), kind, function);
    if (!task)
        return ACL_ERROR_RT_RESOURCE_ALLOC_FAIL;
    task->task.awaits = call;
    task->call = call;
    call->users++;
    return stream_submit(stream, &task->task);
}

/* Puts a call for a reporter into a stream. */
static int launch(enum reporter_kind kind, struct stream *stream, callback_fn *fn, void *user, bool block) {
    static const struct task_kind post = {.run = run_post, .end = end_post};
    static const struct task_kind wait = {.ready = is_over, .coming = is_coming, .run = run_nothing, .end = end_wait};
    struct call *call = calloc(1, sizeof(*call));
    if (!call)
        return error_raise(ERROR_MEMORY, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "the host has no memory for a callback");
    *call = (struct call){.stream = stream, .kind = kind, .fn = fn, .user = user, .users = 1};
    int code = submit(stream, &post, call);
    if (!code && block)
        code = submit(stream, &wait, call);
    leave_call(call);
    return code;
}

int callback_launch(struct stream *stream, callback_fn *fn, void *user, bool block) {
    if (!stream->reporters[REPORTS])
        return error_raise(ERROR_STATE, ACL_ERROR_RT_STREAM_NO_CB_REG,
                           "no thread takes callbacks of stream %d; call %s", stream->id, kinds[REPORTS].subscribe);
    return launch(REPORTS, stream, fn, user, block);
}

/* Makes a call that was taken out of its list. */
static void make_call(struct call *call) {
    table_unlock();
    call->fn(call->user);
    table_lock();
    end_call(call);
}

int callback_process(enum reporter_kind kind, moment deadline) {
    struct reporter *reporter = find(kind, (uint64_t)pthread_self());
    bool in_time = true;
    if (!reporter)
        return error_raise(ERROR_STATE, ACL_ERROR_RT_THREAD_SUBSCRIBE, "this thread takes the %s of no stream; call %s",
                           kinds[kind].calls, kinds[kind].subscribe);
    reporter->waiting++;
    while (!reporter->first && reporter->streams && in_time)
        in_time = table_wait_for(reporter, deadline);
    reporter->waiting--;
    struct call *call = reporter->first;
    bool timed_out = reporter->streams;
    if (call)
        take_out(call);
    end_if_unused(reporter);
    if (call)
        make_call(call);
    else if (timed_out)
        return error_raise(ERROR_STATE, ACL_ERROR_RT_REPORT_TIMEOUT, "no %s came in time", kinds[kind].calls);
    else
        return error_raise(ERROR_STATE, ACL_ERROR_RT_THREAD_SUBSCRIBE, "this thread takes no %s any more",
                           kinds[kind].calls);
    return ACL_SUCCESS;
}

/* The function may call the runtime, which then reports to this thread as to any other. */
static int run_host_function(struct task *task) {
    const struct host_task *host = (const struct host_task *)task;
    error_keep(NULL);
    table_unlock();
    host->fn(host->user);
    table_lock();
    return ACL_SUCCESS;
}

int host_function_launch(struct stream *stream, callback_fn *fn, void *user) {
    static const struct task_kind kind = {.run = run_host_function, .calls_user = true};
    if (stream->reporters[HOST_FUNCTIONS])
        return launch(HOST_FUNCTIONS, stream, fn, user, true);
    struct host_task wanted = {.fn = fn, .user = user};
    return stream_submit_copy(stream, &wanted.task, sizeof(wanted), &kind, FUNCTION_aclrtLaunchHostFunc);
}
