/* What a program said about managed memory; see managed_advice.c. */
#ifndef HOSTACL_MANAGED_ADVICE_H
#define HOSTACL_MANAGED_ADVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "acl/acl_rt.h"

/* What is known of 2 MiB of it. */
struct managed_unit {
    bool read_mostly;                   /* rarely written */
    bool used_by_host;                  /* the host will access it */
    uint64_t used_by;                   /* devices that will, one bit each */
    aclrtMemManagedLocation preferred;  /* where it is best; type 0: nowhere in particular */
    aclrtMemManagedLocation prefetched; /* where it was last asked to be; type 0: nowhere */
};

/* All of the following hold for the units that a range touches, which lies in one piece of managed memory. */

/* Notes what an advice says. */
void advice_note(uint64_t addr, uint64_t len, aclrtMemManagedAdviseType advise,
                 const aclrtMemManagedLocation *location);

/* Notes where the memory was asked to be. */
void advice_prefetched(uint64_t addr, uint64_t len, const aclrtMemManagedLocation *location);

/* Writes the value of an attribute to count (above 0) numbers; more than one only for ACCESSED_BY. */
void advice_read(uint64_t addr, uint64_t len, aclrtMemManagedRangeAttribute attribute, int32_t *data, size_t count);

#endif
