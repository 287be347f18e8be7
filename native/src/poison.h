/* Filling of new and freed memory, for tests; see poison.c. */
#ifndef HOSTACL_POISON_H
#define HOSTACL_POISON_H

#include <stdint.h>

struct config;
struct device;
struct pages;

/* Takes the options poison and poison_free over. */
void poison_apply(const struct config *config);

/* Fills new memory that callers can address. The table lock is not held. */
void poison_new_bytes(uint64_t addr, uint64_t len);

/* Fills new pages of a device that have no address yet. Gives the table lock up; the device stays open meanwhile. */
void poison_new_pages(struct device *device, const struct pages *pages);

/* Fills device memory that is being freed and goes on answering. Gives the table lock up; the device stays open
 * meanwhile. */
void poison_freed_bytes(struct device *device, uint64_t addr, uint64_t len);

#endif
