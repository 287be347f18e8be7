/* Bit sets against a plain array of flags. */
#include "bitmap.h"
#include "check.h"

enum { BITS = 1000 };

static uint64_t find_plain(const bool *flags, uint64_t from, uint64_t end, bool value) {
    while (from < end && flags[from] != value)
        from++;
    return from;
}

int main(void) {
    uint64_t words[16] = {0};
    bool flags[BITS] = {false};
    unsigned seed = 11;
    CHECK_EQ(bitmap_words(0), 0);
    CHECK_EQ(bitmap_words(64), 1);
    CHECK_EQ(bitmap_words(65), 2);
    for (int round = 0; round < 3000; round++) {
        seed = seed * 1103515245u + 12345u;
        uint64_t first = seed >> 8 & 1023;
        uint64_t count = seed >> 18 & 127;
        bool value = seed >> 30 & 1;
        first = first < BITS ? first : BITS - 1;
        count = first + count <= BITS ? count : BITS - first;
        bitmap_fill(words, first, count, value);
        memset(flags + first, value, count);
        uint64_t end = first + (seed >> 5 & 255) < BITS ? first + (seed >> 5 & 255) : BITS;
        CHECK_EQ(bitmap_find(words, first, end, value), find_plain(flags, first, end, value));
        CHECK_EQ(bitmap_find(words, first / 2, BITS, !value), find_plain(flags, first / 2, BITS, !value));
    }
    CHECK_EQ(bitmap_find(words, 5, 5, true), 5);
    return check_done();
}
