/* Variables of devices; see symbols.c. */
#ifndef HOSTACL_SYMBOLS_H
#define HOSTACL_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

struct device;

/* Makes a symbol a variable of bytes on every device; 0 bytes take it away. False when it is known with another size,
 * is not known, or the host is out of memory. */
bool symbol_define(const void *symbol, uint64_t bytes);

/* Bytes of a variable; 0 when the symbol is not known. */
uint64_t symbol_bytes(const void *symbol);

/* Where a known variable is on an open device, made with zeros if need be; 0 when memory is short. May give the table
 * lock up. */
uint64_t symbol_place(const void *symbol, struct device *device);

/* Forgets the variables of a device that is torn down. */
void symbols_drop_device(const struct device *device);

/* Forgets all symbols; no device is open. */
void symbols_drop_all(void);

#endif
