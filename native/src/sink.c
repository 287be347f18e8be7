/* Where lines of text go: a file that is appended to, or a descriptor of the caller's. A line is written as a whole, so
 * lines of several threads never mix; on a file those of several processes do not either.
 *
 * Thread safety: any thread, any time; not in a forked child, where the mutex may be held for ever. */
#include "sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"

/* The descriptor of a place, -1 for off; false when there is none. */
static bool descriptor(const char *place, int *fd, bool *owned) {
    *fd = -1;
    *owned = false;
    if (!strcmp(place, "off"))
        return true;
    if (!strcmp(place, "stderr"))
        place = "fd:2";
    if (strncmp(place, "fd:", 3)) {
        *owned = true;
        /* a pipe that nobody reads is refused at once; one that is read may be slow */
        *fd = open(place, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
        return *fd >= 0 && fcntl(*fd, F_SETFL, O_APPEND) == 0;
    }
    char *end;
    long number = strtol(place + 3, &end, 10);
    errno = EBADF;
    if (!place[3] || *end || number < 0 || number > 1 << 20 || fcntl((int)number, F_GETFD) < 0)
        return false;
    *fd = (int)number;
    return true;
}

bool sink_open(struct sink *sink, const char *place, struct complaint *complaint) {
    int fd;
    bool owned;
    pthread_mutex_lock(&sink->mutex);
    bool same = !strcmp(sink->place, place);
    bool good = same || descriptor(place, &fd, &owned);
    if (!good) {
        snprintf(complaint->text, sizeof(complaint->text), "%s: %.150s cannot be opened: %s", sink->key, place,
                 strerror(errno));
    } else if (!same) {
        if (sink->owned)
            close(sink->fd);
        sink->fd = fd;
        sink->owned = owned;
        snprintf(sink->place, sizeof(sink->place), "%s", place);
    }
    pthread_mutex_unlock(&sink->mutex);
    return good;
}

static void give_up(struct sink *sink) {
    fprintf(stderr, "hostacl: %s: %.150s takes no more lines: %s\n", sink->key, sink->place, strerror(errno));
    if (sink->owned)
        close(sink->fd);
    sink->fd = -1;
    sink->owned = false;
}

void sink_write(struct sink *sink, const char *line, size_t len) {
    pthread_mutex_lock(&sink->mutex);
    while (len > 0 && sink->fd >= 0) {
        ssize_t written = write(sink->fd, line, len);
        if (written > 0) {
            line += written;
            len -= (size_t)written;
        } else if (written == 0 || errno != EINTR) {
            give_up(sink);
        }
    }
    pthread_mutex_unlock(&sink->mutex);
}
