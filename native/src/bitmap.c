/* Bit sets: which pages of a pool are taken, which pages of a memory file hold bytes. A word is handled at once, so a
 * run of 64 pages costs one step. Thread safety: none of its own; callers hold the table lock. */
#include "bitmap.h"

/* The bits of a word from bit low to bit high - 1. */
static uint64_t mask(uint64_t low, uint64_t high) {
    uint64_t upto = high == 64 ? ~(uint64_t)0 : ((uint64_t)1 << high) - 1;
    return upto & (~(uint64_t)0 << low);
}

void bitmap_fill(uint64_t *words, uint64_t first, uint64_t count, bool value) {
    uint64_t end = first + count;
    while (first < end) {
        uint64_t word = first / 64;
        uint64_t high = end - word * 64 < 64 ? end - word * 64 : 64;
        uint64_t bits = mask(first % 64, high);
        words[word] = value ? words[word] | bits : words[word] & ~bits;
        first = word * 64 + high;
    }
}

uint64_t bitmap_find(const uint64_t *words, uint64_t from, uint64_t end, bool value) {
    while (from < end) {
        uint64_t word = from / 64;
        uint64_t bits = (value ? words[word] : ~words[word]) & mask(from % 64, 64);
        if (bits) {
            uint64_t found = word * 64 + (uint64_t)__builtin_ctzll(bits);
            return found < end ? found : end;
        }
        from = (word + 1) * 64;
    }
    return end;
}
