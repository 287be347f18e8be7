/* Accesses under way. A copy announces its ranges here, lets go of the table lock and moves its bytes. Whoever wants to
 * take memory away (free, reset) first bars new accesses, then waits until none overlaps. There are at most as many
 * accesses as threads, so a list is enough and an access costs no allocation.
 *
 * Thread safety: callers hold the table lock. */
#include "access.h"

#include <stddef.h>

#include "table.h"
#include "value_task.h"

static struct access *all;

void access_begin(struct access *access) {
    access->previous = NULL;
    access->next = all;
    if (all)
        all->previous = access;
    all = access;
}

void access_end(struct access *access) {
    if (access->previous)
        access->previous->next = access->next;
    else
        all = access->next;
    if (access->next)
        access->next->previous = access->previous;
    table_wake();
    value_memory_changed();
}

/* Whether two ranges share a byte: one of them starts inside the other. */
static bool overlap(const struct access_side *side, uint64_t addr, uint64_t len) {
    return side->len && len && (side->addr - addr < len || addr - side->addr < side->len);
}

bool access_overlaps(uint64_t addr, uint64_t len) {
    for (const struct access *access = all; access; access = access->next) {
        for (int i = 0; i < 2; i++) {
            if (overlap(&access->sides[i], addr, len))
                return true;
        }
    }
    return false;
}

bool access_uses_device(const struct device *device) {
    for (const struct access *access = all; access; access = access->next) {
        for (int i = 0; i < 2; i++) {
            if (access->sides[i].len && access->sides[i].device == device)
                return true;
        }
    }
    return false;
}
