/* Threads of the runtime: workers of streams and watchers of marks. They block the signals that are meant for the
 * program, so that its handlers run on its own threads, and take those that come from what they do themselves. Nobody
 * joins them; who needs to know that one has ended learns it under the table lock. They may run when a program unloads
 * the library, so the first one keeps the library in the process for good. */
#include "service_thread.h"

#include <signal.h>
#include <stddef.h>

#include "library.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;

bool service_thread_start(pthread_t *thread, void *(*body)(void *), void *argument) {
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
    pthread_attr_t attributes;
    sigset_t blocked, before;
    pthread_once(&once, library_keep);
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        sigdelset(&blocked, own[i]);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    bool good = !pthread_create(thread, &attributes, body, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return good;
}
