/* Sparse table over the 2 MiB units of the device addresses; see unit_table.c. */
#ifndef HOSTACL_UNIT_TABLE_H
#define HOSTACL_UNIT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of a unit and units of a granule. */
#define UNIT_BYTES ((uint64_t)2 << 20)
#define GRANULE_UNITS ((uint64_t)512)

struct granule {
    void *whole;  /* entry of all its units, or null */
    void **units; /* entries of single units; null when it never had any */
};

struct unit_table {
    struct granule *granules; /* one per GiB of address; null until the first entry */
};

/* Enters an object for count units from first, which have no entry. False when the host is out of memory; then nothing
 * is entered. */
bool unit_table_set(struct unit_table *table, uint64_t first, uint64_t count, void *object);

/* Takes the entries out again. */
void unit_table_clear(struct unit_table *table, uint64_t first, uint64_t count);

/* The object entered for a unit, or null. */
void *unit_table_get(const struct unit_table *table, uint64_t unit);

/* Whether none of count units from first has an entry. */
bool unit_table_empty(const struct unit_table *table, uint64_t first, uint64_t count);

/* Forgets everything and gives the memory back. */
void unit_table_close(struct unit_table *table);

#endif
