/* Devices: set counts, opening and tear-down; see device.c. */
#ifndef HOSTACL_DEVICE_H
#define HOSTACL_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "driver_heap.h"
#include "phys.h"

struct device {
    int32_t id;                             /* number of the device */
    bool open;                              /* memory exists: the device is set or has an explicit context */
    bool closing;                           /* being torn down: nothing new may start */
    uint32_t set_count;                     /* SetDevice calls not yet undone */
    uint32_t contexts;                      /* explicit contexts */
    uint32_t busy;                          /* calls that use the device while the table lock is free */
    void *default_context;                  /* handle while set_count is above 0 */
    struct phys phys;                       /* page pools */
    struct pages driver_own[PAGE_CLASSES];  /* what the driver keeps for itself */
    struct driver_heap heaps[DRIVER_HEAPS]; /* backed pieces that blocks come from (profile card) */
};

/* The device of that id, or null outside of [0, count). */
struct device *device_at(int32_t id);

/* Opens the device if it is not open; waits for a tear-down that runs. False when the host refuses the memory. */
bool device_open(struct device *device);

/* Tears the device down: contexts, blocks and memory are gone. Waits for copies; gives the table lock up meanwhile. */
void device_close(struct device *device);

/* A call uses the device while it does not hold the table lock. */
void device_hold(struct device *device);
void device_release(struct device *device);

/* Whether any device is open or being torn down. */
bool device_any_open(void);

/* Tears down every open device. */
void device_close_all(void);

#endif
