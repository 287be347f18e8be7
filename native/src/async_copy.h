/* Copies and sets as tasks of a stream; see async_copy.c. */
#ifndef HOSTACL_ASYNC_COPY_H
#define HOSTACL_ASYNC_COPY_H

#include <stdbool.h>

#include "acl/acl_rt.h"
#include "copy.h"
#include "entry.h"

struct stream;

/* How a copy is to be done. */
struct copy_route {
    bool at_once;  /* unregistered host memory takes part: the call returns when the copy is done */
    bool buffered; /* the source is copied into a buffer first */
};

/* Whether the addresses allow that kind; fills in the pinned blocks of the copy. Returns a code. The table lock is
 * held. */
int async_copy_plan(struct copy *copy, aclrtMemcpyKind kind, struct copy_route *route);

/* Puts a copy into a stream; *buffer, which may be null, is the source then and is freed with the task in any case.
 * Returns a code. The table lock is held. */
int async_copy_submit(struct stream *stream, const struct copy *copy, void *buffer, enum function_id function);

/* The whole of an asynchronous copy after the checks of its entry. Returns a code. Takes the table lock. */
int async_copy(struct copy *copy, aclrtMemcpyKind kind, const void *stream, enum function_id function);

/* The whole of an asynchronous set; acl_only: unregistered host memory is refused. Returns a code. Takes the lock. */
int async_fill(const struct fill *fill, bool acl_only, const void *stream, enum function_id function);

#endif
