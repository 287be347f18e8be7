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
#include "device.h"
#include "entry.h"
#include "errors.h"
#include "faults.h"
#include "mapping.h"
#include "pagetable.h"
#include "peer.h"
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
    else
        memcpy(to->bytes, from->bytes, len);
    return true;
}

static int run_copy(struct walk *to, struct walk *from, uint64_t count) {
    while (count > 0) {
        const struct segment *target = piece(to);
        const struct segment *source = piece(from);
        uint64_t len = target->len < source->len ? target->len : source->len;
        if (!move(target, source, len))
            return error_raise(ERROR_MEMORY, ACL_ERROR_RT_COPY_DATA,
                               "the source cannot be read or the host has no memory left for the device's pages");
        consume(to, len);
        consume(from, len);
        count -= len;
    }
    return ACL_SUCCESS;
}

static void run_fill(struct walk *to, uint8_t value, uint64_t count) {
    while (count > 0) {
        const struct segment *target = piece(to);
        uint64_t len = target->len;
        if (!target->fresh || value)
            memset(target->bytes, value, len);
        consume(to, len);
        count -= len;
    }
}

/* Describes one side of an access; false, with the refusal recorded, when a byte of it must not be touched. */
static bool side_of(struct access_side *side, uint64_t addr, uint64_t len, enum access_effect effect) {
    const char *name = effect == ACCESS_READS ? "source" : "destination";
    *side = (struct access_side){.addr = addr, .len = len};
    if (addr + len - 1 < addr) {
        error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR, "%s 0x%llx + %llu bytes passes 2^64", name,
                    (unsigned long long)addr, (unsigned long long)len);
        return false;
    }
    if (!vspace_holds(addr))
        return true;
    if (!pagetable_covers(addr, len, effect)) {
        error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR,
                    "%s 0x%llx + %llu bytes is not all inside live memory of one device", name,
                    (unsigned long long)addr, (unsigned long long)len);
        return false;
    }
    side->device = pagetable_at(addr)->device;
    return true;
}

/* Whether one side may be read into the other: on one device, between peers, or by the rights of a mapping. */
static bool reachable(const struct access_side *a, const struct access_side *b) {
    return !a->device || !b->device || peer_reaches(a->device, b->device) || mappings_let(a->addr, a->len, b->device) ||
           mappings_let(b->addr, b->len, a->device);
}

/* Whether two host ranges share a byte. */
static bool host_overlap(const struct access_side *a, const struct access_side *b) {
    return !a->device && !b->device && (a->addr - b->addr < b->len || b->addr - a->addr < a->len);
}

int copy_bytes(uint64_t dst, uint64_t src, uint64_t count) {
    struct access access;
    struct walk to, from;
    int code = ACL_SUCCESS;
    table_lock();
    if (!side_of(&access.sides[0], dst, count, ACCESS_WRITES) || !side_of(&access.sides[1], src, count, ACCESS_READS)) {
        code = ACL_ERROR_RT_DRV_INTERNAL_ERROR;
    } else if (!reachable(&access.sides[0], &access.sides[1])) {
        code = error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR,
                           "devices %d and %d may not reach each other; call aclrtDeviceEnablePeerAccess",
                           access.sides[1].device->id, access.sides[0].device->id);
    } else if (host_overlap(&access.sides[0], &access.sides[1])) {
        code = error_raise(ERROR_DRIVER, ACL_ERROR_RT_PARAM_INVALID, "source and destination overlap in host memory");
    } else {
        access_begin(&access);
        walk_start(&to, &access.sides[0], ACCESS_WRITES);
        walk_start(&from, &access.sides[1], ACCESS_READS);
        refill(&from);
        refill(&to);
        int fault;
        uint64_t len = fault_of_copy(count, &fault);
        table_unlock();
        code = run_copy(&to, &from, len);
        if (!code && fault)
            code = error_raise(entry_error_kind(fault), fault, "the copy stopped after %llu of %llu bytes",
                               (unsigned long long)len, (unsigned long long)count);
        table_lock();
        access_end(&access);
    }
    table_unlock();
    return code;
}

int fill_bytes(uint64_t dst, uint8_t value, uint64_t count) {
    struct access access = {0};
    struct walk to;
    int code = ACL_SUCCESS;
    table_lock();
    if (!side_of(&access.sides[0], dst, count, ACCESS_WRITES)) {
        code = ACL_ERROR_RT_DRV_INTERNAL_ERROR;
    } else {
        access_begin(&access);
        walk_start(&to, &access.sides[0], value ? ACCESS_WRITES : ACCESS_CLEARS);
        refill(&to);
        table_unlock();
        run_fill(&to, value, count);
        table_lock();
        access_end(&access);
    }
    table_unlock();
    return code;
}
