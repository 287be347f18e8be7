/* Reserved ranges: device addresses that hold nothing until something is mapped there. They cost no memory and belong
 * to no device, so they outlive resets; but a range stays bound to the device whose memory was mapped into it first.
 *
 * Ranges are multiples of 2 MiB; one of 1 GiB and more starts at a multiple of 1 GiB, as 1 GiB pages need it. A wished
 * address must be a multiple of the next power of two of the size, of 1 GiB for more than 512 MiB.
 *
 * Thread safety: callers hold the table lock. */
#include "reserve.h"

#include <stdlib.h>

#include "acl/acl_base.h"
#include "errors.h"
#include "runtime.h"
#include "stack.h"
#include "unit_table.h"

#define WISH_LIMIT (512 * MIB)

static struct unit_table units;
static struct reservation *all;
static uint64_t count;
static uint64_t all_bytes;

/* What a wished address must be a multiple of. */
static uint64_t wish_align(uint64_t len) {
    uint64_t align = UNIT_BYTES;
    while (align < len && align <= WISH_LIMIT)
        align *= 2;
    return align;
}

static enum reserve_result take(enum vspace_window window, uint64_t len, uint64_t wished, uint64_t *start) {
    bool fresh = !runtime_config()->profile->whole_pages;
    *start = wished;
    if (!wished)
        return vspace_take(window, len, len >= GIB ? GIB : UNIT_BYTES, fresh, start) ? RESERVE_DONE : RESERVE_SHORT;
    if (wished % wish_align(len) || !vspace_window_holds(window, wished, len))
        return RESERVE_OUTSIDE;
    return vspace_take_at(window, wished, len) ? RESERVE_DONE : RESERVE_BUSY;
}

/* Enters a range whose addresses are taken; false when the host is out of memory. */
static bool enter(struct reservation *reservation) {
    uint64_t first;
    if (!vspace_unit(reservation->start, &first) ||
        !unit_table_set(&units, first, reservation->len / UNIT_BYTES, reservation))
        return false;
    reservation->next = all;
    if (all)
        all->previous = reservation;
    all = reservation;
    count++;
    all_bytes += reservation->len;
    reservation->stack = stack_take();
    return true;
}

enum reserve_result reservation_make(enum vspace_window window, uint64_t len, uint64_t wished, uint64_t *start) {
    uint64_t rounded = (len + UNIT_BYTES - 1) & ~(UNIT_BYTES - 1);
    struct reservation *reservation = rounded ? calloc(1, sizeof(*reservation)) : NULL;
    if (!reservation)
        return RESERVE_SHORT;
    enum reserve_result result = take(window, rounded, wished, &reservation->start);
    reservation->len = rounded;
    if (result == RESERVE_DONE && !enter(reservation)) {
        vspace_give(reservation->start, rounded);
        result = RESERVE_SHORT;
    }
    if (result == RESERVE_DONE)
        *start = reservation->start;
    else
        free(reservation);
    return result;
}

int reserve_need_feature(void) {
    if (!runtime_config()->virtual_memory_off)
        return ACL_SUCCESS;
    return error_raise(ERROR_DRIVER, ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "the driver has no virtual memory management");
}

struct reservation *reservation_at(uint64_t addr) {
    uint64_t unit;
    return vspace_unit(addr, &unit) ? unit_table_get(&units, unit) : NULL;
}

void reservation_end(struct reservation *reservation) {
    uint64_t first;
    if (vspace_unit(reservation->start, &first))
        unit_table_clear(&units, first, reservation->len / UNIT_BYTES);
    vspace_give(reservation->start, reservation->len);
    if (reservation->previous)
        reservation->previous->next = reservation->next;
    else
        all = reservation->next;
    if (reservation->next)
        reservation->next->previous = reservation->previous;
    count--;
    all_bytes -= reservation->len;
    stack_free(reservation->stack);
    free(reservation);
}

uint64_t reservations_count(void) {
    return count;
}

uint64_t reservations_bytes(void) {
    return all_bytes;
}

const struct reservation *reservations_first(void) {
    return all;
}

void reservations_drop_all(void) {
    while (all)
        reservation_end(all);
    unit_table_close(&units);
}
