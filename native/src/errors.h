/* Refusals: return code, last error, recent message; see errors.c. */
#ifndef HOSTACL_ERRORS_H
#define HOSTACL_ERRORS_H

#include <stdbool.h>

/* Who refuses and why; decides the message id and whether the last error is set. */
enum error_kind {
    ERROR_NULL,     /* entry layer: a required pointer is null */
    ERROR_VALUE,    /* entry layer: a value the entry refuses */
    ERROR_ARGUMENT, /* runtime: a bad argument */
    ERROR_STATE,    /* runtime: not in this state, such as no current context */
    ERROR_DRIVER,   /* driver: refused */
    ERROR_MEMORY,   /* driver: out of memory */
    ERROR_MODEL,    /* graph engine: a model or what is said about one */
};

/* A refusal that is kept instead of reported: what a task of a stream leaves for whoever synchronises. */
struct refusal {
    int code;             /* 0: none */
    enum error_kind kind; /* who refused and why */
    char text[200];       /* what is wrong */
};

/* Name of a code, such as "ACL_ERROR_RT_PARAM_INVALID"; "unknown code" for others. */
const char *error_code_name(int code);

/* Says which exported function runs on this thread; messages begin with it. */
void error_set_function(const char *name);

/* The exported function that runs on this thread, or ran last. */
const char *error_function(void);

/* Records a refusal with its message and returns code. */
__attribute__((format(printf, 3, 4))) int error_raise(enum error_kind kind, int code, const char *format, ...);

/* The refusal of the entry layer for a required pointer that is null; name is that of the argument. */
int error_null(const char *name);

/* From now on refusals on this thread go to *refusal (the last one stays) and nowhere else; null ends that. */
void error_keep(struct refusal *refusal);

/* Last error of this thread; clear forgets it. */
int error_last(bool clear);

/* Newest messages as one text, or null. With a context they are read and cleared. Without one the call itself fails
 * inside: its own message joins the others and nothing is cleared. */
const char *error_recent(bool has_context);

/* A thread that gets a context starts with an empty list of messages. */
void error_forget_messages(void);

/* Messages are kept per process instead of per thread (init option err_msg_mode). */
void error_share_messages(bool shared);

/* Back to the start: last error and messages of this thread and of the process are gone. */
void error_reset(void);

#endif
