/* Moving bytes between host and device memory; see copy.c. */
#ifndef HOSTACL_COPY_H
#define HOSTACL_COPY_H

#include <stdint.h>

/* One side of a copy. */
struct copy_side {
    uint64_t addr;  /* first byte */
    uint64_t pitch; /* bytes from one row to the next */
    uint64_t block; /* serial number of the pinned block it must lie in; 0: anywhere */
};

/* Makes of the bytes at to, a whole number of numbers, what they are together with those at from. */
typedef void combine_fn(char *to, const char *from, uint64_t len);

/* Rows of equal width; a plain copy has one. */
struct copy {
    struct copy_side to;   /* destination */
    struct copy_side from; /* source */
    uint64_t width;        /* bytes of a row, above 0 */
    uint64_t rows;         /* above 0 */
    combine_fn *combine;   /* combines source and destination, both on devices; null: the source replaces it */
};

/* A range that is set to a pattern. */
struct fill {
    uint64_t addr;    /* first byte; a multiple of 4 unless the four bytes of the pattern are equal */
    uint64_t block;   /* as in a copy_side */
    uint64_t bytes;   /* above 0 */
    uint32_t pattern; /* what every four bytes become */
};

/* Copies between any two places, host or device; the direction follows the addresses. Returns a code; a copy refused
 * for its ranges has moved nothing. */
int copy_run(const struct copy *copy);

/* The same for one row of count bytes. */
int copy_bytes(uint64_t dst, uint64_t src, uint64_t count);

/* Sets host or device memory. Returns a code; a refused set has written nothing. */
int fill_run(const struct fill *fill);

/* A fill whose bytes are all the same. */
struct fill fill_of_bytes(uint64_t addr, uint8_t value, uint64_t bytes);

#endif
