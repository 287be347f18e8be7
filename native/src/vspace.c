/* Device address space: one range, handed out in pieces.
 *
 * The range of the card, 16 TiB to 24 TiB, is reserved without access rights: no host allocation can land there and
 * touching a device address faults. Where that range is taken (sanitizers keep their shadow memory there) any other is
 * reserved, smaller if need be. Where the host refuses that too, addresses are taken that no user process can map. When
 * the first address was chosen by an option nothing is reserved: addresses are numbers in a table first.
 *
 * Free pieces are kept in an ordered tree. Addresses are handed out upwards from a cursor when fresh ones are
 * preferred, so that a freed address stays unknown for long; else the lowest place that fits is taken.
 *
 * Thread safety: callers hold the table lock. */
#include "vspace.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "range_tree.h"

#define CARD_FIRST (16 * TIB)
#define CARD_BYTES (8 * TIB)
#define LEAST_BYTES (16 * GIB)
#define NOT_FOR_USERS ((uint64_t)1 << 55)
#define SMALL_PAGE (4 * KIB)

static struct vspace_info info;
static void *reserved_at;        /* mapping that keeps the range, or null */
static size_t reserved_bytes;    /* its size */
static struct range_tree pieces; /* free pieces */
static uint64_t cursor;          /* addresses below were handed out before */

static void *reserve(uint64_t hint, uint64_t bytes, int flags) {
    void *at =
        mmap((void *)(uintptr_t)hint, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* Reserves the range of the card; false when it is not free. */
static bool reserve_card_range(void) {
    void *at = reserve(CARD_FIRST, CARD_BYTES, MAP_FIXED_NOREPLACE);
    if (at && (uint64_t)(uintptr_t)at != CARD_FIRST) {
        munmap(at, CARD_BYTES);
        at = NULL;
    }
    if (!at)
        return false;
    reserved_at = at;
    reserved_bytes = CARD_BYTES;
    info = (struct vspace_info){.first = CARD_FIRST, .bytes = CARD_BYTES, .reserved = true, .usual = true};
    return true;
}

/* Reserves some other range, as large as can be had; it starts at a multiple of 1 GiB. */
static bool reserve_any_range(void) {
    for (uint64_t bytes = CARD_BYTES; bytes >= LEAST_BYTES; bytes /= 2) {
        reserved_at = reserve(0, bytes + GIB, 0);
        if (reserved_at) {
            reserved_bytes = bytes + GIB;
            uint64_t first = ((uint64_t)(uintptr_t)reserved_at + GIB - 1) & ~(GIB - 1);
            info = (struct vspace_info){.first = first, .bytes = bytes, .reserved = true};
            return true;
        }
    }
    return false;
}

static bool add_piece(uint64_t start, uint64_t len) {
    if (!len)
        return true;
    struct range *piece = calloc(1, sizeof(*piece));
    if (!piece)
        return false;
    piece->start = start;
    piece->len = len;
    range_tree_insert(&pieces, piece);
    return true;
}

void vspace_open(const struct config *config) {
    if (config->first_address_given) {
        uint64_t room = UINT64_MAX - config->first_address + 1 - SMALL_PAGE;
        info = (struct vspace_info){.first = config->first_address, .bytes = room < CARD_BYTES ? room : CARD_BYTES};
    } else if (!reserve_card_range() && !reserve_any_range()) {
        info = (struct vspace_info){.first = NOT_FOR_USERS, .bytes = CARD_BYTES, .reserved = true};
    }
    cursor = info.first;
    if (!add_piece(info.first, info.bytes))
        info.bytes = 0;
}

void vspace_close(void) {
    for (struct range *piece; (piece = pieces.root);) {
        range_tree_remove(&pieces, piece);
        free(piece);
    }
    if (reserved_at)
        munmap(reserved_at, reserved_bytes);
    reserved_at = NULL;
    info = (struct vspace_info){.bytes = 0};
}

struct vspace_info vspace_info(void) {
    return info;
}

bool vspace_holds(uint64_t addr) {
    return addr - info.first < info.bytes;
}

bool vspace_take(uint64_t len, uint64_t align, bool fresh, uint64_t *addr) {
    struct range *piece = fresh ? range_tree_fit(&pieces, cursor, len, align, addr) : NULL;
    if (!piece)
        piece = range_tree_fit(&pieces, info.first, len, align, addr);
    if (!piece)
        return false;
    uint64_t below = *addr - piece->start;
    uint64_t above = piece->len - below - len;
    if (below && above && !add_piece(*addr + len, above))
        return false;
    range_tree_remove(&pieces, piece);
    if (below) {
        piece->len = below;
    } else if (above) {
        piece->start = *addr + len;
        piece->len = above;
    } else {
        free(piece);
        piece = NULL;
    }
    if (piece)
        range_tree_insert(&pieces, piece);
    cursor = *addr + len;
    return true;
}

void vspace_give(uint64_t addr, uint64_t len) {
    struct range *below = range_tree_floor(&pieces, addr);
    struct range *above = range_tree_ceil(&pieces, addr);
    if (below && below->start + below->len == addr) {
        range_tree_remove(&pieces, below);
        addr = below->start;
        len += below->len;
    } else {
        below = NULL;
    }
    if (above && addr + len == above->start) {
        range_tree_remove(&pieces, above);
        len += above->len;
    } else {
        above = NULL;
    }
    struct range *piece = below ? below : above;
    if (below && above)
        free(above);
    if (!piece) {
        add_piece(addr, len);
        return;
    }
    piece->start = addr;
    piece->len = len;
    range_tree_insert(&pieces, piece);
}
