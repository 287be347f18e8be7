/* Streams: queues of tasks, each with a thread that runs them in order; see stream.c and stream_queue.c. */
#ifndef HOSTACL_STREAM_H
#define HOSTACL_STREAM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "errors.h"
#include "table.h"

struct context;
struct device;
struct reporter;
struct task;

/* Streams a device can have, the runtime's own one included. */
#define STREAM_LIMIT 1984

/* Priorities: the highest and the lowest. */
#define STREAM_PRIORITY_HIGHEST 0u
#define STREAM_PRIORITY_LOWEST 7u

/* Kinds of cores that operators use, as aclrtDevResLimitType counts them. */
#define CORE_KINDS 2

/* Who calls functions of the program: a thread in aclrtProcessReport, or one in aclrtProcessHostFunc. */
enum reporter_kind { REPORTS, HOST_FUNCTIONS, REPORTER_KINDS };

struct stream {
    void *handle;            /* null once it is destroyed */
    struct context *context; /* whose it is; null once it has left its device */
    struct device *device;   /* where it works */
    struct stream *next;     /* streams of the device, newest first */
    int32_t id;              /* number on the device */
    uint32_t priority;       /* 0 to 7 */
    uint32_t flags;          /* as given */
    bool is_default;         /* came with its context */
    bool mode_set;           /* its failure mode was set */
    bool held;               /* nothing runs until it is released */
    bool ending;             /* destroyed: the worker goes when the queue is empty */
    bool served;             /* it has a worker */
    bool moving;             /* the worker is in a task that ends by itself */
    pthread_t worker;        /* thread of the worker, once there was one */
    uint32_t users;          /* threads that keep the pointer while the lock is free, the worker included */
    struct task *first;      /* queue; the first one may be under way */
    struct task *last;       /* end of the queue */
    uint64_t submitted;      /* position of the last task given */
    uint64_t finished;       /* position of the last task that is through */
    uint64_t cut;            /* tasks up to this position are dropped */
    uint64_t cuts;           /* how often tasks were dropped */
    int cut_code;            /* what those who wait get for the last time */
    uint64_t wake_at;        /* who synchronises is woken when this position is through */
    struct refusal failure;  /* first failure since the last synchronise */
    struct reporter *reporters[REPORTER_KINDS]; /* threads that take its callbacks, its host functions, or null */
    uint32_t core_limits[CORE_KINDS];           /* cores operators may use; 0: those of the device */
    uint32_t overflow_switch;                   /* as set */
};

/* Makes a stream in a context; its handle is in the stream. Returns a code. */
int stream_create(struct context *context, uint32_t priority, uint32_t flags, struct stream **made);

/* Makes the default stream of a new context. Returns a code. */
int stream_create_default(struct context *context);

/* The stream a call means, null standing for the default stream of the current context. Null, with the refusal recorded
 * and its code in *code, when there is no such stream, or it is of another context and the call asks for its own. */
struct stream *stream_need(const void *handle, bool own_context, int *code);

/* Waits until every task given so far is through. Returns the code of the first failure since the last wait, or that of
 * a wait that was cut short. */
int stream_wait(struct stream *stream, moment deadline);

/* Refuses a wait of a worker for its own stream; else 0. */
int stream_check_wait(const struct stream *stream);

/* As stream_wait, at once for streams whose flags say that nobody waits for them. */
int stream_synchronize(struct stream *stream, moment deadline);

/* The same for all streams of a context. */
int streams_synchronize(const struct context *context, moment deadline);

/* The same for the current context, taking the table lock; a code also when there is none. */
int streams_synchronize_current(void);

/* Whether every task is through. */
bool stream_idle(const struct stream *stream);

/* Ends a stream after its tasks, with force without them. Returns a code. */
int stream_destroy(struct stream *stream, bool force);

/* Drops the tasks and what failed; the stream goes on empty. */
void stream_abort(struct stream *stream);

/* Ends the task that the stream is at; it goes on with the next one. */
void stream_stop(struct stream *stream);

/* Aborts all streams of a device. Returns a code when tasks under way do not end in time. */
int streams_abort(struct device *device, moment deadline);

/* Ends all streams of a context (null: of the device). Without force the tasks run first, as far as they ever can. */
void streams_end(struct device *device, const struct context *context, bool force);

/* A thread that waited gives its pointer up. */
void stream_leave(struct stream *stream);

/* Streams that were created explicitly. */
uint64_t streams_count(void);

#endif
