/* Holding streams: a held stream takes tasks and runs none, so that a test sees what a program does while the device is
 * busy. A task that moves bytes when the hold comes ends first; a task that calls the program is not waited for.
 *
 * Thread safety: callers hold the table lock. */
#include "stream_hold.h"

#include <stdbool.h>

#include "device.h"
#include "runtime.h"
#include "stream.h"
#include "stream_queue.h"

static bool is_moving(struct stream *stream) {
    return stream->held && stream->moving;
}

static bool hold(struct stream *stream) {
    stream->held = !stream->ending;
    return false;
}

static bool release(struct stream *stream) {
    stream->held = false;
    stream_wake(stream);
    return false;
}

/* Whether something holds for a stream of the device, or of any device; stops at the first. */
static bool any_stream(const struct device *device, bool (*holds)(struct stream *)) {
    for (uint32_t id = 0; id < runtime_config()->devices; id++) {
        const struct device *each = device_at((int32_t)id);
        for (struct stream *stream = each->streams; stream && (!device || device == each); stream = stream->next) {
            if (holds(stream))
                return true;
        }
    }
    return false;
}

void stream_hold(const struct device *device) {
    any_stream(device, hold);
    while (any_stream(device, is_moving))
        stream_watch();
}

void stream_release(const struct device *device) {
    any_stream(device, release);
}
