/* Recordings of events; see record.c. */
#ifndef HOSTACL_RECORD_H
#define HOSTACL_RECORD_H

#include <stdint.h>

#include "entry.h"
#include "table.h"

struct mark;
struct stream;

/* How far a recording is. */
enum record_state { RECORD_PENDING, RECORD_DONE, RECORD_DROPPED };

/* One recording of an event. Whoever waits for it keeps it, so that a later recording or the end of the event changes
 * nothing for them. */
struct record {
    uint32_t users;              /* the event, the task, tasks and threads that wait */
    enum record_state state;     /* dropped: its task was, so it never comes; not used with a mark */
    struct mark *mark;           /* of an event of several processes, else null */
    uint64_t number;             /* of the recording there */
    const struct stream *stream; /* where its task is; null when it is through */
    moment time;                 /* when it was done */
};

/* A recording that another process made, by its number in the mark, with one user. Null, with the refusal recorded,
 * when the host is out of memory. */
struct record *record_of_number(struct mark *mark, uint64_t number);

/* Puts a recording into a stream, one in the mark where that is not null; it has one user beside the task. Returns a
 * code. */
int record_submit(struct mark *mark, struct stream *stream, enum function_id function, struct record **made);

/* A user lets go; null is nothing. */
void record_leave(struct record *record);

/* How far it is. */
enum record_state record_state(const struct record *record);

/* What is woken when that has changed. */
const void *record_object(const struct record *record);

#endif
