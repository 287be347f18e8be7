/* Model definitions; see om_definition.c. */
#ifndef HOSTACL_OM_DEFINITION_H
#define HOSTACL_OM_DEFINITION_H

#include "model_info.h"
#include "om_attr.h"

/* One definition while it is read. */
struct definition {
    struct bytes bytes;            /* the message; has passed om_schema.c */
    struct attr_table table;       /* compressed names of its own */
    const struct attr_table *root; /* those of the first model of the file; null for that one */
};

/* Adds to info what the graphs of a definition say: external weights and, of the first model of a file, inputs, outputs
 * and work memory. Returns a code. */
int om_definition_read(const struct definition *definition, struct model_info *info);

#endif
