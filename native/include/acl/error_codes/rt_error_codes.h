/* The error codes of the runtime under the name that some programs include; they are all in the base. */
#ifndef GEVAR_ACL_ERROR_CODES_RT_ERROR_CODES_H
#define GEVAR_ACL_ERROR_CODES_RT_ERROR_CODES_H

#include "../acl_base.h"

#endif
