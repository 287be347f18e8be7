/* The table lock and its conditions; see table.h.
 *
 * Who waits for an object waits on one of a few conditions, chosen by the object's address. Objects that share one wake
 * each other's waiters now and then, which costs a look and nothing else; so an object needs no condition of its own
 * and may be freed while others are waited for. Thread safety: this is the lock. */
#include "table.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#define CONDITIONS 64
#define NS_PER_S 1000000000u
#define NS_PER_MS 1000000u

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_cond_t conditions[CONDITIONS];

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

/* The conditions count time on the clock that never jumps. */
static void start(void) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    for (int i = 0; i < CONDITIONS; i++)
        pthread_cond_init(&conditions[i], &attributes);
    pthread_condattr_destroy(&attributes);
}

static pthread_cond_t *condition_of(const void *object) {
    uint64_t mixed = (uint64_t)(uintptr_t)object * 0x9e3779b97f4a7c15u;
    pthread_once(&once, start);
    return &conditions[mixed >> 58];
}

bool table_wait_for(const void *object, moment deadline) {
    pthread_cond_t *condition = condition_of(object);
    if (deadline == NEVER)
        return !pthread_cond_wait(condition, &mutex);
    struct timespec until = {.tv_sec = (time_t)(deadline / NS_PER_S), .tv_nsec = (long)(deadline % NS_PER_S)};
    return pthread_cond_timedwait(condition, &mutex, &until) != ETIMEDOUT;
}

void table_wake_for(const void *object) {
    pthread_cond_broadcast(condition_of(object));
}

moment table_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

moment table_after_ms(uint64_t ms) {
    return table_now() + ms * NS_PER_MS;
}
