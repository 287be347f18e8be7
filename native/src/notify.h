/* Notifies: flags that one stream sets and another waits for and clears; see notify.c. */
#ifndef HOSTACL_NOTIFY_H
#define HOSTACL_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

struct device;
struct stream;

struct notify {
    void *handle;                /* null once it is destroyed */
    const struct device *device; /* it goes with this one */
    bool set;                    /* recorded and not yet waited for */
    uint32_t users;              /* the handle and tasks */
};

/* Makes a notify on the current device. Returns a code. */
int notify_create(void **handle);

/* The live notify of that handle; null, with the refusal recorded, when there is none. */
struct notify *notify_need(const void *handle);

/* Ends the notify; tasks that use it keep it. */
void notify_destroy(struct notify *notify);

/* Tasks of a stream: set the notify; wait until it is set (0: without limit) and clear it. Return a code. */
int notify_record(struct notify *notify, struct stream *stream);
int notify_wait(struct notify *notify, struct stream *stream, uint64_t timeout_ms);

/* Ends all notifies of a device. */
void notifies_end(const struct device *device);

/* Live notifies. */
uint64_t notifies_count(void);

#endif
