/* The table lock and its condition; see table.h. Thread safety: this is the lock. */
#include "table.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

void table_lock(void) {
    pthread_mutex_lock(&mutex);
}

void table_unlock(void) {
    pthread_mutex_unlock(&mutex);
}

void table_wait(void) {
    pthread_cond_wait(&changed, &mutex);
}

void table_wake(void) {
    pthread_cond_broadcast(&changed);
}
