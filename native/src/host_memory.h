/* Physical memory of the host side; see host_memory.c. */
#ifndef HOSTACL_HOST_MEMORY_H
#define HOSTACL_HOST_MEMORY_H

#include <stdbool.h>

struct device;

/* What stands for the host where memory has an owner: a device with the number 0 that is in no list of devices. */
struct device *host_memory(void);

/* Opens its pools if they are not open; false when the host refuses. */
bool host_memory_open(void);

/* Gives the pools back when nobody holds anything of them. */
void host_memory_close_if_idle(void);

#endif
