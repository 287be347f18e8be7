/* Combining numbers of two ranges; see reduce.c. */
#ifndef HOSTACL_REDUCE_H
#define HOSTACL_REDUCE_H

#include <stddef.h>

#include "acl/acl_rt.h"
#include "copy.h"

/* What combines numbers of the type; null when there is nothing for that. *bytes is the size of one number. */
combine_fn *reduce_find(aclrtReduceKind kind, aclDataType type, size_t *bytes);

#endif
