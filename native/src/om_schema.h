/* What the messages of a model must look like; see om_schema.c. */
#ifndef HOSTACL_OM_SCHEMA_H
#define HOSTACL_OM_SCHEMA_H

#include <stdbool.h>

#include "wire.h"

/* Whether the bytes are a model definition (ge.proto.ModelDef). */
bool om_schema_is_model(struct bytes bytes);

/* Whether the bytes are a list of tasks (domi.ModelTaskDef). */
bool om_schema_is_task_list(struct bytes bytes);

#endif
