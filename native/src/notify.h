/* Notifies: flags that one stream sets and another waits for and clears; see notify.c. */
#ifndef HOSTACL_NOTIFY_H
#define HOSTACL_NOTIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct device;
struct mark;
struct stream;

struct notify {
    void *handle;                /* null once it is destroyed */
    const struct device *device; /* it goes with this one */
    bool set;                    /* recorded and not yet waited for; not used with a mark */
    struct mark *mark;           /* the flag once processes share it, or null */
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

/* The key by which another process imports the notify, with a closing zero within 64 bytes; lists processes that may
 * import when check_pids was set at the first export. Return a code. */
int notify_export(struct notify *notify, bool check_pids, char *key);
int notify_allow(struct notify *notify, const int32_t *pids, size_t count);

/* Makes a notify of what another process exported. Returns a code. */
int notify_import(const char *key, void **handle);

/* Ends all notifies of a device. */
void notifies_end(const struct device *device);

/* Live notifies. */
uint64_t notifies_count(void);

#endif
