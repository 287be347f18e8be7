/* Configurations and descriptions that a program holds; see api_model_config.c and api_model_desc.c. */
#ifndef HOSTACL_MODEL_HANDLES_H
#define HOSTACL_MODEL_HANDLES_H

#include <stdint.h>

#include "acl/acl_mdl.h"

struct model_config;

/* Copies what is behind a handle. Returns a code. Takes the table lock. */
int model_config_of_handle(const aclmdlConfigHandle *handle, struct model_config *copy);

/* How many there are. The table lock is held, here and below. */
uint64_t model_configs_count(void);
uint64_t model_descs_count(void);

/* Ends all of them. */
void model_configs_drop_all(void);
void model_descs_drop_all(void);

#endif
