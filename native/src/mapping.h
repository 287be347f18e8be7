/* Mappings: physical memory shown at reserved addresses; see mapping.c. */
#ifndef HOSTACL_MAPPING_H
#define HOSTACL_MAPPING_H

#include <stdbool.h>
#include <stdint.h>

#include "pagetable.h"

struct physical;
struct reservation;
struct stack;

struct mapping {
    struct region region;            /* place in the page table; its limit is 0 while nobody may access it */
    struct physical *physical;       /* what is shown */
    struct reservation *reservation; /* where */
    uint64_t devices;                /* devices that may read and write, one bit each */
    bool host;                       /* the host may read and write */
    struct mapping *next;            /* mappings of the same physical memory */
    struct mapping *previous;        /* mappings of the same physical memory */
    struct stack *stack;             /* the calls that made it */
};

/* Why a place cannot take a mapping, or null when it can. */
const char *mapping_refusal(const struct physical *physical, uint64_t addr, uint64_t len);

/* Maps the front of the memory at a place that can take it. The owner may access it when access is set. Null when the
 * host is out of memory or of mappings. */
struct mapping *mapping_make(struct physical *physical, uint64_t addr, uint64_t len, bool access);

/* The mapping that holds addr and is not being taken away, or null. */
struct mapping *mapping_at(uint64_t addr);

/* Lets a device read and write the mapping. False when the host allows no further mapping. */
bool mapping_allow_device(struct mapping *mapping, const struct device *device);

/* The same for the host. */
bool mapping_allow_host(struct mapping *mapping);

/* Whether every byte of a range lies in mappings that let the device read and write. */
bool mappings_let(uint64_t addr, uint64_t len, const struct device *device);

/* Undoes a mapping; waits for copies that use it. May give the table lock up. */
void mapping_end(struct mapping *mapping);

/* The same at once, for a device that is torn down. The memory's count is left to the caller. */
void mapping_drop(struct mapping *mapping);

/* Mappings there are. */
uint64_t mappings_count(void);

#endif
