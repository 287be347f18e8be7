/* The one header a program includes: base, runtime and model part of the ACL interface. */
#ifndef GEVAR_ACL_ACL_H
#define GEVAR_ACL_ACL_H

#include "acl_base.h"
#include "acl_mdl.h"
#include "acl_rt.h"

#endif
