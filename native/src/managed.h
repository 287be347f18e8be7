/* Managed memory: one address for host and devices; see managed.c. */
#ifndef HOSTACL_MANAGED_H
#define HOSTACL_MANAGED_H

#include <stdbool.h>
#include <stdint.h>

#include "managed_advice.h"
#include "range_tree.h"

/* Gives out bytes (above 0), rounded up to 2 MiB; false when addresses or host memory are short. */
bool managed_malloc(uint64_t bytes, uint64_t *addr);

/* Frees the memory that starts at addr; false when there is none. Waits for copies that use it. */
bool managed_free(uint64_t addr);

/* The managed memory that holds addr, or null. */
const struct range *managed_at(uint64_t addr);

/* The managed memory that starts at or above addr, or null; for walks over all of it. */
const struct range *managed_from(uint64_t addr);

/* The 2 MiB units that a range touches, and how many; null unless it lies in one piece. */
struct managed_unit *managed_units(uint64_t addr, uint64_t len, size_t *count);

/* Frees all of it; waits for copies. */
void managed_free_all(void);

/* Pieces of managed memory and their bytes. */
uint64_t managed_count(void);
uint64_t managed_bytes(void);

#endif
