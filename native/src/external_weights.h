/* Weights of a model that lie in other files; see external_weights.c. */
#ifndef HOSTACL_EXTERNAL_WEIGHTS_H
#define HOSTACL_EXTERNAL_WEIGHTS_H

struct model_config;
struct model_info;

/* 0 when the external weights of a model are where a load looks for them, else a code. Takes the table lock. */
int external_weights_check(const struct model_config *config, const struct model_info *info);

#endif
