/* Accesses under way: copies that move bytes without the table lock; see access.c. */
#ifndef HOSTACL_ACCESS_H
#define HOSTACL_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

struct device;

/* One side of an access. */
struct access_side {
    uint64_t addr;               /* first address, host or device */
    uint64_t len;                /* bytes */
    const struct device *device; /* device of the memory; null: host memory */
};

/* Lives on the stack of the call that moves the bytes. */
struct access {
    struct access *next;         /* list of all accesses */
    struct access *previous;     /* list of all accesses */
    struct access_side sides[2]; /* destination and source; a set has no source (len 0) */
};

/* Announces an access; what it covers stays in place until access_end. */
void access_begin(struct access *access);
void access_end(struct access *access);

/* Whether an access touches any byte of the range. */
bool access_overlaps(uint64_t addr, uint64_t len);

/* Whether an access touches memory of the device. */
bool access_uses_device(const struct device *device);

#endif
