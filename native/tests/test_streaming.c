/* Copies that pass the caches against plain ones: every end of the range, and what lies beside it. */
#include "check.h"
#include "streaming.h"

enum { ROOM = 1 << 20, EDGE = 256, ROUNDS = 400 };

static unsigned seed = 5;

static size_t below(size_t end) {
    seed = seed * 1103515245u + 12345u;
    return (size_t)(seed >> 4) % end;
}

/* Copies len bytes between places that lie so many bytes behind a boundary; the rest of the room stays as it is. */
static void copied(char *to, char *wanted, const char *from, size_t to_at, size_t from_at, size_t len) {
    memset(to, 0x5a, ROOM);
    memset(wanted, 0x5a, ROOM);
    memcpy(wanted + to_at, from + from_at, len);
    streaming_copy(to + to_at, from + from_at, len);
    CHECK_EQ(memcmp(to, wanted, ROOM), 0);
}

int main(void) {
    char *to = aligned_alloc(4096, ROOM), *wanted = malloc(ROOM), *from = malloc(ROOM);
    for (size_t at = 0; at < ROOM; at++)
        from[at] = (char)below(256);
    const size_t sizes[] = {0,        1, 63, 64, 65, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, 64 * KIB + 63, 64 * KIB + 64,
                            128 * KIB};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        for (size_t shift = 0; shift <= 64; shift += shift < 2 ? 1 : 31)
            copied(to, wanted, from, shift, 64 - shift, sizes[i]);
    for (int round = 0; round < ROUNDS; round++)
        copied(to, wanted, from, below(EDGE), below(EDGE), below(ROOM - EDGE));
    free(to);
    free(wanted);
    free(from);
    return check_done();
}
