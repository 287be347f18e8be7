/* The copy between views of gevar.formats against one that goes element by element, in memory without a spare byte. */
#include "_strided_copy.h"
#include "check.h"

typedef struct {
    int axes;
    int64_t width, filled;
    int64_t shape[COPY_AXES], to[COPY_AXES], from[COPY_AXES];
} copy_case;

static unsigned seed = 7;

static int64_t draw(int64_t below) {
    seed = seed * 1103515245u + 12345u;
    return (int64_t)(seed >> 8) % below;
}

/* Puts the axes of a case in a random order, with gaps now and then; `last` stays the innermost where it is set.
 * Returns the bytes from the first element to the end of the last one. */
static int64_t lay_out(const copy_case *one, const int64_t *shape, int64_t *steps, int last, int gaps) {
    int order[COPY_AXES] = {0};
    for (int k = 0; k < one->axes; k++) {
        const int at = (int)draw(k + 1);
        order[k] = order[at];
        order[at] = k;
    }
    for (int k = 0; last && k < one->axes; k++) {
        if (order[k] == one->axes - 1) {
            order[k] = order[one->axes - 1];
            order[one->axes - 1] = one->axes - 1;
        }
    }
    int64_t size = one->width, end = one->width;
    for (int k = one->axes - 1; k >= 0; k--) {
        const int a = order[k];
        steps[a] = size;
        end += size * (shape[a] - 1);
        size *= shape[a] + (gaps && draw(3) == 0 ? draw(3) : 0);
    }
    return end;
}

static void copy_plainly(const copy_case *one, char *to, const char *from) {
    int64_t place[COPY_AXES] = {0};
    for (int k = 0; k >= 0;) {
        int64_t there = 0, here = 0;
        for (int a = 0; a < one->axes; a++) {
            there += place[a] * one->to[a];
            here += place[a] * one->from[a];
        }
        if (place[one->axes - 1] < one->filled) {
            memcpy(to + there, from + here, (size_t)one->width);
        } else {
            memset(to + there, 0, (size_t)one->width);
        }
        for (k = one->axes - 1; k >= 0 && ++place[k] == one->shape[k]; k--) {
            place[k] = 0;
        }
    }
}

/* Copies a case both ways between blocks that end with their last element, and begin at any byte. */
static void try_case(copy_case *one, int gaps) {
    int64_t src_shape[COPY_AXES];
    memcpy(src_shape, one->shape, sizeof src_shape);
    src_shape[one->axes - 1] = one->filled;
    const int ragged = one->filled < one->shape[one->axes - 1];
    const int64_t dst_size = lay_out(one, one->shape, one->to, ragged, gaps);
    const int64_t src_size = lay_out(one, src_shape, one->from, 0, gaps);
    const int64_t shift = draw(8);
    char *const to = malloc((size_t)(dst_size + shift)), *const wanted = malloc((size_t)dst_size);
    char *const from = malloc((size_t)(src_size + shift));
    for (int64_t i = 0; i < src_size; i++) {
        from[shift + i] = (char)draw(256);
    }
    memset(to, 0x5A, (size_t)(dst_size + shift));
    memset(wanted, 0x5A, (size_t)dst_size);
    copy_plainly(one, wanted, from + shift);
    CHECK_EQ(format_copy(to + shift, dst_size, from + shift, src_size, one->axes, one->shape, one->to, one->from,
                         one->width, one->filled),
             0);
    CHECK(memcmp(to + shift, wanted, (size_t)dst_size) == 0);
    CHECK(format_copy(to + shift, dst_size - 1, from + shift, src_size, one->axes, one->shape, one->to, one->from,
                      one->width, one->filled) == -1);
    CHECK(format_copy(to + shift, dst_size, from + shift, src_size - 1, one->axes, one->shape, one->to, one->from,
                      one->width, one->filled) == -1);
    CHECK(memcmp(to + shift, wanted, (size_t)dst_size) == 0);
    free(to);
    free(wanted);
    free(from);
}

static void try_random_cases(void) {
    static const int64_t counts[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 64, 70, 129};
    static const int64_t widths[] = {1, 1, 2, 2, 4, 8, 16, 3, 12, 40};
    for (int round = 0; round < 1000; round++) {
        copy_case one = {.axes = 1 + (int)draw(6), .width = widths[draw(10)]};
        int64_t size = one.width;
        for (int k = 0; k < one.axes; k++) {
            const int64_t count = counts[draw(15)];
            one.shape[k] = size * count < 40000 ? count : 1;
            size *= one.shape[k];
        }
        int64_t *const last = &one.shape[one.axes - 1];
        one.filled = *last;
        if (one.width <= COPY_WIDE_BYTES && draw(3) == 0) {
            *last += 1 + draw(round % 50 == 0 ? 3000 : 20);
        }
        try_case(&one, round % 2);
    }
}

/* A copy that is large enough to go past the cache. */
static void try_large_case(void) {
    copy_case one = {.axes = 3, .width = 2, .filled = 13, .shape = {1037, 511, 16}};
    try_case(&one, 0);
    one = (copy_case){.axes = 2, .width = 1, .filled = 2903, .shape = {3001, 2903}};
    try_case(&one, 1);
}

int main(void) {
    try_random_cases();
    try_large_case();
    return check_done();
}
