/* Reserved ranges of device address; see reserve.c. */
#ifndef HOSTACL_RESERVE_H
#define HOSTACL_RESERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "vspace.h"

struct device;
struct stack;

struct reservation {
    uint64_t start;               /* first address */
    uint64_t len;                 /* bytes, whole units of 2 MiB */
    uint64_t maps;                /* mappings inside */
    const struct device *device;  /* owner of the memory that was mapped first, for the life of the range; or null */
    struct reservation *next;     /* list of all */
    struct reservation *previous; /* list of all */
    struct stack *stack;          /* the calls that made it */
};

/* How a request for addresses ends. */
enum reserve_result { RESERVE_DONE, RESERVE_SHORT, RESERVE_BUSY, RESERVE_OUTSIDE };

/* Reserves len bytes (above 0) in a window, at wished when that is not 0. The address goes to *start. */
enum reserve_result reservation_make(enum vspace_window window, uint64_t len, uint64_t wished, uint64_t *start);

/* 0, or with the refusal recorded the code of a driver without reserved ranges. */
int reserve_need_feature(void);

/* The reservation that holds addr, or null. */
struct reservation *reservation_at(uint64_t addr);

/* Gives an empty reservation back. */
void reservation_end(struct reservation *reservation);

/* Reserved ranges and their bytes. */
uint64_t reservations_count(void);
uint64_t reservations_bytes(void);

/* First of the list of all, or null. */
const struct reservation *reservations_first(void);

/* Forgets all ranges; none holds a mapping. */
void reservations_drop_all(void);

#endif
