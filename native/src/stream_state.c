/* Exported: functions that are called after a stream was created and before one is destroyed, by name.
 *
 * Thread safety: any thread, any time. Functions are called without a lock by the thread that creates or destroys; one
 * that is taken off meanwhile may still be called once. */
#include "stream_state.h"

#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "entry.h"
#include "errors.h"
#include "table.h"

#define LARGEST_NUMBER 64

struct listener {
    struct listener *next;
    char *name;                        /* as registered */
    aclrtStreamStateCallback callback; /* function of the program */
    void *args;                        /* its argument */
};

static struct listener *listeners;

static struct listener **find(const char *name) {
    struct listener **link = &listeners;
    while (*link && strcmp((*link)->name, name))
        link = &(*link)->next;
    return link;
}

static void end(struct listener **link) {
    struct listener *listener = *link;
    *link = listener->next;
    free(listener->name);
    free(listener);
}

void stream_state_reset(void) {
    while (listeners)
        end(&listeners);
}

void stream_state_tell(aclrtStream stream, aclrtStreamState state) {
    struct listener calls[LARGEST_NUMBER];
    unsigned count = 0;
    table_lock();
    for (const struct listener *listener = listeners; listener; listener = listener->next)
        calls[count++] = *listener;
    table_unlock();
    for (unsigned i = 0; i < count; i++)
        calls[i].callback(stream, state, calls[i].args);
}

static unsigned number_of_listeners(void) {
    unsigned count = 0;
    for (const struct listener *listener = listeners; listener; listener = listener->next)
        count++;
    return count;
}

/* Registers a function, or takes one off when callback is null; returns a code. The table lock is held. */
static int change(const char *name, aclrtStreamStateCallback callback, void *args) {
    struct listener **link = find(name);
    if (!callback == !*link)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID,
                           callback ? "%.80s is registered already" : "%.80s is not registered", name);
    if (!callback) {
        end(link);
        return ACL_SUCCESS;
    }
    struct listener *listener = number_of_listeners() < LARGEST_NUMBER ? calloc(1, sizeof(*listener)) : NULL;
    char *copy = listener ? strdup(name) : NULL;
    if (!copy) {
        free(listener);
        return error_raise(ERROR_MEMORY, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL,
                           "no more than %d functions can be registered", LARGEST_NUMBER);
    }
    *listener = (struct listener){.name = copy, .callback = callback, .args = args};
    *link = listener;
    return ACL_SUCCESS;
}

aclError aclrtRegStreamStateCallback(const char *regName, aclrtStreamStateCallback callback, void *args) {
    ENTER(aclrtRegStreamStateCallback, regName, callback, args);
    if (!regName)
        return error_null("regName");
    table_lock();
    int code = change(regName, callback, args);
    table_unlock();
    return code;
}
