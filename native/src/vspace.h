/* Device address space; see vspace.c. */
#ifndef HOSTACL_VSPACE_H
#define HOSTACL_VSPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"

/* Where device addresses come from. */
struct vspace_info {
    uint64_t first; /* lowest device address */
    uint64_t bytes; /* size of the range */
    bool reserved;  /* the host cannot use the range, so touching an address faults */
    bool usual;     /* the range is the one of the card, from 16 TiB */
};

/* Takes the range the options ask for. */
void vspace_open(const struct config *config);

/* Gives the range back; nothing may live in it. */
void vspace_close(void);

struct vspace_info vspace_info(void);

/* Whether addr is inside the device range, given out or not. */
bool vspace_holds(uint64_t addr);

/* Takes len bytes at a multiple of align (a power of two). With fresh set, addresses not used before are preferred.
 * False when nothing fits. len is a multiple of 4 KiB. */
bool vspace_take(uint64_t len, uint64_t align, bool fresh, uint64_t *addr);

/* Gives back exactly what vspace_take gave. */
void vspace_give(uint64_t addr, uint64_t len);

#endif
