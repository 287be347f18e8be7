/* Bit sets over uint64_t words; see bitmap.c. */
#ifndef HOSTACL_BITMAP_H
#define HOSTACL_BITMAP_H

#include <stdbool.h>
#include <stdint.h>

/* Words that count bits need. */
static inline uint64_t bitmap_words(uint64_t count) {
    return (count + 63) / 64;
}

/* Sets or clears count bits from first. */
void bitmap_fill(uint64_t *words, uint64_t first, uint64_t count, bool value);

/* The first bit of [from, end) that equals value; end when there is none. */
uint64_t bitmap_find(const uint64_t *words, uint64_t from, uint64_t end, bool value);

#endif
