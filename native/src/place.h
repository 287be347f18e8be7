/* What kind of memory an address is in; see place.c. */
#ifndef HOSTACL_PLACE_H
#define HOSTACL_PLACE_H

#include <stdbool.h>
#include <stdint.h>

/* Nowhere: in the device range and in nobody's hands. */
enum place_kind { PLACE_UNREGISTERED, PLACE_PINNED, PLACE_DEVICE, PLACE_NOWHERE };

struct place {
    enum place_kind kind;
    uint64_t block; /* serial number of the pinned block or registered range, else 0 */
};

/* Where an address is now. */
struct place place_of(uint64_t addr);

/* Whether every byte of a range of host memory is in the pinned block of that serial number and may be touched. */
bool place_covers(uint64_t addr, uint64_t len, uint64_t block);

/* Name of the kind for messages, such as "pinned host memory". */
const char *place_name(enum place_kind kind);

#endif
