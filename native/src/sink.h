/* A place that lines of text go to; see sink.c. */
#ifndef HOSTACL_SINK_H
#define HOSTACL_SINK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct complaint;

#define SINK_PLACE_BYTES 256

struct sink {
    const char *key;              /* option that says where it goes */
    pthread_mutex_t mutex;        /* guards the rest; one line at a time */
    int fd;                       /* -1: off */
    bool owned;                   /* opened here */
    char place[SINK_PLACE_BYTES]; /* as sink_open was told; "" at the start */
};

#define SINK_START(option) {.key = option, .mutex = PTHREAD_MUTEX_INITIALIZER, .fd = -1}

/* Points the sink at off, stderr, fd:N or the end of the file of a path. The place it has already is kept as it is.
 * False with a complaint when it cannot be opened; then nothing changes. */
bool sink_open(struct sink *sink, const char *place, struct complaint *complaint);

/* Writes a whole line, its newline included. A sink that refuses is off from then on, which stderr is told once. */
void sink_write(struct sink *sink, const char *line, size_t len);

#endif
