/* Devices: set counts, opening and tear-down; see device.c. */
#ifndef HOSTACL_DEVICE_H
#define HOSTACL_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "driver_heap.h"
#include "phys.h"
#include "stream.h"

struct device {
    int32_t id;                             /* number of the device */
    bool open;                              /* memory exists: the device is set or has an explicit context */
    bool ending;                            /* being torn down: its contexts are gone, its streams come to an end */
    bool closing;                           /* being torn down: its memory goes, no new access */
    uint32_t set_count;                     /* SetDevice calls not yet undone */
    uint32_t contexts;                      /* explicit contexts */
    uint32_t handles;                       /* physical memory handles and imported blocks */
    uint32_t busy;                          /* calls that use the device while the table lock is free */
    uint32_t core_limits[CORE_KINDS];       /* cores operators may use; 0: all */
    uint32_t sat_mode;                      /* aclrtFloatOverflowMode plus 1; 0: that of the product */
    uint64_t peers;                         /* devices whose memory it may reach, one bit each */
    void *default_context;                  /* handle while set_count is above 0 */
    struct stream *streams;                 /* newest first */
    uint64_t stream_ids[STREAM_LIMIT / 64]; /* numbers of streams in use */
    struct phys phys;                       /* page pools */
    struct pages driver_own[PAGE_CLASSES];  /* what the driver keeps for itself */
    struct driver_heap heaps[DRIVER_HEAPS]; /* backed pieces that blocks come from (profile card) */
};

/* The device of that id, or null outside of [0, count). */
struct device *device_at(int32_t id);

/* 0 when there is a device of that id; else that code, with the refusal recorded. Takes the table lock. */
int device_check_id(int64_t id, int code);

/* Opens the device if it is not open; waits for a tear-down that runs. False when the host refuses the memory. */
bool device_open(struct device *device);

/* Tears the device down: contexts, streams, blocks and memory are gone. Queued tasks run first, with force they are
 * dropped. Waits for copies; gives the table lock up meanwhile. */
void device_close(struct device *device, bool force);

/* Tears the device down when it is open, not set, and nobody holds anything of it. */
void device_close_if_idle(struct device *device);

/* Takes pages of the device and makes sure the host has them; gives the table lock up where the host must be asked.
 * False when either is short or the device closes meanwhile; then nothing is taken. */
bool device_take_pages(struct device *device, enum page_class cls, uint64_t count, struct pages *pages);

/* Gives pages back, their bytes to the host's kernel first; gives the table lock up for that. */
void device_give_pages(struct device *device, struct pages *pages);

/* Gives up what the driver keeps for later, where that may make a failed request fit; true when there was something.
 * The device may close meanwhile, then false. Gives the table lock up. */
bool device_make_room(struct device *device);

/* Records and returns the refusal of a request of asked bytes, rounded to so many, that pages of the class could not
 * serve. */
int device_raise_short(const struct device *device, enum page_class cls, uint64_t asked, uint64_t rounded);

/* A call uses the device while it does not hold the table lock. */
void device_hold(struct device *device);
void device_release(struct device *device);

/* Whether any device is open or being torn down. */
bool device_any_open(void);

/* Tears down every open device. */
void device_close_all(void);

/* Forgets what was set for devices that are not open. */
void device_forget_settings(void);

#endif
