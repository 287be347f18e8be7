/* Managed memory: one address that the host touches and that copies reach, in a range of its own. */
#include <setjmp.h>
#include <signal.h>

#include "virtual_memory.h"

#define TIB ((uint64_t)1 << 40)

static sigjmp_buf out;

static void on_fault(int number) {
    siglongjmp(out, number);
}

static bool faults(const void *at) {
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_NODEFER}, old;
    sigaction(SIGSEGV, &action, &old);
    volatile bool faulted = true;
    if (!sigsetjmp(out, 1)) {
        (void)*(const volatile char *)at;
        faulted = false;
    }
    sigaction(SIGSEGV, &old, NULL);
    return faulted;
}

static void test_arguments(void) {
    void *at = UNTOUCHED;
    start(NULL);
    CHECK_EQ(aclrtMemAllocManaged(NULL, PAGE, 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemAllocManaged(&at, 0, 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemAllocManaged(&at, PAGE, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemAllocManaged(&at, PAGE, 2), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemAllocManaged(&at, PAGE, 1), ACL_ERROR_RT_CONTEXT_NULL);
    OK(aclrtSetDevice(0));
    CHECK_EQ(aclrtMemAllocManaged(&at, 100 * TIB, 1), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK_EQ(aclrtMemAllocManaged(&at, UINT64_MAX, 1), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK(at == UNTOUCHED);
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

static void test_use(void) {
    aclrtPtrAttributes shown;
    void *at = NULL, *other = NULL, *block = NULL, *base = NULL;
    size_t size = 0;
    start("mode", "isolated", NULL);
    OK(aclrtSetDevice(0));
    uint64_t before = free_bytes(ACL_HBM_MEM);
    OK(aclrtMemAllocManaged(&at, 3 * MIB, ACL_RT_MEM_ATTACH_GLOBAL));
    OK(aclrtMemAllocManaged(&other, 1, ACL_RT_MEM_ATTACH_GLOBAL));
    CHECK_EQ(free_bytes(ACL_HBM_MEM), before);
    CHECK_EQ((uintptr_t)at % PAGE, 0);
    CHECK((uintptr_t)other - (uintptr_t)at >= 2 * PAGE || (uintptr_t)at - (uintptr_t)other >= PAGE);
    CHECK_EQ(live_now().managed, 2);
    CHECK_EQ(live_now().managed_bytes, 3 * PAGE);
    volatile uint8_t *bytes = at;
    CHECK_EQ(bytes[3 * MIB - 1], 0);
    bytes[5] = 11;
    CHECK_EQ(peek(plus(at, 5)), 11);
    OK(poke(plus(at, 4 * MIB - 1), 12));
    CHECK_EQ(bytes[4 * MIB - 1], 12);
    OK(aclrtSetDevice(1));
    OK(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemcpy(block, 64, at, 64, ACL_MEMCPY_DEFAULT));
    CHECK_EQ(peek(plus(block, 5)), 11);
    OK(aclrtMemset(at, 4 * MIB, 7, 4 * MIB));
    CHECK_EQ(bytes[5], 7);
    OK(aclrtPointerGetAttributes(plus(at, 9), &shown));
    CHECK_EQ(shown.location.type, ACL_MEM_LOCATION_TYPE_MANAGED);
    OK(aclrtMemGetAddressRange(plus(at, 9), &base, &size));
    CHECK(base == at && size == 2 * PAGE);
    CHECK_EQ(aclrtFree(plus(at, PAGE)), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtFreeHost(at), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtResetDevice(1));
    OK(aclrtResetDevice(0));
    CHECK_EQ(bytes[5], 7);
    CHECK_EQ(hostacl_configure("devices", "1"), ACL_ERROR_RELATIVE_RESOURCE_NOT_CLEARED);
    OK(aclrtFree(at));
    CHECK(faults(at) && faults(plus(at, 4 * MIB - 1)));
    CHECK_EQ(aclrtFree(at), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtFree(other));
    check_nothing_alive();
    OK(hostacl_configure("devices", "1"));
}

/* The card's range, where the process has it free. */
static void test_range(void) {
    void *at = NULL;
    char info[4000];
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMemAllocManaged(&at, PAGE, ACL_RT_MEM_ATTACH_GLOBAL));
    hostacl_info(info, sizeof(info));
    if (strstr(info, "the range of the card\n"))
        CHECK((uintptr_t)at >= 9 * TIB && (uintptr_t)at < 12 * TIB);
    OK(hostacl_reset());
    CHECK_EQ(aclrtFree(at), ACL_ERROR_RT_PARAM_INVALID);
    check_nothing_alive();
}

int main(void) {
    test_arguments();
    test_use();
    test_range();
    start(NULL);
    check_nothing_alive();
    return check_done();
}
