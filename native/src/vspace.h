/* Device address space; see vspace.c. */
#ifndef HOSTACL_VSPACE_H
#define HOSTACL_VSPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"

/* The ranges that addresses come from. */
enum vspace_window {
    VSPACE_DEVICE,  /* blocks, reservations, registered host memory */
    VSPACE_FAR,     /* reservations of aclrtReserveMemAddressNoUCMemory */
    VSPACE_MANAGED, /* managed memory: host and device use the same address */
    VSPACE_WINDOWS,
};

/* Where addresses of a window come from. */
struct vspace_info {
    uint64_t first; /* lowest address */
    uint64_t bytes; /* size of the range; 0: the window could not be had */
    bool reserved;  /* the host cannot use the range, so touching an address faults */
    bool mappable;  /* memory can be mapped at its addresses */
    bool usual;     /* the range is the one of the card */
};

/* Takes the ranges the options ask for. */
void vspace_open(const struct config *config);

/* Gives the ranges back; nothing may live in them. */
void vspace_close(void);

struct vspace_info vspace_info(enum vspace_window window);

/* Whether addr is inside one of the windows, given out or not. */
bool vspace_holds(uint64_t addr);

/* Whether len bytes (above 0) at addr lie in the window. */
bool vspace_window_holds(enum vspace_window window, uint64_t addr, uint64_t len);

/* Whether memory can be mapped at the address. */
bool vspace_mappable(uint64_t addr);

/* Takes len bytes at a multiple of align (a power of two). With fresh set, addresses not used before are preferred.
 * False when nothing fits. len is a multiple of 4 KiB. */
bool vspace_take(enum vspace_window window, uint64_t len, uint64_t align, bool fresh, uint64_t *addr);

/* Takes exactly the len bytes at addr; false when one of them is taken or outside of the window. */
bool vspace_take_at(enum vspace_window window, uint64_t addr, uint64_t len);

/* Gives back exactly what was taken. */
void vspace_give(uint64_t addr, uint64_t len);

/* Number of the 2 MiB unit that holds addr, counted over all windows; false outside of them. */
bool vspace_unit(uint64_t addr, uint64_t *unit);

/* Units there can be; a multiple of the units of a GiB. */
uint64_t vspace_units(void);

#endif
