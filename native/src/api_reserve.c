/* Exported: reserved ranges of device address. They need no device and no context. Thread safety: any thread, any time.
 */
#include "acl/acl.h"
#include "config.h"
#include "entry.h"
#include "errors.h"
#include "reserve.h"
#include "runtime.h"
#include "table.h"

#define FAR_UNIT GIB

static int refuse(enum reserve_result result, void **out, size_t size, void *wished) {
    unsigned long long wish = (unsigned long long)(uintptr_t)wished;
    switch (result) {
    case RESERVE_OUTSIDE:
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_PARAM_INVALID,
                           "wished address 0x%llx is outside of the device range or no multiple of the next power of "
                           "two of %zu bytes (at most 1 GiB)",
                           wish, size);
    case RESERVE_BUSY:
        *out = wished;
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR, "%zu bytes at 0x%llx are not all free", size,
                           wish);
    default:
        *out = NULL;
        return error_raise(ERROR_MEMORY, ACL_ERROR_RT_MEMORY_ALLOCATION,
                           "there is no free range of device addresses for %zu bytes", size);
    }
}

static int reserve(enum vspace_window window, void **out, size_t size, size_t alignment, void *wished, uint64_t flags) {
    if (!out)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "virPtr is null");
    if (!size || flags > 1)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "size is %zu and flags %llu; flags must be 0 or 1",
                           size, (unsigned long long)flags);
    table_lock();
    int code = reserve_need_feature();
    bool unmappable = window == VSPACE_FAR && runtime_config()->unified;
    table_unlock();
    if (code)
        return code;
    if (unmappable)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                           "mode unified has no far addresses: the process can map nothing there");
    if (alignment)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_PARAM_INVALID, "alignment is %zu and must be 0", alignment);
    if (window == VSPACE_FAR && size % FAR_UNIT)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_PARAM_INVALID, "size %zu is no multiple of 1 GiB", size);
    uint64_t start = 0;
    table_lock();
    enum reserve_result result = reservation_make(window, size, (uint64_t)(uintptr_t)wished, &start);
    table_unlock();
    if (result != RESERVE_DONE)
        return refuse(result, out, size, wished);
    *out = (void *)(uintptr_t)start;
    return ACL_SUCCESS;
}

aclError aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment, void *expectPtr, uint64_t flags) {
    ENTER(aclrtReserveMemAddress, virPtr, size, alignment, expectPtr, flags);
    return reserve(VSPACE_DEVICE, virPtr, size, alignment, expectPtr, flags);
}

aclError aclrtReserveMemAddressNoUCMemory(void **virPtr, size_t size, size_t alignment, void *expectPtr,
                                          uint64_t flags) {
    ENTER(aclrtReserveMemAddressNoUCMemory, virPtr, size, alignment, expectPtr, flags);
    return reserve(VSPACE_FAR, virPtr, size, alignment, expectPtr, flags);
}

/* Everything after the null check. */
static int release(uint64_t addr) {
    struct reservation *reservation = reservation_at(addr);
    int code = reserve_need_feature();
    if (code)
        return code;
    if (!reservation || reservation->start != addr)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_PARAM_INVALID, "0x%llx is not the start of a reserved range",
                           (unsigned long long)addr);
    if (reservation->maps)
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR,
                           "%llu mappings are left in the range at 0x%llx; unmap them first",
                           (unsigned long long)reservation->maps, (unsigned long long)addr);
    reservation_end(reservation);
    return ACL_SUCCESS;
}

aclError aclrtReleaseMemAddress(void *virPtr) {
    ENTER(aclrtReleaseMemAddress, virPtr);
    if (!virPtr)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "virPtr is null");
    table_lock();
    int code = release((uint64_t)(uintptr_t)virPtr);
    table_unlock();
    return code;
}
