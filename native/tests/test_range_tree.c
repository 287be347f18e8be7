/* The range tree against a plain array, and its place search against a scan. */
#include "check.h"
#include "range_tree.h"

enum { SLOTS = 300, WIDTH = 64 };

/* Slot i may hold one range inside [i * WIDTH, (i + 1) * WIDTH). */
static struct range ranges[SLOTS];
static bool held[SLOTS];
static struct range_tree tree;
static unsigned seed = 5;

static unsigned next(unsigned below) {
    seed = seed * 1103515245u + 12345u;
    return (seed >> 8) % below;
}

static void toggle(unsigned slot) {
    if (held[slot]) {
        range_tree_remove(&tree, &ranges[slot]);
    } else {
        unsigned from = next(WIDTH - 1);
        ranges[slot].start = slot * WIDTH + from;
        ranges[slot].len = 1 + next(WIDTH - from);
        range_tree_insert(&tree, &ranges[slot]);
    }
    held[slot] = !held[slot];
}

static struct range *floor_plain(uint64_t addr) {
    struct range *best = NULL;
    for (int i = 0; i < SLOTS; i++) {
        if (held[i] && ranges[i].start <= addr)
            best = &ranges[i];
    }
    return best;
}

static struct range *ceil_plain(uint64_t addr) {
    for (int i = 0; i < SLOTS; i++) {
        if (held[i] && ranges[i].start >= addr)
            return &ranges[i];
    }
    return NULL;
}

static struct range *fit_plain(uint64_t from, uint64_t len, uint64_t align, uint64_t *where) {
    for (int i = 0; i < SLOTS; i++) {
        for (uint64_t at = ranges[i].start; held[i] && at + len <= ranges[i].start + ranges[i].len; at++) {
            if (at >= from && at % align == 0) {
                *where = at;
                return &ranges[i];
            }
        }
    }
    return NULL;
}

static void compare(void) {
    uint64_t where = 0, where_plain = 0;
    uint64_t addr = next(SLOTS * WIDTH);
    uint64_t len = 1 + next(WIDTH);
    uint64_t align = (uint64_t)1 << next(6);
    struct range *low = floor_plain(addr);
    CHECK(range_tree_floor(&tree, addr) == low);
    CHECK(range_tree_ceil(&tree, addr) == ceil_plain(addr));
    CHECK(range_tree_at(&tree, addr) == (low && addr < low->start + low->len ? low : NULL));
    struct range *fit = range_tree_fit(&tree, addr, len, align, &where);
    CHECK(fit == fit_plain(addr, len, align, &where_plain));
    if (fit)
        CHECK_EQ(where, where_plain);
}

/* Ranges at the top of the address space: nothing wraps. */
static void test_top(void) {
    struct range_tree top = {0};
    struct range range = {.start = UINT64_MAX - 8191, .len = 8191};
    uint64_t where;
    range_tree_insert(&top, &range);
    CHECK(range_tree_at(&top, UINT64_MAX - 1) == &range);
    CHECK(!range_tree_at(&top, UINT64_MAX));
    CHECK(range_tree_fit(&top, 0, 4096, 4096, &where) == &range);
    CHECK_EQ(where, UINT64_MAX - 8191);
    CHECK(!range_tree_fit(&top, 0, 4096, 1 << 20, &where));
    CHECK(!range_tree_fit(&top, 0, 8192, 1, &where));
    CHECK(!range_tree_fit(&top, UINT64_MAX - 10, 4096, 4096, &where));
}

int main(void) {
    for (int round = 0; round < 6000; round++) {
        toggle(next(round % 2000 < 1000 ? SLOTS / 4 : SLOTS));
        compare();
    }
    size_t count = 0;
    for (int i = 0; i < SLOTS; i++)
        count += held[i];
    CHECK_EQ(tree.count, count);
    test_top();
    return check_done();
}
