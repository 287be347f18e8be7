/* Moving bytes between host and device memory; see copy.c. */
#ifndef HOSTACL_COPY_H
#define HOSTACL_COPY_H

#include <stdint.h>

/* Copies count bytes (above 0) between any two places, host or device; the direction follows the addresses. Returns a
 * code; a refused copy has moved nothing. */
int copy_bytes(uint64_t dst, uint64_t src, uint64_t count);

/* Sets count bytes (above 0) of host or device memory. Returns a code; a refused set has written nothing. */
int fill_bytes(uint64_t dst, uint8_t value, uint64_t count);

#endif
