/* Time-outs of the waiting calls. The entry refuses what is below -1, the runtime refuses 0; the code is the same. */
#include "timeouts.h"

#include "acl/acl_base.h"
#include "errors.h"

int timeout_read(int32_t timeout_ms, moment *deadline) {
    *deadline = timeout_ms < 0 ? NEVER : table_after_ms((uint64_t)timeout_ms);
    if (timeout_ms > 0 || timeout_ms == -1)
        return ACL_SUCCESS;
    return error_raise(timeout_ms ? ERROR_VALUE : ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID,
                       "timeout %d is neither -1 nor a number of milliseconds above 0", timeout_ms);
}
