/* The base of the ACL interface under the name that programs of the runtime alone include. */
#ifndef GEVAR_ACL_ACL_BASE_RT_H
#define GEVAR_ACL_ACL_BASE_RT_H

#include "acl_base.h"

#endif
