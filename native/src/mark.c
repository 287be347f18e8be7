/* Marks shared between processes.
 *
 * A mark is a page of a memory file that each process maps. Processes change it with atomic operations and then raise
 * its sequence number and wake those that sleep on that number in the kernel. In every process that knows the mark one
 * watcher thread sleeps there and passes the wake on to the waiters of the process, which wait under the table lock as
 * for any other object. So nobody polls, and a process that dies leaves nothing locked.
 *
 * Keys and access go through share.c, as for memory; a key names the kind of the mark.
 *
 * Recordings of an event have numbers in the order of the calls, across processes. "Done" and "dropped" hold the
 * highest number of that sort, so a recording also counts as done when a later one is.
 *
 * Thread safety: callers hold the table lock. */
#include "mark.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "acl/acl_base.h"
#include "errors.h"
#include "phys.h"
#include "service_thread.h"
#include "share.h"
#include "table.h"

/* What the processes share. */
struct page {
    _Atomic uint32_t sequence; /* raised by every change */
    _Atomic uint32_t set;      /* the flag */
    _Atomic uint64_t issued;   /* recordings so far */
    _Atomic uint64_t done;     /* highest number that was done */
    _Atomic uint64_t dropped;  /* highest number that was dropped */
};

struct mark {
    enum mark_kind kind;
    uint32_t users;        /* handles, recordings, tasks */
    const void *listener;  /* object to wake when it has changed */
    struct page *page;     /* in the memory below or in that of the import */
    struct phys phys;      /* memory of a mark of this process */
    struct pages pages;    /* its only page */
    struct share *share;   /* offer to others, or null */
    struct import *import; /* of a mark of another process, else null */
    bool watched;          /* the watcher runs */
    bool closing;          /* it is to end */
};

static const char *const prefixes[] = {"hostacl-notify-", "hostacl-event-"};

static long futex(_Atomic uint32_t *word, int operation, uint32_t value) {
    return syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

/* Tells every process that the page has changed. */
static void tell(struct mark *mark) {
    atomic_fetch_add(&mark->page->sequence, 1);
    futex(&mark->page->sequence, FUTEX_WAKE, INT_MAX);
    table_wake_for(mark->listener);
}

static void *watch(void *argument) {
    struct mark *mark = argument;
    table_lock();
    while (!mark->closing) {
        uint32_t seen = atomic_load(&mark->page->sequence);
        table_wake_for(mark->listener);
        table_unlock();
        futex(&mark->page->sequence, FUTEX_WAIT, seen);
        table_lock();
    }
    mark->watched = false;
    table_wake_for(mark);
    table_unlock();
    return NULL;
}

static void close_memory(struct mark *mark) {
    if (mark->share)
        share_drop(mark->share);
    if (mark->import) {
        import_close(mark->import);
    } else {
        if (mark->pages.count)
            phys_give(&mark->phys, &mark->pages);
        phys_close(&mark->phys);
    }
    free(mark);
}

/* Starts the watcher of a mark whose page is there; false when the host has no thread for it. */
static bool start(struct mark *mark) {
    pthread_t thread;
    mark->listener = mark;
    mark->watched = service_thread_start(&thread, watch, mark);
    return mark->watched;
}

struct mark *mark_make(enum mark_kind kind) {
    struct pool_sizes sizes = {.pages = {[PAGE_4K] = 1}};
    struct mark *mark = calloc(1, sizeof(*mark));
    if (!mark || !phys_open(&mark->phys, &sizes, false)) {
        free(mark);
        return NULL;
    }
    mark->kind = kind;
    mark->users = 1;
    phys_take(&mark->phys, PAGE_4K, 1, &mark->pages);
    mark->page = (struct page *)(mark->phys.window + mark->pages.extents[0].phys);
    if (start(mark))
        return mark;
    close_memory(mark);
    return NULL;
}

bool mark_export(struct mark *mark, bool check_pids, char key[MARK_KEY_BYTES]) {
    struct share_offer offer = {.phys = &mark->phys,
                                .pages = &mark->pages,
                                .bytes = mark->pages.bytes,
                                .location = {.type = ACL_MEM_LOCATION_TYPE_HOST},
                                .check_pids = check_pids};
    if (!mark->share && !mark->import)
        mark->share = share_open(&offer);
    if (!mark->share && !mark->import)
        return false;
    uint64_t token = mark->share ? share_token(mark->share) : mark->import->token;
    snprintf(key, MARK_KEY_BYTES, "%s%016llx", prefixes[mark->kind], (unsigned long long)token);
    return true;
}

bool mark_allow(struct mark *mark, const int32_t *pids, size_t count) {
    return mark->share && share_allow(mark->share, pids, count);
}

/* The number in a key of that kind; false when it is none. */
static bool parse(enum mark_kind kind, const char *key, uint64_t *token) {
    char again[MARK_KEY_BYTES];
    unsigned long long number = 0;
    size_t len = strlen(prefixes[kind]);
    if (strncmp(key, prefixes[kind], len) || sscanf(key + len, "%16llx", &number) != 1)
        return false;
    snprintf(again, sizeof(again), "%s%016llx", prefixes[kind], number);
    *token = number;
    return !strcmp(key, again);
}

static int no_host_memory(void) {
    return error_raise(ERROR_MEMORY, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "the host has no memory or thread for a mark");
}

int mark_import(enum mark_kind kind, const char *key, struct mark **out) {
    uint64_t token;
    struct import *import = NULL;
    if (!parse(kind, key, &token))
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR, "\"%.64s\" is no key of another process",
                           key);
    int code = import_open(token, &import);
    if (code)
        return code;
    struct mark *mark = calloc(1, sizeof(*mark));
    if (!mark) {
        import_close(import);
        return no_host_memory();
    }
    *mark = (struct mark){.kind = kind, .users = 1, .page = (struct page *)import->phys.window, .import = import};
    if (start(mark)) {
        *out = mark;
        return ACL_SUCCESS;
    }
    close_memory(mark);
    return no_host_memory();
}

void mark_enter(struct mark *mark) {
    mark->users++;
}

void mark_leave(struct mark *mark) {
    if (--mark->users)
        return;
    mark->closing = true;
    tell(mark);
    while (mark->watched)
        table_wait_for(mark, NEVER);
    close_memory(mark);
}

void mark_wakes(struct mark *mark, const void *object) {
    mark->listener = object;
    table_wake_for(object);
}

void mark_set(struct mark *mark) {
    atomic_store(&mark->page->set, 1);
    tell(mark);
}

bool mark_take(struct mark *mark) {
    return atomic_exchange(&mark->page->set, 0);
}

bool mark_is_set(const struct mark *mark) {
    return atomic_load(&mark->page->set);
}

uint64_t mark_issue(struct mark *mark) {
    return atomic_fetch_add(&mark->page->issued, 1) + 1;
}

uint64_t mark_latest(const struct mark *mark) {
    return atomic_load(&mark->page->issued);
}

enum mark_state mark_state(const struct mark *mark, uint64_t number) {
    if (atomic_load(&mark->page->done) >= number)
        return MARK_DONE;
    return atomic_load(&mark->page->dropped) >= number ? MARK_DROPPED : MARK_PENDING;
}

void mark_end(struct mark *mark, uint64_t number, bool dropped) {
    _Atomic uint64_t *highest = dropped ? &mark->page->dropped : &mark->page->done;
    uint64_t seen = atomic_load(highest);
    while (seen < number && !atomic_compare_exchange_weak(highest, &seen, number))
        continue;
    tell(mark);
}
