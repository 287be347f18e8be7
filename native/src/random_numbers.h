/* Random numbers for device memory; see random_numbers.c. */
#ifndef HOSTACL_RANDOM_NUMBERS_H
#define HOSTACL_RANDOM_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acl/acl_rt.h"

/* What to draw. */
struct random_plan {
    aclrtRandomNumFuncType function; /* distribution */
    aclDataType type;                /* of the numbers; of the ratio where bits are drawn */
    double first;                    /* ratio, minimum or mean */
    double second;                   /* maximum or deviation */
    uint64_t whole_first;            /* minimum of whole numbers, as bits */
    uint64_t whole_span;             /* maximum less minimum of whole numbers */
    uint64_t seed;                   /* numbers of one seed and position are the same */
    uint64_t position;               /* of the first number */
};

/* Whether numbers of the type can be drawn. */
bool random_can(aclrtRandomNumFuncType function, aclDataType type);

/* Bytes of a number of a type that can be drawn. */
size_t random_number_bytes(aclDataType type);

/* Bytes of count numbers, or bits. */
uint64_t random_bytes(const struct random_plan *plan, uint64_t count);

/* Reads a number of the type, of at most 8 bytes, as a parameter. */
double random_read(aclDataType type, uint64_t bits);

/* Writes count numbers from index on; bits from an index that is a multiple of 8. */
void random_write(const struct random_plan *plan, uint64_t index, uint64_t count, void *to);

#endif
