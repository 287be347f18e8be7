/* Functions a program is told of made and ending streams by; see stream_state.c. */
#ifndef HOSTACL_STREAM_STATE_H
#define HOSTACL_STREAM_STATE_H

#include "acl/acl_rt.h"

/* Calls every registered function. The table lock is not held. */
void stream_state_tell(aclrtStream stream, aclrtStreamState state);

/* No function is registered. The table lock is held. */
void stream_state_reset(void);

#endif
