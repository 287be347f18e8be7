/* Time-outs as callers give them; see timeouts.c. */
#ifndef HOSTACL_TIMEOUTS_H
#define HOSTACL_TIMEOUTS_H

#include <stdint.h>

#include "table.h"

/* The moment a time-out in milliseconds ends, -1 standing for never. Returns a code for one that makes no sense. */
int timeout_read(int32_t timeout_ms, moment *deadline);

#endif
