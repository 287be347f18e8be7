/* The table by 2 MiB unit: single units, whole granules, ranges across both, overlaps told, clearing. */
#include "check.h"
#include "unit_table.h"
#include "vspace.h"

enum { GRANULES = 8 };

/* What the table asks the address space for. */
uint64_t vspace_units(void) {
    return GRANULES * GRANULE_UNITS;
}

static struct unit_table table;
static char objects[16];

static void expect(uint64_t first, uint64_t count, const void *object) {
    for (uint64_t unit = first; unit < first + count; unit++) {
        if (!CHECK(unit_table_get(&table, unit) == object))
            return;
    }
}

static void test_empty(void) {
    expect(0, vspace_units(), NULL);
    CHECK(unit_table_empty(&table, 0, vspace_units()));
    unit_table_close(&table);
}

static void test_ranges(void) {
    static const uint64_t cases[][2] = {{0, 1},      {511, 1},  {5, 300},    {500, 24},           {512, 512},
                                        {510, 1028}, {1, 1023}, {1024, 513}, {0, GRANULES * 512}, {4095, 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t first = cases[i][0], count = cases[i][1];
        CHECK(unit_table_set(&table, first, count, &objects[i]));
        expect(0, first, NULL);
        expect(first, count, &objects[i]);
        expect(first + count, vspace_units() - first - count, NULL);
        CHECK(unit_table_empty(&table, 0, first));
        CHECK(!unit_table_empty(&table, first, 1));
        CHECK(!unit_table_empty(&table, first + count - 1, 1));
        CHECK(unit_table_empty(&table, first + count, vspace_units() - first - count));
        CHECK(!unit_table_empty(&table, 0, vspace_units()));
        unit_table_clear(&table, first, count);
        expect(0, vspace_units(), NULL);
    }
    unit_table_close(&table);
}

/* Neighbours do not touch each other, whatever their granules held before. */
static void test_neighbours(void) {
    CHECK(unit_table_set(&table, 100, 412, &objects[0]));
    CHECK(unit_table_set(&table, 512, 512, &objects[1]));
    CHECK(unit_table_set(&table, 1024, 5, &objects[2]));
    expect(100, 412, &objects[0]);
    expect(512, 512, &objects[1]);
    expect(1024, 5, &objects[2]);
    unit_table_clear(&table, 512, 512);
    CHECK(unit_table_set(&table, 600, 10, &objects[3]));
    expect(512, 88, NULL);
    expect(600, 10, &objects[3]);
    unit_table_clear(&table, 600, 10);
    CHECK(unit_table_set(&table, 512, 512, &objects[4]));
    expect(512, 512, &objects[4]);
    unit_table_close(&table);
    expect(0, vspace_units(), NULL);
}

int main(void) {
    test_empty();
    test_ranges();
    test_neighbours();
    return check_done();
}
