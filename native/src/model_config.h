/* What a load of a model is told; see model_config.c. */
#ifndef HOSTACL_MODEL_CONFIG_H
#define HOSTACL_MODEL_CONFIG_H

#include <stdbool.h>

#include "acl/acl_mdl.h"

#define MODEL_OPTIONS (ACL_NPU_PERF_MODE + 1)

/* Device memory that holds what a file of weights holds. */
struct external_weight {
    char *file;    /* name without folders */
    uint64_t addr; /* first byte */
    uint64_t size; /* bytes */
};

struct model_config {
    bool given[MODEL_OPTIONS];         /* options that were set */
    uint64_t values[MODEL_OPTIONS];    /* numbers and pointers */
    char *paths[MODEL_OPTIONS];        /* texts */
    size_t external_count;             /* of blocks */
    struct external_weight *externals; /* them */
};

/* Sets one option; nothing changes when it is refused. Returns a code. */
int model_config_set(struct model_config *config, aclmdlConfigAttr attr, const void *value, size_t size);

/* Names a block of external weights, in place of one of that name. Returns a code. */
int model_config_add_external(struct model_config *config, const char *file, void *ptr, size_t size);

/* The block for a file, by its name without folders; null when none was named. */
const struct external_weight *model_config_external(const struct model_config *config, const char *file);

/* 0 when everything is there that the way of loading needs, else a code. */
int model_config_check(const struct model_config *config);

/* Whether the model lies in a file. */
bool model_config_from_file(const struct model_config *config);

/* Makes a copy that belongs to the caller; false when the host has no memory. */
bool model_config_copy(const struct model_config *config, struct model_config *copy);

/* Frees what it holds. */
void model_config_clear(struct model_config *config);

/* The last part of a path. */
const char *file_name_of(const char *path);

#endif
