/* Host memory of the caller that was registered for devices; see host_register.c. */
#ifndef HOSTACL_HOST_REGISTER_H
#define HOSTACL_HOST_REGISTER_H

#include <stdbool.h>
#include <stdint.h>

#include "pagetable.h"

struct stack;

/* One registered range. */
struct registration {
    struct range range;   /* host addresses, as the caller gave them */
    uint64_t device_addr; /* address for devices; 0: it was only pinned */
    struct region region; /* device addresses that show the same bytes; empty where there are none of its own */
    struct phys phys;     /* window over the caller's memory */
    struct pages pages;   /* all of it, in one extent */
    uint64_t serial;      /* tells it from other pinned memory at the same place */
    struct stack *stack;  /* the calls that made it */
};

/* How a request to register ends. */
enum register_result { REGISTER_DONE, REGISTER_TWICE, REGISTER_NO_MEMORY, REGISTER_SHORT };

/* Registers bytes (above 0) from a page of host memory; with mapped set it gets a device address too. */
enum register_result host_register(uint64_t addr, uint64_t bytes, bool mapped, bool read_only);

/* The registered range that holds addr and is not being taken back, or null. */
const struct registration *host_register_at(uint64_t addr);

/* Takes back the range that starts at addr; false when there is none. Waits for copies that use its device address. */
bool host_unregister(uint64_t addr);

/* Takes back every range; waits for copies. */
void host_unregister_all(void);

/* The registered range that starts at or above addr, or null; for walks over all of them. */
const struct registration *host_register_from(uint64_t addr);

/* Registered ranges and their bytes. */
uint64_t host_register_count(void);
uint64_t host_register_bytes(void);

#endif
