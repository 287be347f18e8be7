/* Moving bytes.
 *
 * A range is checked to its last byte first, then announced as an access and moved piece by piece without the table
 * lock. Pieces are translated a batch at a time; a range in one extent is one piece, moved by one memcpy at full speed.
 *
 * Pages that were never touched are special. Reading them gives zeros without committing memory. Writing them from the
 * host goes through the memory file with pwrite: the kernel then fills new pages directly instead of faulting each of
 * them in and clearing it first, which about halves the time of a first load.
 *
 * Thread safety: takes the table lock by itself; any number of copies run at once. */
#include "copy.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "access.h"
#include "acl/acl_base.h"
#include "blocks.h"
#include "device.h"
#include "entry.h"
#include "errors.h"
#include "faults.h"
#include "mapping.h"
#include "pagetable.h"
#include "peer.h"
#include "place.h"
#include "streaming.h"
#include "table.h"
#include "vspace.h"

#define BATCH 32

/* Walks along one side of a copy. */
struct walk {
    uint64_t addr;                  /* next address to translate */
    uint64_t left;                  /* bytes not yet translated */
    bool on_device;                 /* device or host memory */
    enum access_effect effect;      /* what happens to the bytes */
    struct segment segments[BATCH]; /* translated pieces */
    size_t count;                   /* pieces translated */
    size_t next;                    /* piece to use now */
};

static void walk_start(struct walk *walk, const struct access_side *side, enum access_effect effect) {
    walk->addr = side->addr;
    walk->left = side->len;
    walk->on_device = side->device;
    walk->effect = effect;
    walk->count = walk->next = 0;
}

/* Translates the next batch; the table lock is held. */
static void refill(struct walk *walk) {
    uint64_t done = walk->left;
    walk->next = 0;
    if (walk->on_device) {
        walk->count = pagetable_translate(walk->addr, walk->left, walk->effect, walk->segments, BATCH, &done);
    } else {
        walk->segments[0] = (struct segment){.bytes = (char *)(uintptr_t)walk->addr, .len = walk->left};
        walk->count = 1;
    }
    walk->addr += done;
    walk->left -= done;
}

/* The piece to use now; the table lock is not held. */
static struct segment *piece(struct walk *walk) {
    if (walk->next == walk->count) {
        table_lock();
        refill(walk);
        table_unlock();
    }
    return &walk->segments[walk->next];
}

static void consume(struct walk *walk, uint64_t len) {
    struct segment *segment = &walk->segments[walk->next];
    segment->bytes += len;
    segment->len -= len;
    if (!segment->len)
        walk->next++;
}

/* Fills untouched pages from host memory; false when the host cannot give the pages. */
static bool write_fresh(const struct segment *to, const char *from, uint64_t len) {
    struct file_place place = phys_file_place(to->phys, (uint64_t)(to->bytes - to->phys->window));
    uint64_t done = 0;
    while (done < len) {
        ssize_t written = pwrite(place.fd, from + done, len - done, (off_t)(place.at + done));
        if (written <= 0)
            return false;
        done += (uint64_t)written;
    }
    return true;
}

/* Moves len bytes between two pieces; false when the host is out of memory. */
static bool move(const struct segment *to, const struct segment *from, uint64_t len) {
    if (from->fresh && !(to->phys && to->fresh))
        memset(to->bytes, 0, len);
    else if (from->fresh)
        return true;
    else if (to->phys && to->fresh && !from->phys)
        return write_fresh(to, from->bytes, len);
    else if (to->phys && from->phys)
        memmove(to->bytes, from->bytes, len);
    else if (to->phys)
        streaming_copy(to->bytes, from->bytes, len);
    else
        memcpy(to->bytes, from->bytes, len);
    return true;
}

/* Combines a piece with another one. */
static void combine(combine_fn *function, const struct segment *to, const struct segment *from, uint64_t len) {
    static const char zeros[4096];
    if (!from->fresh) {
        function(to->bytes, from->bytes, len);
        return;
    }
    for (uint64_t at = 0; at < len; at += sizeof(zeros))
        function(to->bytes + at, zeros, len - at < sizeof(zeros) ? len - at : sizeof(zeros));
}

static int run_copy(struct walk *to, struct walk *from, uint64_t count, combine_fn *function) {
    while (count > 0) {
        const struct segment *target = piece(to);
        const struct segment *source = piece(from);
        uint64_t len = target->len < source->len ? target->len : source->len;
        if (function)
            combine(function, target, source, len);
        else if (!move(target, source, len))
            return error_raise(ERROR_MEMORY, ACL_ERROR_RT_COPY_DATA,
                               "the source cannot be read or the host has no memory left for the device's pages");
        consume(to, len);
        consume(from, len);
        count -= len;
    }
    return ACL_SUCCESS;
}

static bool same_bytes(uint32_t pattern) {
    return pattern == (pattern & 0xff) * 0x01010101u;
}

static void set(char *to, uint32_t pattern, uint64_t len) {
    if (same_bytes(pattern)) {
        memset(to, (int)(pattern & 0xff), len);
        return;
    }
    for (uint64_t at = 0; at < len; at += sizeof(pattern))
        memcpy(to + at, &pattern, sizeof(pattern));
}

static void run_fill(struct walk *to, const struct fill *fill) {
    for (uint64_t left = fill->bytes; left > 0;) {
        const struct segment *target = piece(to);
        uint64_t len = target->len;
        if (!target->fresh || fill->pattern)
            set(target->bytes, fill->pattern, len);
        consume(to, len);
        left -= len;
    }
}

static bool refuse(const char *name, uint64_t addr, uint64_t len, const char *what) {
    error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR, "%s 0x%llx + %llu bytes %s", name,
                (unsigned long long)addr, (unsigned long long)len, what);
    return false;
}

/* Describes one side of an access; false, with the refusal recorded, when a byte of it must not be touched. */
static bool side_of(struct access_side *side, uint64_t addr, uint64_t len, uint64_t block, enum access_effect effect) {
    const char *name = effect == ACCESS_READS ? "source" : "destination";
    *side = (struct access_side){.addr = addr, .len = len};
    if (addr + len - 1 < addr)
        return refuse(name, addr, len, "passes 2^64");
    if (!vspace_holds(addr))
        return !block || place_covers(addr, len, block) ||
               refuse(name, addr, len, "is not all inside the pinned block it was in");
    if (!pagetable_covers(addr, len, effect))
        return refuse(name, addr, len, "is not all inside live memory of one device");
    side->device = pagetable_at(addr)->device;
    return true;
}

/* The same for rows: everything from the first byte to the last one, or at least the rows themselves. */
static bool rows_of(struct access_side *side, const struct copy_side *rows, const struct copy *copy,
                    enum access_effect effect) {
    uint64_t span;
    if (__builtin_mul_overflow(rows->pitch, copy->rows - 1, &span) || __builtin_add_overflow(span, copy->width, &span))
        return side_of(side, rows->addr, UINT64_MAX, rows->block, effect);
    if (copy->rows == 1 || !vspace_holds(rows->addr) || pagetable_covers(rows->addr, span, effect))
        return side_of(side, rows->addr, span, rows->block, effect);
    for (uint64_t row = 0; row < copy->rows; row++) {
        if (!side_of(side, rows->addr + row * rows->pitch, copy->width, 0, effect))
            return false;
    }
    side->addr = rows->addr;
    side->len = span;
    return true;
}

/* Whether one side may be read into the other: on one device, between peers, or by the rights of a mapping or block. */
static bool reachable(const struct access_side *a, const struct access_side *b) {
    return !a->device || !b->device || peer_reaches(a->device, b->device) || mappings_let(a->addr, a->len, b->device) ||
           mappings_let(b->addr, b->len, a->device) || block_lets(a->addr, a->len, b->device) ||
           block_lets(b->addr, b->len, a->device);
}

/* Whether two host ranges share a byte. */
static bool host_overlap(const struct access_side *a, const struct access_side *b) {
    return !a->device && !b->device && (a->addr - b->addr < b->len || b->addr - a->addr < a->len);
}

/* Moves the first bytes of a row. The table lock is held and given up while bytes move. */
static int run_row(const struct access *access, const struct copy *copy, uint64_t row, uint64_t bytes) {
    struct walk to, from;
    struct access_side sides[2] = {access->sides[0], access->sides[1]};
    sides[0].addr += row * copy->to.pitch;
    sides[1].addr += row * copy->from.pitch;
    sides[0].len = sides[1].len = bytes;
    walk_start(&to, &sides[0], ACCESS_WRITES);
    walk_start(&from, &sides[1], ACCESS_READS);
    refill(&from);
    refill(&to);
    table_unlock();
    int code = run_copy(&to, &from, bytes, copy->combine);
    table_lock();
    return code;
}

/* Moves row after row, up to where a fault that was asked for stops it. */
static int run_rows(const struct access *access, const struct copy *copy) {
    int fault, code = ACL_SUCCESS;
    uint64_t count = copy->rows * copy->width, len = fault_of_copy(count, &fault), left = len;
    for (uint64_t row = 0; left > 0 && !code; row++) {
        uint64_t bytes = left < copy->width ? left : copy->width;
        code = run_row(access, copy, row, bytes);
        left -= bytes;
    }
    if (code || !fault)
        return code;
    return error_raise(entry_error_kind(fault), fault, "the copy stopped after %llu of %llu bytes",
                       (unsigned long long)len, (unsigned long long)count);
}

int copy_run(const struct copy *copy) {
    struct access access;
    int code = ACL_SUCCESS;
    table_lock();
    if (!rows_of(&access.sides[0], &copy->to, copy, ACCESS_WRITES) ||
        !rows_of(&access.sides[1], &copy->from, copy, ACCESS_READS)) {
        code = ACL_ERROR_RT_DRV_INTERNAL_ERROR;
    } else if (!reachable(&access.sides[0], &access.sides[1])) {
        code = error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR,
                           "devices %d and %d may not reach each other; call aclrtDeviceEnablePeerAccess",
                           access.sides[1].device->id, access.sides[0].device->id);
    } else if (host_overlap(&access.sides[0], &access.sides[1])) {
        code = error_raise(ERROR_DRIVER, ACL_ERROR_RT_PARAM_INVALID, "source and destination overlap in host memory");
    } else {
        access_begin(&access);
        code = run_rows(&access, copy);
        access_end(&access);
    }
    table_unlock();
    return code;
}

int copy_bytes(uint64_t dst, uint64_t src, uint64_t count) {
    struct copy copy = {.to.addr = dst, .from.addr = src, .width = count, .rows = 1};
    return copy_run(&copy);
}

struct fill fill_of_bytes(uint64_t addr, uint8_t value, uint64_t bytes) {
    return (struct fill){.addr = addr, .bytes = bytes, .pattern = value * 0x01010101u};
}

int fill_run(const struct fill *fill) {
    struct access access = {0};
    struct walk to;
    int code = ACL_SUCCESS;
    table_lock();
    if (!side_of(&access.sides[0], fill->addr, fill->bytes, fill->block, ACCESS_WRITES)) {
        code = ACL_ERROR_RT_DRV_INTERNAL_ERROR;
    } else {
        access_begin(&access);
        walk_start(&to, &access.sides[0], fill->pattern ? ACCESS_WRITES : ACCESS_CLEARS);
        refill(&to);
        table_unlock();
        run_fill(&to, fill);
        table_lock();
        access_end(&access);
    }
    table_unlock();
    return code;
}
