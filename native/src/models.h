/* Loaded models; see models.c. */
#ifndef HOSTACL_MODELS_H
#define HOSTACL_MODELS_H

#include <stdint.h>

struct device;
struct model_config;
struct model_info;

/* A loaded model. */
struct model {
    struct model *next;      /* list of all models, latest first */
    uint32_t id;             /* number that the program has; never used twice */
    struct device *device;   /* where it is */
    struct model_info *info; /* what it needs and shows */
    uint64_t own[2];         /* blocks that the library allocated: work memory and weights; 0: none */
};

/* Loads as a configuration says that belongs to the caller, and passed model_config_check; the number goes to *id.
 * Returns a code; after a refusal nothing is left. Takes the table lock. */
int model_load(const struct model_config *config, uint32_t *id);

/* Gives a model up. Returns a code. Takes the table lock. */
int model_unload(uint32_t id);

/* The model with that number, or null. The table lock is held, here and below. */
struct model *model_find(uint32_t id);

/* All models, the latest first; and how many. */
const struct model *models_first(void);
uint64_t models_count(void);

/* Forgets the models of a device that is torn down; its memory goes with it. */
void models_drop_device(const struct device *device);

#endif
