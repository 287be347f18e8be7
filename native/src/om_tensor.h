/* Descriptions of tensors in a model; see om_tensor.c. */
#ifndef HOSTACL_OM_TENSOR_H
#define HOSTACL_OM_TENSOR_H

#include "om_attr.h"

/* A description, read from the message. */
struct om_tensor {
    int32_t type;        /* aclDataType */
    unsigned bits;       /* of an element; 0: not fixed */
    int32_t format;      /* aclFormat */
    int64_t stored_size; /* bytes that the model says */
    struct wire shape;   /* its message */
};

/* Reads a description; tables are those of the model. */
struct om_tensor om_tensor_read(const struct attrs *description);

/* The dimensions, as many as there are; the first ones go to dims. */
size_t om_tensor_dims(const struct om_tensor *tensor, int64_t *dims, size_t room);

/* Bytes of the elements; 0 where they are not fixed or more than 63 bits can count. */
uint64_t om_tensor_bytes(const struct om_tensor *tensor);

#endif
