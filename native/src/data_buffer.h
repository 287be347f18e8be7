/* Data buffers: an address and a size under one handle; see data_buffer.c. */
#ifndef HOSTACL_DATA_BUFFER_H
#define HOSTACL_DATA_BUFFER_H

#include <stddef.h>
#include <stdint.h>

struct data_buffer {
    void *data;  /* memory of the caller, of any kind; may be null */
    size_t size; /* bytes */
};

/* The next live buffer in the table after *position, and its handle; null at the end. *position starts at 0. */
const struct data_buffer *data_buffers_next(size_t *position, void **handle);

/* Live buffers. */
uint64_t data_buffers_count(void);

/* Ends all of them. */
void data_buffers_drop_all(void);

#endif
