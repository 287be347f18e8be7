/* Exported: managed memory. It is freed by aclrtFree. Thread safety: any thread, any time. */
#include "acl/acl.h"
#include "context.h"
#include "entry.h"
#include "errors.h"
#include "faults.h"
#include "managed.h"
#include "poison.h"
#include "table.h"

/* Everything after the checks of the entry layer. */
static int malloc_managed(void **ptr, uint64_t size) {
    uint64_t addr;
    if (!context_need())
        return ACL_ERROR_RT_CONTEXT_NULL;
    int fault = fault_of_allocation(size);
    if (fault)
        return fault;
    if (!managed_malloc(size, &addr))
        return error_raise(ERROR_MEMORY, ACL_ERROR_RT_MEMORY_ALLOCATION,
                           "there are no addresses or no host memory for %llu bytes of managed memory",
                           (unsigned long long)size);
    *ptr = (void *)(uintptr_t)addr;
    return ACL_SUCCESS;
}

aclError aclrtMemAllocManaged(void **ptr, uint64_t size, uint32_t flag) {
    ENTER(aclrtMemAllocManaged, ptr, size, flag);
    if (!ptr)
        return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "ptr is null");
    if (!size || flag != ACL_RT_MEM_ATTACH_GLOBAL)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "size is %llu, flag is %u and must be 1",
                           (unsigned long long)size, flag);
    table_lock();
    int code = malloc_managed(ptr, size);
    table_unlock();
    if (!code)
        poison_new_bytes((uint64_t)(uintptr_t)*ptr, size);
    return code;
}
