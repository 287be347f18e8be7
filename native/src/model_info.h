/* What is known of a model: memory it needs, inputs and outputs, external weights; see model_info.c. */
#ifndef HOSTACL_MODEL_INFO_H
#define HOSTACL_MODEL_INFO_H

#include "om_file.h"
#include "om_tensor.h"

/* An input or output. */
struct tensor_info {
    char *name;       /* text of UTF-8 */
    uint64_t size;    /* bytes */
    int32_t format;   /* aclFormat */
    int32_t type;     /* aclDataType */
    size_t dim_count; /* of the shape */
    int64_t *dims;    /* negative: not fixed; none of more than ACL_MAX_DIM_CNT */
    int64_t index;    /* of an input, as the model says */
    size_t order;     /* among those found */
};

/* Weights in another file. */
struct external_need {
    char *file;     /* as the model names it, with any folders */
    uint64_t bytes; /* from the start of the file up to the end of what is needed */
    bool moves;     /* the file is looked for in the folder of weights, whatever folder the model names */
};

struct model_info {
    unsigned users;                  /* loaded model and descriptions that show it; at 0 it goes */
    bool dynamic;                    /* of unknown shapes, or of several models */
    uint64_t work_size;              /* bytes of work memory; 0 for a dynamic file */
    uint64_t weight_size;            /* bytes of weights of all models of the file */
    size_t counts[2];                /* of inputs and outputs */
    struct tensor_info *tensors[2];  /* them */
    size_t external_count;           /* of pieces */
    struct external_need *externals; /* pieces of weights that lie elsewhere */
};

enum { MODEL_INPUTS, MODEL_OUTPUTS };

/* Reads the definitions of all models of a file. *info has one user then. Returns a code. */
int model_info_read(const struct om_file *file, struct model_info **info);

/* Add what a definition says. They return a code. */
int model_info_add_tensor(struct model_info *info, int side, struct bytes name, const struct om_tensor *tensor,
                          const struct tensor_info *more);
int model_info_add_external(struct model_info *info, struct bytes file, const struct external_need *need);

/* Adds a user, and takes one away. The table lock is held. */
void model_info_hold(struct model_info *info);
void model_info_release(struct model_info *info);

#endif
