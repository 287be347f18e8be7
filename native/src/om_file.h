/* Header and partition tables of a model file; see om_file.c. */
#ifndef HOSTACL_OM_FILE_H
#define HOSTACL_OM_FILE_H

#include <stdbool.h>

#include "om_source.h"

/* Kinds of parts that are read here, by their numbers in the table. */
enum { OM_DEFINITION, OM_WEIGHTS, OM_TASKS, OM_PARTITIONS };

/* A part of the file. */
struct om_partition {
    uint64_t offset; /* from the start of the file; 0: there is none */
    uint64_t size;   /* bytes */
};

/* One model of a file. */
struct om_entry {
    uint32_t partitions;                      /* how many the table has */
    struct om_partition parts[OM_PARTITIONS]; /* the first of each kind */
};

struct om_file {
    struct om_source source;
    struct om_entry *models; /* the root first */
    size_t count;            /* of the models, above 0 */
    bool dynamic;            /* several models, or one of unknown shapes */
    uint64_t left;           /* bytes behind the last model */
};

/* Reads header and tables of a model; the file has the source from then on. Returns a code. */
int om_file_read(struct om_file *file, const struct om_source *source);

/* Opens a model in a file, where path is not null, else in memory, and reads header and tables. Returns a code. */
int om_file_open(struct om_file *file, const char *path, const void *model, size_t size);

void om_file_close(struct om_file *file);

/* Bytes of weights of all models together. */
uint64_t om_file_weight_size(const struct om_file *file);

#endif
