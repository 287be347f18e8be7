/* Refusals: what a failing call leaves behind.
 *
 * A refusal sets the last error of the thread unless the entry layer made it, and adds a message to a short list: of
 * the thread, or of the process when aclInit was told so. Message ids follow the layer and the kind of refusal: EH0008
 * and EH0007 of the entry layer, EE1003 and EE1018 of the runtime, EL0003 and EL0019 of the driver, E10001 of the graph
 * engine, which sets no last error either. The list keeps the newest messages; older ones fall off. What a task of a
 * stream refuses is kept for the thread that synchronises.
 *
 * Thread safety: the state is per thread; the list of the process has a mutex of its own, taken last. */
#include "errors.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "acl/acl_base.h"

#define MESSAGE_BYTES 320
#define MESSAGES 16

struct message_list {
    unsigned count;                     /* messages held */
    char text[MESSAGES][MESSAGE_BYTES]; /* oldest first */
};

static _Thread_local int last_error;
static _Thread_local const char *function = "";
static _Thread_local struct refusal *kept;
static _Thread_local struct message_list own_list;
static _Thread_local char recent_text[MESSAGES * (MESSAGE_BYTES + 1)];
static struct message_list shared_list;
static pthread_mutex_t shared_mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool shared_mode;

void error_set_function(const char *name) {
    function = name;
}

const char *error_function(void) {
    return function;
}

static struct message_list *open_list(void) {
    if (!atomic_load(&shared_mode))
        return &own_list;
    pthread_mutex_lock(&shared_mutex);
    return &shared_list;
}

static void close_list(const struct message_list *list) {
    if (list == &shared_list)
        pthread_mutex_unlock(&shared_mutex);
}

static void add_message(struct message_list *list, const char *text) {
    if (list->count == MESSAGES) {
        memmove(list->text[0], list->text[1], (MESSAGES - 1) * sizeof(list->text[0]));
        list->count--;
    }
    snprintf(list->text[list->count++], MESSAGE_BYTES, "%s", text);
}

static const char *message_id(enum error_kind kind) {
    static const char *const ids[] = {
        [ERROR_NULL] = "EH0008",   [ERROR_VALUE] = "EH0007",  [ERROR_ARGUMENT] = "EE1003", [ERROR_STATE] = "EE1018",
        [ERROR_DRIVER] = "EL0003", [ERROR_MEMORY] = "EL0019", [ERROR_MODEL] = "E10001",
    };
    return ids[kind];
}

void error_keep(struct refusal *refusal) {
    kept = refusal;
}

int error_raise(enum error_kind kind, int code, const char *format, ...) {
    char detail[200];
    char text[MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof(detail), format, args);
    va_end(args);
    if (kept) {
        kept->code = code;
        kept->kind = kind;
        memcpy(kept->text, detail, sizeof(detail));
        return code;
    }
    snprintf(text, sizeof(text), "%s: %s: %s (%d %s)", message_id(kind), function, detail, code, error_code_name(code));
    if (kind != ERROR_NULL && kind != ERROR_VALUE && kind != ERROR_MODEL)
        last_error = code;
    struct message_list *list = open_list();
    add_message(list, text);
    close_list(list);
    return code;
}

int error_null(const char *name) {
    return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "%s is null", name);
}

int error_last(bool clear) {
    int code = last_error;
    if (clear)
        last_error = ACL_SUCCESS;
    return code;
}

/* Puts the messages into the thread's text, newest first, one a line. */
static void compose(const struct message_list *list) {
    size_t used = 0;
    recent_text[0] = 0;
    for (unsigned i = list->count; i-- > 0;)
        used +=
            (size_t)snprintf(recent_text + used, sizeof(recent_text) - used, "%s%s", used ? "\n" : "", list->text[i]);
}

const char *error_recent(bool has_context) {
    struct message_list *list = open_list();
    compose(list);
    if (has_context) {
        list->count = 0;
    } else {
        char own[MESSAGE_BYTES];
        snprintf(own, sizeof(own),
                 "%s: aclGetRecentErrMsg: no device is set on this thread; call aclrtSetDevice (%d %s)",
                 message_id(ERROR_STATE), ACL_ERROR_RT_CONTEXT_NULL, error_code_name(ACL_ERROR_RT_CONTEXT_NULL));
        add_message(list, own);
        if (!recent_text[0])
            compose(list);
    }
    close_list(list);
    return recent_text[0] ? recent_text : NULL;
}

void error_forget_messages(void) {
    own_list.count = 0;
}

void error_share_messages(bool shared) {
    atomic_store(&shared_mode, shared);
}

void error_reset(void) {
    last_error = ACL_SUCCESS;
    own_list.count = 0;
    pthread_mutex_lock(&shared_mutex);
    shared_list.count = 0;
    pthread_mutex_unlock(&shared_mutex);
    atomic_store(&shared_mode, false);
}
