/* Device address space: ranges of their own for device memory, for far reservations and for managed memory, handed out
 * in pieces.
 *
 * The range of the card, 16 TiB to 24 TiB, is reserved without access rights: no host allocation can land there and
 * touching a device address faults. Where that range is taken (sanitizers keep their shadow memory there) any other is
 * reserved, smaller if need be. Where the host refuses that too, addresses are taken that no user process can map. When
 * the first address was chosen by an option nothing is reserved: addresses are numbers in a table first.
 *
 * Far reservations lie in the upper part of the card's range for them, where a usual x86-64 process can map nothing;
 * where a process could, the range is reserved like the first one. Managed memory has the card's range or any other. A
 * window whose range is not to be had is empty.
 *
 * Free pieces are kept in an ordered tree. Addresses are handed out upwards from a cursor when fresh ones are
 * preferred, so that a freed address stays unknown for long; else the lowest place that fits is taken.
 *
 * Thread safety: callers hold the table lock. */
#include "vspace.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "range_tree.h"
#include "unit_table.h"

#define CARD_FIRST (16 * TIB)
#define CARD_BYTES (8 * TIB)
#define FAR_FIRST (128 * TIB)
#define FAR_BYTES (96 * TIB)
#define MANAGED_FIRST (9 * TIB)
#define MANAGED_BYTES (3 * TIB)
#define LEAST_BYTES (16 * GIB)
#define NOT_FOR_USERS ((uint64_t)1 << 55)
#define SMALL_PAGE (4 * KIB)

struct window {
    struct vspace_info info;  /* where it is */
    void *reserved_at;        /* mapping that keeps the range, or null */
    size_t reserved_bytes;    /* its size */
    struct range_tree pieces; /* free pieces */
    uint64_t cursor;          /* addresses below were handed out before */
    uint64_t first_unit;      /* number of the unit at the GiB below first */
};

static struct window windows[VSPACE_WINDOWS];

/* Straight to the kernel: a sanitizer's mmap would move the range instead of saying what is in the way. */
static void *reserve(uint64_t hint, uint64_t bytes, int flags) {
    long at = syscall(SYS_mmap, hint, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0L);
    return at == -1 ? NULL : (void *)at;
}

/* Reserves a certain range; false when it is not free. */
static bool reserve_at(struct window *window, uint64_t first, uint64_t bytes) {
    void *at = reserve(first, bytes, MAP_FIXED_NOREPLACE);
    if (at && (uint64_t)(uintptr_t)at != first) {
        munmap(at, bytes);
        errno = EEXIST;
        at = NULL;
    }
    if (!at)
        return false;
    window->reserved_at = at;
    window->reserved_bytes = bytes;
    window->info =
        (struct vspace_info){.first = first, .bytes = bytes, .reserved = true, .mappable = true, .usual = true};
    return true;
}

/* Reserves some other range, as large as can be had up to bytes; it starts at a multiple of 1 GiB. */
static bool reserve_any(struct window *window, uint64_t bytes) {
    for (; bytes >= LEAST_BYTES; bytes /= 2) {
        window->reserved_at = reserve(0, bytes + GIB, 0);
        if (window->reserved_at) {
            window->reserved_bytes = bytes + GIB;
            uint64_t first = ((uint64_t)(uintptr_t)window->reserved_at + GIB - 1) & ~(GIB - 1);
            window->info = (struct vspace_info){.first = first, .bytes = bytes, .reserved = true, .mappable = true};
            return true;
        }
    }
    return false;
}

/* Whether a range shares an address with a window that is open. */
static bool taken(uint64_t first, uint64_t bytes) {
    for (int i = 0; i < VSPACE_WINDOWS; i++) {
        const struct vspace_info *info = &windows[i].info;
        if (info->bytes && (first - info->first < info->bytes || info->first - first < bytes))
            return true;
    }
    return false;
}

static void choose_device_range(const struct config *config) {
    struct window *window = &windows[VSPACE_DEVICE];
    if (config->first_address_given) {
        uint64_t room = UINT64_MAX - config->first_address + 1 - SMALL_PAGE;
        window->info =
            (struct vspace_info){.first = config->first_address, .bytes = room < CARD_BYTES ? room : CARD_BYTES};
    } else if (!reserve_at(window, CARD_FIRST, CARD_BYTES) && !reserve_any(window, CARD_BYTES)) {
        window->info = (struct vspace_info){.first = NOT_FOR_USERS, .bytes = CARD_BYTES, .reserved = true};
    }
}

static void choose_far_range(void) {
    struct window *window = &windows[VSPACE_FAR];
    if (!taken(FAR_FIRST, FAR_BYTES) && !reserve_at(window, FAR_FIRST, FAR_BYTES) && errno != EEXIST)
        window->info = (struct vspace_info){.first = FAR_FIRST, .bytes = FAR_BYTES, .reserved = true};
    window->info.usual = false;
}

static void choose_managed_range(void) {
    struct window *window = &windows[VSPACE_MANAGED];
    if (!taken(MANAGED_FIRST, MANAGED_BYTES) && !reserve_at(window, MANAGED_FIRST, MANAGED_BYTES))
        reserve_any(window, MANAGED_BYTES);
}

static bool add_piece(struct range_tree *pieces, uint64_t start, uint64_t len) {
    if (!len)
        return true;
    struct range *piece = calloc(1, sizeof(*piece));
    if (!piece)
        return false;
    piece->start = start;
    piece->len = len;
    range_tree_insert(pieces, piece);
    return true;
}

void vspace_open(const struct config *config) {
    uint64_t unit = 0;
    choose_device_range(config);
    choose_far_range();
    choose_managed_range();
    for (int i = 0; i < VSPACE_WINDOWS; i++) {
        struct window *window = &windows[i];
        window->cursor = window->info.first;
        window->first_unit = unit;
        unit += (window->info.bytes / GIB + 2) * GRANULE_UNITS;
        if (!add_piece(&window->pieces, window->info.first, window->info.bytes))
            window->info.bytes = 0;
    }
}

static void close_window(struct window *window) {
    for (struct range *piece; (piece = window->pieces.root);) {
        range_tree_remove(&window->pieces, piece);
        free(piece);
    }
    if (window->reserved_at)
        munmap(window->reserved_at, window->reserved_bytes);
    *window = (struct window){.reserved_at = NULL};
}

void vspace_close(void) {
    for (int i = 0; i < VSPACE_WINDOWS; i++)
        close_window(&windows[i]);
}

struct vspace_info vspace_info(enum vspace_window window) {
    return windows[window].info;
}

static struct window *window_of(uint64_t addr) {
    for (int i = 0; i < VSPACE_WINDOWS; i++) {
        if (addr - windows[i].info.first < windows[i].info.bytes)
            return &windows[i];
    }
    return NULL;
}

bool vspace_holds(uint64_t addr) {
    return window_of(addr);
}

bool vspace_window_holds(enum vspace_window window, uint64_t addr, uint64_t len) {
    const struct vspace_info *info = &windows[window].info;
    uint64_t offset = addr - info->first;
    return offset < info->bytes && len <= info->bytes - offset;
}

bool vspace_mappable(uint64_t addr) {
    const struct window *window = window_of(addr);
    return window && window->info.mappable;
}

bool vspace_unit(uint64_t addr, uint64_t *unit) {
    const struct window *window = window_of(addr);
    if (window)
        *unit = window->first_unit + addr / UNIT_BYTES - window->info.first / GIB * GRANULE_UNITS;
    return window;
}

uint64_t vspace_units(void) {
    return ((CARD_BYTES + FAR_BYTES + MANAGED_BYTES) / GIB + 2 * VSPACE_WINDOWS) * GRANULE_UNITS;
}

/* Cuts len bytes at addr out of a free piece that holds them. False when the host is out of memory. */
static bool cut(struct window *window, struct range *piece, uint64_t addr, uint64_t len) {
    uint64_t below = addr - piece->start;
    uint64_t above = piece->len - below - len;
    if (below && above && !add_piece(&window->pieces, addr + len, above))
        return false;
    range_tree_remove(&window->pieces, piece);
    if (below) {
        piece->len = below;
    } else if (above) {
        piece->start = addr + len;
        piece->len = above;
    } else {
        free(piece);
        piece = NULL;
    }
    if (piece)
        range_tree_insert(&window->pieces, piece);
    window->cursor = addr + len;
    return true;
}

bool vspace_take(enum vspace_window which, uint64_t len, uint64_t align, bool fresh, uint64_t *addr) {
    struct window *window = &windows[which];
    struct range *piece = fresh ? range_tree_fit(&window->pieces, window->cursor, len, align, addr) : NULL;
    if (!piece)
        piece = range_tree_fit(&window->pieces, window->info.first, len, align, addr);
    return piece && cut(window, piece, *addr, len);
}

bool vspace_take_at(enum vspace_window which, uint64_t addr, uint64_t len) {
    struct window *window = &windows[which];
    struct range *piece = range_tree_at(&window->pieces, addr);
    uint64_t cursor = window->cursor;
    bool good = piece && piece->len - (addr - piece->start) >= len && cut(window, piece, addr, len);
    window->cursor = cursor;
    return good;
}

void vspace_give(uint64_t addr, uint64_t len) {
    struct range_tree *pieces = &window_of(addr)->pieces;
    struct range *below = range_tree_floor(pieces, addr);
    struct range *above = range_tree_ceil(pieces, addr);
    if (below && below->start + below->len == addr) {
        range_tree_remove(pieces, below);
        addr = below->start;
        len += below->len;
    } else {
        below = NULL;
    }
    if (above && addr + len == above->start) {
        range_tree_remove(pieces, above);
        len += above->len;
    } else {
        above = NULL;
    }
    struct range *piece = below ? below : above;
    if (below && above)
        free(above);
    if (!piece) {
        add_piece(pieces, addr, len);
        return;
    }
    piece->start = addr;
    piece->len = len;
    range_tree_insert(pieces, piece);
}
