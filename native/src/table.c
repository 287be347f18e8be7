/* The table lock and its condition; see table.h. Thread safety: this is the lock. */
#include "table.h"

#include <pthread.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

void table_lock(void) {
    pthread_mutex_lock(&mutex);
}

bool table_lock_within(unsigned seconds) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    return !pthread_mutex_timedlock(&mutex, &until);
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
