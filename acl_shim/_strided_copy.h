/* The copy of gevar.formats between two views whose elements lie in different orders, near the speed of memory.
 *
 * Lines of the cache whose distance is a power of two push each other out of it. So each line of the source is read
 * once and each of the destination written once, whatever their distances: the copy goes by blocks that are long along
 * the source and along the destination, and turns each of them between two buffers. Where the innermost axis of the
 * destination is longer than the source, zeros fill it up, which spares a pass over the padding.
 *
 * Nothing is allocated and nothing kept; any number of threads may copy. */

#ifndef ACL_SHIM_STRIDED_COPY_H
#define ACL_SHIM_STRIDED_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    COPY_AXES = 16,              /* most axes */
    COPY_LINE_BYTES = 64,        /* a line of the cache */
    COPY_RUN_BYTES = 512,        /* runs that both sides have in one piece, from which no buffer is needed */
    COPY_WIDE_BYTES = 16,        /* elements from which one buffer is enough: they are put in their places one by one */
    COPY_SPAN_BYTES = 256,       /* length of a block along the source, and along the destination, at most */
    COPY_BLOCK_BYTES = 32 << 10, /* a buffer */
    COPY_SHORT = 8,              /* elements along the source below which several axes are turned as one */
    COPY_STREAM_BYTES = 8 << 20, /* destinations from which lines are written past the cache */
};

/* One axis: elements along it, and how far they lie from each other on both sides, in bytes. */
typedef struct {
    int64_t count, to, from;
} copy_axis;

/* A walk over all places of some axes, the last one fastest. */
typedef struct {
    int axes;
    copy_axis axis[COPY_AXES];
    int64_t place[COPY_AXES];
} copy_walk;

static inline void copy_walk_along(copy_walk *walk, int64_t count, int64_t to, int64_t from) {
    walk->axis[walk->axes] = (copy_axis){count, to, from};
    walk->place[walk->axes++] = 0;
}

/* Goes to the next place; 0 after the last one. */
static inline int copy_next(copy_walk *walk, char **to, const char **from) {
    for (int k = walk->axes - 1; k >= 0; k--) {
        const copy_axis *axis = &walk->axis[k];
        if (++walk->place[k] < axis->count) {
            *to += axis->to;
            *from += axis->from;
            return 1;
        }
        *to -= axis->to * (axis->count - 1);
        *from -= axis->from * (axis->count - 1);
        walk->place[k] = 0;
    }
    return 0;
}

#define COPY_ROWS(size)                                                                                                \
    do {                                                                                                               \
        for (int64_t i = 0; i < inner.count; i++) {                                                                    \
            memcpy(to + i * inner.to, from + i * inner.from, size);                                                    \
        }                                                                                                              \
    } while (copy_next(walk, &to, &from))

/* Copies a row of so many bytes at each place of a walk, which is used up. */
static void copy_rows(char *to, const char *from, copy_walk *walk, int64_t row_bytes) {
    copy_axis inner = {1, 0, 0};
    if (walk->axes > 0) {
        inner = walk->axis[--walk->axes];
    }
    switch (row_bytes) {
    case 1:
        COPY_ROWS(1);
        break;
    case 2:
        COPY_ROWS(2);
        break;
    case 4:
        COPY_ROWS(4);
        break;
    case 8:
        COPY_ROWS(8);
        break;
    case 16:
        COPY_ROWS(16);
        break;
    case 32:
        COPY_ROWS(32);
        break;
    default:
        COPY_ROWS((size_t)row_bytes);
    }
}

#ifdef __SSE2__
/* Copies a row; whole lines of the destination go past the cache, and are not read before. */
static inline void copy_past_cache(char *to, const char *from, int64_t size) {
    const int64_t head = -(intptr_t)to & (COPY_LINE_BYTES - 1);
    if (size >= head + COPY_LINE_BYTES) {
        memcpy(to, from, (size_t)head);
        for (to += head, from += head, size -= head; size >= COPY_LINE_BYTES; size -= COPY_LINE_BYTES) {
            for (int part = 0; part < COPY_LINE_BYTES; part += 16) {
                _mm_stream_si128((__m128i *)(void *)(to + part), _mm_loadu_si128((const void *)(from + part)));
            }
            to += COPY_LINE_BYTES;
            from += COPY_LINE_BYTES;
        }
    }
    memcpy(to, from, (size_t)size);
}
#endif

/* The same as copy_rows, for the rows of a destination; `streams` tells whether it is large. */
static void copy_rows_out(char *to, const char *from, copy_walk *walk, int64_t row_bytes, int streams) {
#ifdef __SSE2__
    if (streams && row_bytes >= COPY_LINE_BYTES) {
        do {
            copy_past_cache(to, from, row_bytes);
        } while (copy_next(walk, &to, &from));
        return;
    }
#endif
    (void)streams;
    copy_rows(to, from, walk, row_bytes);
}

typedef uint8_t copy_lanes_1 __attribute__((vector_size(8)));
typedef uint16_t copy_lanes_2 __attribute__((vector_size(16)));
typedef uint32_t copy_lanes_4 __attribute__((vector_size(16)));

/* Interleaves the first half of the rows with the second; done log2(lanes) times, or log2(rows) times for fewer rows
 * than lanes, it turns them. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define COPY_ZIP_8(out, in, i, half)                                                                                   \
    out[2 * (i)] = __builtin_shufflevector(in[i], in[(i) + (half)], 0, 8, 1, 9, 2, 10, 3, 11);                         \
    out[2 * (i) + 1] = __builtin_shufflevector(in[i], in[(i) + (half)], 4, 12, 5, 13, 6, 14, 7, 15)
#define COPY_ZIP_4(out, in, i, half)                                                                                   \
    out[2 * (i)] = __builtin_shufflevector(in[i], in[(i) + (half)], 0, 4, 1, 5);                                       \
    out[2 * (i) + 1] = __builtin_shufflevector(in[i], in[(i) + (half)], 2, 6, 3, 7)
#endif
#endif
#ifndef COPY_ZIP_8
#define COPY_ZIP_LANES(out, in, i, half, lanes)                                                                        \
    for (int lane = 0; lane < 2 * (lanes); lane++) {                                                                   \
        out[2 * (i) + lane / (lanes)][lane % (lanes)] = in[(i) + lane % 2 * (half)][lane / 2];                         \
    }
#define COPY_ZIP_8(out, in, i, half) COPY_ZIP_LANES(out, in, i, half, 8)
#define COPY_ZIP_4(out, in, i, half) COPY_ZIP_LANES(out, in, i, half, 4)
#endif

/* Turns a square of elements; pitches are the distances of rows in bytes. */
#define COPY_SQUARE(name, width, lanes, zip, passes)                                                                   \
    static inline void name(char *to, int64_t to_pitch, const char *from, int64_t from_pitch) {                        \
        copy_lanes_##width rows[2][lanes];                                                                             \
        for (int i = 0; i < (lanes); i++) {                                                                            \
            memcpy(&rows[0][i], from + i * from_pitch, sizeof rows[0][i]);                                             \
        }                                                                                                              \
        for (int pass = 0; pass < (passes); pass++) {                                                                  \
            for (int i = 0; i < (lanes) / 2; i++) {                                                                    \
                zip(rows[(pass + 1) % 2], rows[pass % 2], i, (lanes) / 2);                                             \
            }                                                                                                          \
        }                                                                                                              \
        for (int i = 0; i < (lanes); i++) {                                                                            \
            memcpy(to + i * to_pitch, &rows[(passes) % 2][i], sizeof rows[0][i]);                                      \
        }                                                                                                              \
    }

/* Turns four rows of eight elements. */
#define COPY_STRIP(name, width)                                                                                        \
    static inline void name(char *to, int64_t to_pitch, const char *from, int64_t from_pitch) {                        \
        copy_lanes_##width rows[2][4];                                                                                 \
        for (int i = 0; i < 4; i++) {                                                                                  \
            memcpy(&rows[0][i], from + i * from_pitch, sizeof rows[0][i]);                                             \
        }                                                                                                              \
        for (int pass = 0; pass < 2; pass++) {                                                                         \
            for (int i = 0; i < 2; i++) {                                                                              \
                COPY_ZIP_8(rows[(pass + 1) % 2], rows[pass], i, 2);                                                    \
            }                                                                                                          \
        }                                                                                                              \
        char turned[8][4 * (width)];                                                                                   \
        memcpy(turned, rows[0], sizeof turned);                                                                        \
        for (int i = 0; i < 8; i++) {                                                                                  \
            memcpy(to + i * to_pitch, turned[i], sizeof turned[i]);                                                    \
        }                                                                                                              \
    }

COPY_SQUARE(copy_square_1, 1, 8, COPY_ZIP_8, 3)
COPY_SQUARE(copy_square_2, 2, 8, COPY_ZIP_8, 3)
COPY_SQUARE(copy_square_4, 4, 4, COPY_ZIP_4, 2)
COPY_STRIP(copy_strip_1, 1)
COPY_STRIP(copy_strip_2, 2)

/* Turns rows of so many columns, both without gaps between elements: by squares, by strips of four rows, one by one. */
#define COPY_MATRIX(width, side, strip)                                                                                \
    static void copy_matrix_##width(char *to, int64_t to_pitch, const char *from, int64_t from_pitch, int64_t rows,    \
                                    int64_t columns) {                                                                 \
        const int64_t whole = columns - columns % (side);                                                              \
        int64_t row = 0;                                                                                               \
        for (; row + (side) <= rows; row += (side)) {                                                                  \
            for (int64_t j = 0; j < whole; j += (side)) {                                                              \
                copy_square_##width(to + j * to_pitch + row * (width), to_pitch,                                       \
                                    from + row * from_pitch + j * (width), from_pitch);                                \
            }                                                                                                          \
        }                                                                                                              \
        if (row + 4 <= rows) {                                                                                         \
            for (int64_t j = 0; j < whole; j += (side)) {                                                              \
                strip(to + j * to_pitch + row * (width), to_pitch, from + row * from_pitch + j * (width), from_pitch); \
            }                                                                                                          \
            row += 4;                                                                                                  \
        }                                                                                                              \
        for (int64_t j = whole; j < columns; j++) {                                                                    \
            for (int64_t i = 0; i < row; i++) {                                                                        \
                memcpy(to + j * to_pitch + i * (width), from + i * from_pitch + j * (width), width);                   \
            }                                                                                                          \
        }                                                                                                              \
        for (; row < rows; row++) {                                                                                    \
            for (int64_t j = 0; j < columns; j++) {                                                                    \
                memcpy(to + j * to_pitch + row * (width), from + row * from_pitch + j * (width), width);               \
            }                                                                                                          \
        }                                                                                                              \
    }

COPY_MATRIX(1, 8, copy_strip_1)
COPY_MATRIX(2, 8, copy_strip_2)
COPY_MATRIX(4, 4, copy_square_4)

typedef struct {
    int axes;
    int streams;               /* whether the destination is written past the cache */
    int64_t width;             /* bytes of an element */
    int64_t filled;            /* elements that the source has along the last axis; zeros follow */
    copy_axis axis[COPY_AXES]; /* in the order of the destination, the last one is the innermost */
    int64_t tile[COPY_AXES];   /* elements of a block along each axis */
    int by_source[COPY_AXES];  /* axes from the innermost of the source; the first buffer has this order */
    int by_held[COPY_AXES];    /* axes from the innermost of the second buffer */
} copy_plan;

/* Distances in the first buffer, which holds a block as the source does, with its small gaps. Returns its size. */
static int64_t copy_first_pitches(const copy_plan *plan, const int64_t *count, int64_t *pitch) {
    int64_t size = plan->width;
    for (int k = 0; k < plan->axes; k++) {
        const int a = plan->by_source[k];
        const int64_t step = plan->axis[a].from;
        pitch[a] = k > 0 && step > size && step < 2 * size ? step : size;
        size = pitch[a] * count[a];
    }
    return size;
}

/* Distances in the second buffer, which has no gaps. Returns its size. */
static int64_t copy_second_pitches(const copy_plan *plan, const int64_t *count, int64_t *pitch) {
    int64_t size = plan->width;
    for (int k = 0; k < plan->axes; k++) {
        pitch[plan->by_held[k]] = size;
        size *= count[plan->by_held[k]];
    }
    return size;
}

/* Reads a block, of which `count` along the last axis is what the source has. Rows that lie in the buffer as in the
 * source are read as one, where `gaps` is set with what lies between them. */
static void copy_in(const copy_plan *plan, const int64_t *count, int whole, char *to, const int64_t *pitch, int gaps,
                    const char *from) {
    const int last = plan->axes - 1;
    int64_t row = plan->width;
    int k = 0;
    for (int more = 1; k <= last && more; k++) {
        const int a = plan->by_source[k];
        const int64_t step = plan->axis[a].from;
        if (pitch[a] != step || row > step || (row < step && !gaps)) {
            break;
        }
        row += step * (count[a] - 1);
        more = whole || a != last;
    }
    copy_walk walk;
    walk.axes = 0;
    for (int i = last; i >= k; i--) {
        const int a = plan->by_source[i];
        copy_walk_along(&walk, count[a], pitch[a], plan->axis[a].from);
    }
    copy_rows(to, from, &walk, row);
}

#define COPY_TURN(width)                                                                                               \
    do {                                                                                                               \
        copy_matrix_##width(to, to_pitch[along], from, from_pitch[across], count[across], columns);                    \
    } while (copy_next(&walk, &to, &from))

/* Turns a block from the first buffer into the second. Axes that follow each other along the source count as one where
 * the second buffer has them so. */
static void copy_turn(const copy_plan *plan, const int64_t *count, char *to, const int64_t *to_pitch, const char *from,
                      const int64_t *from_pitch) {
    const int across = plan->axes - 1, along = plan->by_source[0];
    int64_t columns = count[along];
    int merged = 1;
    for (; along != across && merged < plan->axes; merged++) {
        const int a = plan->by_source[merged];
        if (a == across || from_pitch[a] != columns * plan->width || to_pitch[a] != columns * to_pitch[along]) {
            break;
        }
        columns *= count[a];
    }
    copy_walk walk;
    walk.axes = 0;
    for (int k = plan->axes - 1; k >= merged; k--) {
        const int a = plan->by_source[k];
        if (a != across) {
            copy_walk_along(&walk, count[a], to_pitch[a], from_pitch[a]);
        }
    }
    const int64_t width = along == across ? 0 : plan->width;
    if (width == 1) {
        COPY_TURN(1);
    } else if (width == 2) {
        COPY_TURN(2);
    } else if (width == 4) {
        COPY_TURN(4);
    } else {
        if (width > 0) {
            copy_walk_along(&walk, columns, to_pitch[along], from_pitch[along]);
        }
        copy_walk_along(&walk, count[across], to_pitch[across], from_pitch[across]);
        copy_rows(to, from, &walk, plan->width);
    }
}

/* Writes a block from the second buffer. */
static void copy_out(const copy_plan *plan, const int64_t *count, char *to, const char *from, const int64_t *pitch) {
    int64_t row = plan->width;
    int k = plan->axes;
    while (k > 0 && plan->axis[k - 1].to == row && pitch[k - 1] == row) {
        row *= count[--k];
    }
    copy_walk walk;
    walk.axes = 0;
    for (int i = 0; i < k; i++) {
        copy_walk_along(&walk, count[i], plan->axis[i].to, pitch[i]);
    }
    copy_rows_out(to, from, &walk, row, plan->streams);
}

/* Copies a block of so many elements along each axis; the source has `filled` along the last one. */
static void copy_block(const copy_plan *plan, int64_t *count, int64_t filled, char *to, const char *from) {
    _Alignas(COPY_LINE_BYTES) char first[COPY_BLOCK_BYTES], second[COPY_BLOCK_BYTES];
    int64_t first_pitch[COPY_AXES], second_pitch[COPY_AXES];
    const int wide = plan->width >= COPY_WIDE_BYTES, last = plan->axes - 1;
    const int64_t second_size = copy_second_pitches(plan, count, second_pitch);
    const int64_t size = wide ? second_size : copy_first_pitches(plan, count, first_pitch);
    char *const buffer = wide ? second : first;
    const int64_t wanted = count[last];
    if (filled < wanted) {
        memset(buffer, 0, (size_t)size);
    }
    if (filled > 0) {
        count[last] = filled;
        copy_in(plan, count, filled == wanted, buffer, wide ? second_pitch : first_pitch, !wide, from);
        count[last] = wanted;
    }
    if (!wide) {
        copy_turn(plan, count, second, second_pitch, first, first_pitch);
    }
    copy_out(plan, count, to, second, second_pitch);
}

static void copy_blocks(const copy_plan *plan, char *to, const char *from) {
    const int last = plan->axes - 1;
    copy_walk walk;
    walk.axes = 0;
    for (int k = 0; k <= last; k++) {
        const int64_t tile = plan->tile[k];
        copy_walk_along(&walk, (plan->axis[k].count + tile - 1) / tile, plan->axis[k].to * tile,
                        plan->axis[k].from * tile);
    }
    do {
        int64_t count[COPY_AXES];
        for (int k = 0; k <= last; k++) {
            const int64_t left = plan->axis[k].count - walk.place[k] * plan->tile[k];
            count[k] = left < plan->tile[k] ? left : plan->tile[k];
        }
        const int64_t filled = plan->filled - walk.place[last] * plan->tile[last];
        copy_block(plan, count, filled < 0 ? 0 : filled < count[last] ? filled : count[last], to, from);
    } while (copy_next(&walk, &to, &from));
}

/* Bytes of the larger buffer for the blocks of a plan. */
static int64_t copy_buffer_bytes(const copy_plan *plan) {
    int64_t pitch[COPY_AXES];
    const int64_t first = copy_first_pitches(plan, plan->tile, pitch);
    const int64_t second = copy_second_pitches(plan, plan->tile, pitch);
    return first > second ? first : second;
}

/* Makes a block longer along an axis, as far as the axis goes. */
static void copy_extend(copy_plan *plan, int axis, int64_t elements) {
    const int64_t count = plan->axis[axis].count, wanted = elements < count ? elements : count;
    plan->tile[axis] = wanted > plan->tile[axis] ? wanted : plan->tile[axis];
}

/* Chooses the blocks: a span along the destination, one along the source, then as much as the buffers take. */
static void copy_choose_blocks(copy_plan *plan) {
    int64_t span = COPY_SPAN_BYTES;
    while (span * span > COPY_BLOCK_BYTES * plan->width) {
        span /= 2;
    }
    for (int k = 0; k < plan->axes; k++) {
        plan->tile[k] = 1;
    }
    for (int k = plan->axes - 1; k >= 0 && plan->axis[k].to <= span; k--) {
        copy_extend(plan, k, span / plan->axis[k].to);
    }
    for (int k = 0; k < plan->axes && plan->axis[plan->by_source[k]].from <= span; k++) {
        copy_extend(plan, plan->by_source[k], span / plan->axis[plan->by_source[k]].from);
    }
    for (int k = plan->axes - 1; k >= 0; k--) {
        copy_extend(plan, k, plan->tile[k] * (COPY_BLOCK_BYTES / copy_buffer_bytes(plan)));
        while (plan->tile[k] > 1 && copy_buffer_bytes(plan) > COPY_BLOCK_BYTES) {
            plan->tile[k] = (plan->tile[k] + 1) / 2;
        }
    }
}

/* Chooses the orders of the buffers: that of the source, and that of the destination. Where the rows of the source are
 * short, the second one has the innermost axis of the destination inside and all others as the first one. */
static void copy_choose_orders(copy_plan *plan) {
    const int last = plan->axes - 1;
    for (int k = 0; k <= last; k++) {
        int at = k;
        for (; at > 0 && plan->axis[plan->by_source[at - 1]].from > plan->axis[k].from; at--) {
            plan->by_source[at] = plan->by_source[at - 1];
        }
        plan->by_source[at] = k;
        plan->by_held[k] = last - k;
    }
    const int along = plan->by_source[0];
    if (plan->width >= COPY_WIDE_BYTES || along == last || plan->axis[along].count >= COPY_SHORT ||
        plan->by_source[1] == last) {
        return;
    }
    for (int k = 0, held = 1; k <= last; k++) {
        if (plan->by_source[k] != last) {
            plan->by_held[held++] = plan->by_source[k];
        }
    }
}

/* Whether elements lie in so many bytes, and none of them over another along one axis. */
static int copy_inside(int axes, const int64_t *shape, const int64_t *steps, int64_t width, int64_t size) {
    int64_t end = width;
    for (int k = 0; k < axes; k++) {
        int64_t reach;
        if (shape[k] < 1 || (shape[k] > 1 && steps[k] < width) ||
            __builtin_mul_overflow(steps[k], shape[k] - 1, &reach) || __builtin_add_overflow(end, reach, &end)) {
            return 0;
        }
    }
    return end <= size && size <= INT64_MAX / 4; /* so that no product below overflows */
}

/* Adds an axis in the order of the destination. */
static void copy_add_axis(copy_plan *plan, copy_axis one) {
    int at = plan->axes++;
    for (; at > 0 &&
           (plan->axis[at - 1].to < one.to || (plan->axis[at - 1].to == one.to && plan->axis[at - 1].from < one.from));
         at--) {
        plan->axis[at] = plan->axis[at - 1];
    }
    plan->axis[at] = one;
}

/* Takes axes that follow each other on both sides for one. */
static void copy_merge_axes(copy_plan *plan) {
    int merged = 0;
    for (int k = 0; k < plan->axes; k++) {
        copy_axis one = plan->axis[k];
        if (merged > 0 && plan->axis[merged - 1].to == one.to * one.count &&
            plan->axis[merged - 1].from == one.from * one.count) {
            one.count *= plan->axis[--merged].count;
        }
        plan->axis[merged++] = one;
    }
    plan->axes = merged;
}

/* Copies run by run where runs are long or there is one only, else by blocks. */
static void copy_by_plan(copy_plan *plan, char *to, const char *from) {
    if (plan->axes == 0 || (plan->width >= COPY_RUN_BYTES && plan->filled == INT64_MAX)) {
        copy_walk walk;
        walk.axes = 0;
        for (int k = 0; k < plan->axes; k++) {
            copy_walk_along(&walk, plan->axis[k].count, plan->axis[k].to, plan->axis[k].from);
        }
        copy_rows_out(to, from, &walk, plan->width, plan->streams);
    } else {
        copy_choose_orders(plan);
        copy_choose_blocks(plan);
        copy_blocks(plan, to, from);
    }
#ifdef __SSE2__
    _mm_sfence(); /* what went past the cache is there before anything that follows */
#endif
}

/* Copies elements of `width` bytes. Both sides have `axes` axes with so many elements and distances in bytes; along
 * the last axis the source has `filled` elements, and what the destination has beyond them is made zero: it is then its
 * innermost axis. Sizes are the bytes that may be read and written. Returns 0, or -1 where an element would lie outside
 * of them, a distance is less than an element, or there is something to fill up between elements of more than 16 bytes;
 * then nothing is written. */
static int format_copy(void *dst, int64_t dst_size, const void *src, int64_t src_size, int axes, const int64_t *shape,
                       const int64_t *dst_steps, const int64_t *src_steps, int64_t width, int64_t filled) {
    int64_t src_shape[COPY_AXES];
    if (axes < 1 || axes > COPY_AXES || width < 1 || filled > shape[axes - 1]) {
        return -1;
    }
    const int last = axes - 1, ragged = filled < shape[last];
    if (ragged && width > COPY_WIDE_BYTES) {
        return -1;
    }
    memcpy(src_shape, shape, (size_t)axes * sizeof *shape);
    src_shape[last] = filled;
    if (!copy_inside(axes, shape, dst_steps, width, dst_size) ||
        !copy_inside(axes, src_shape, src_steps, width, src_size)) {
        return -1;
    }
    copy_plan plan = {.streams = dst_size >= COPY_STREAM_BYTES, .width = width, .filled = ragged ? filled : INT64_MAX};
    for (int k = 0; k < axes - ragged; k++) {
        if (shape[k] > 1) {
            copy_add_axis(&plan, (copy_axis){shape[k], dst_steps[k], src_steps[k]});
        }
    }
    copy_merge_axes(&plan);
    if (ragged) {
        if (plan.axes > 0 && plan.axis[plan.axes - 1].to < dst_steps[last]) {
            return -1;
        }
        plan.axis[plan.axes++] = (copy_axis){shape[last], dst_steps[last], filled > 1 ? src_steps[last] : width};
    } else if (plan.axes > 0 && plan.axis[plan.axes - 1].to == width && plan.axis[plan.axes - 1].from == width) {
        plan.width *= plan.axis[--plan.axes].count;
    }
    copy_by_plan(&plan, dst, src);
    return 0;
}

#endif
