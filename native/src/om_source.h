/* The bytes of a model, in a file or in memory of the caller; see om_source.c. */
#ifndef HOSTACL_OM_SOURCE_H
#define HOSTACL_OM_SOURCE_H

#include <stdbool.h>

#include "wire.h"

struct om_source {
    int fd;                /* file; -1: in memory */
    const uint8_t *memory; /* of the caller; null for a file */
    uint64_t size;         /* bytes */
};

/* A part of a model, in memory. */
struct om_piece {
    struct bytes bytes; /* what was asked for */
    void *owned;        /* what om_piece_end frees; null: memory of the caller */
};

/* Opens a file, or takes memory as it is. They return a code; with a refused one there is nothing to close. */
int om_source_open(struct om_source *source, const char *path);
int om_source_of_memory(struct om_source *source, const void *model, size_t size);
void om_source_close(struct om_source *source);

/* Copies bytes that lie inside the size; false when the file became shorter or cannot be read. */
bool om_source_read(const struct om_source *source, uint64_t offset, void *to, size_t size);

/* Brings a part that lies inside the size into memory; false as before, or when the host has no memory. */
bool om_source_take(const struct om_source *source, uint64_t offset, uint64_t size, struct om_piece *piece);
void om_piece_end(struct om_piece *piece);

#endif
