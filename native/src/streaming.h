/* Copies to device memory that pass the caches; see streaming.c. */
#ifndef HOSTACL_STREAMING_H
#define HOSTACL_STREAMING_H

#include <stddef.h>

/* Copies like memcpy. */
void streaming_copy(char *to, const char *from, size_t len);

#endif
