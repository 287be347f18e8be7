/* Sparse table over units of device address, in two levels as a page table has them: one entry per GiB, and under it,
 * where something smaller was ever entered, one per 2 MiB. A range that covers a whole GiB is one entry, so 1 TiB takes
 * 1024 steps and a 2 MiB page takes one; a look-up is two loads however many entries there are. Second levels stay
 * until the table is closed.
 *
 * Thread safety: none of its own; callers hold the table lock. */
#include "unit_table.h"

#include <stdlib.h>

#include "vspace.h"

/* The place of one unit, or of its whole granule; null when memory for it is short. */
static void **place(struct unit_table *table, uint64_t unit, bool whole) {
    if (!table->granules)
        table->granules = calloc(vspace_units() / GRANULE_UNITS, sizeof(struct granule));
    if (!table->granules)
        return NULL;
    struct granule *granule = &table->granules[unit / GRANULE_UNITS];
    if (whole)
        return &granule->whole;
    if (!granule->units)
        granule->units = calloc(GRANULE_UNITS, sizeof(void *));
    return granule->units ? &granule->units[unit % GRANULE_UNITS] : NULL;
}

/* Writes an entry over a range; returns the units done, fewer than count when memory is short. */
static uint64_t fill(struct unit_table *table, uint64_t first, uint64_t count, void *object) {
    uint64_t done = 0;
    while (done < count) {
        uint64_t unit = first + done;
        bool whole = unit % GRANULE_UNITS == 0 && count - done >= GRANULE_UNITS;
        void **entry = place(table, unit, whole);
        if (!entry)
            break;
        *entry = object;
        done += whole ? GRANULE_UNITS : 1;
    }
    return done;
}

bool unit_table_set(struct unit_table *table, uint64_t first, uint64_t count, void *object) {
    uint64_t done = fill(table, first, count, object);
    if (done < count)
        fill(table, first, done, NULL);
    return done == count;
}

void unit_table_clear(struct unit_table *table, uint64_t first, uint64_t count) {
    fill(table, first, count, NULL);
}

void *unit_table_get(const struct unit_table *table, uint64_t unit) {
    const struct granule *granule = table->granules ? &table->granules[unit / GRANULE_UNITS] : NULL;
    if (!granule)
        return NULL;
    if (granule->whole)
        return granule->whole;
    return granule->units ? granule->units[unit % GRANULE_UNITS] : NULL;
}

bool unit_table_empty(const struct unit_table *table, uint64_t first, uint64_t count) {
    uint64_t unit = first;
    while (table->granules && unit < first + count) {
        const struct granule *granule = &table->granules[unit / GRANULE_UNITS];
        if (granule->whole || (granule->units && granule->units[unit % GRANULE_UNITS]))
            return false;
        unit = granule->units ? unit + 1 : (unit / GRANULE_UNITS + 1) * GRANULE_UNITS;
    }
    return true;
}

void unit_table_close(struct unit_table *table) {
    for (uint64_t i = 0; table->granules && i < vspace_units() / GRANULE_UNITS; i++)
        free(table->granules[i].units);
    free(table->granules);
    table->granules = NULL;
}
