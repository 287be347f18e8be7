/* Events: marks in streams that others wait for, ask for and measure; see event.c. */
#ifndef HOSTACL_EVENT_H
#define HOSTACL_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "acl/acl_rt.h"
#include "entry.h"
#include "table.h"

struct context;
struct mark;
struct record;
struct stream;

/* The call that made an event decides what it can do. */
enum event_kind { EVENT_PLAIN, EVENT_FLAGGED, EVENT_EXTENDED };

struct event {
    enum event_kind kind;
    void *handle;                  /* null once it is destroyed */
    const struct context *context; /* it goes with this one */
    uint32_t flags;                /* ACL_EVENT_... bits */
    struct record *latest;         /* latest recording known here, or null */
    struct mark *mark;             /* its recordings in all processes, or null */
    uint32_t waits;                /* tasks that wait for any recording of it */
    uint32_t users;                /* the handle and those tasks */
};

/* Makes an event in the current context. Returns a code. */
int event_create(enum event_kind kind, uint32_t flags, void **handle);

/* The handle by which another process opens an event made with ACL_EVENT_IPC, and the opening. Return a code. */
int event_export(const struct event *event, aclrtIpcEventHandle *out);
int event_open(const aclrtIpcEventHandle *in, void **handle);

/* The live event of that handle; null, with the refusal recorded, when there is none. */
struct event *event_need(const void *handle);

/* Ends the event at once; recordings under way go on for those who wait. */
void event_destroy(struct event *event);

/* Tasks of a stream: record the event; wait for its latest recording (0: without limit); reset it. Return a code. */
int event_record(struct event *event, struct stream *stream, enum function_id function);
int event_wait(struct event *event, struct stream *stream, uint64_t timeout_ms, enum function_id function);
int event_reset(struct event *event, struct stream *stream);

/* Waits until the latest recording is done; at once when there is none. Returns a code. */
int event_synchronize(struct event *event, moment deadline);

/* Whether the latest recording is done. */
bool event_done(struct event *event);

/* The moment of the latest recording of an event with a time line. Returns a code. */
int event_time(const struct event *event, moment *time);

/* Milliseconds between two latest recordings, negative when they are in the other order. Returns a code. */
int event_elapsed(const struct event *start, const struct event *end, float *ms);

/* Limit of waits that have none of their own; 0: they have none. */
void event_set_wait_limit(uint64_t timeout_ms);

/* Ends all events of a context. */
void events_end(const struct context *context);

/* Live events. */
uint64_t events_count(void);

#endif
