/* The attribute list of the ...WithCfg calls; see malloc_config.c. */
#ifndef HOSTACL_MALLOC_CONFIG_H
#define HOSTACL_MALLOC_CONFIG_H

#include <stdbool.h>

#include "acl/acl_rt.h"

/* What the list asks for. */
struct malloc_wishes {
    bool on_device; /* a device was named */
    int64_t device; /* its id */
};

/* Reads a list that may be null; returns a code. for_device: VA_FLAG is refused. */
int malloc_config_read(const aclrtMallocConfig *cfg, bool for_device, struct malloc_wishes *wishes);

#endif
