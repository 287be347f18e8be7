/* Tasks that find in device memory what they are to do; see device_record.c. */
#ifndef HOSTACL_DEVICE_RECORD_H
#define HOSTACL_DEVICE_RECORD_H

#include <stdint.h>

#include "entry.h"

/* Bytes of a record, which starts at a multiple of that. */
#define DEVICE_RECORD_BYTES 64

enum record_kind { RECORD_COPY = 1, RECORD_CACHE = 2 };

/* A description of one task as it lies in device memory. */
struct device_record {
    uint64_t mark;        /* tells a record from other bytes */
    uint64_t kind;        /* enum record_kind */
    uint64_t destination; /* of a copy */
    uint64_t source;      /* first byte */
    uint64_t bytes;       /* how many */
    uint64_t rest[3];     /* zero */
};

/* Writes a record to device memory. Returns a code. Takes the table lock. */
int device_record_write(uint64_t addr, const struct device_record *record);

/* Gives a stream the task that a record describes, which is read when the task runs. Returns a code. Takes the lock. */
int device_record_give(const void *stream, uint64_t addr, enum record_kind kind, enum function_id function);

/* One side of a copy whose address is a word of memory: of device memory, then read when the copy runs, or of the
 * host's, read at once. */
struct indirect_side {
    const void *word; /* where the address is */
    uint64_t offset;  /* added to it */
};

/* Gives a stream a copy of bytes between device memory. Returns a code. Takes the table lock. */
int indirect_copy_give(const void *stream, const struct indirect_side *to, const struct indirect_side *from,
                       uint64_t bytes, enum function_id function);

#endif
