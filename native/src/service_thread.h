/* Threads of the runtime; see service_thread.c. */
#ifndef HOSTACL_SERVICE_THREAD_H
#define HOSTACL_SERVICE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Starts a thread that nobody joins and that takes no signal of the program. False when the host has none. */
bool service_thread_start(pthread_t *thread, void *(*body)(void *), void *argument);

#endif
