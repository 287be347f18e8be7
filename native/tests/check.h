/* Checks for the C tests: count, print file and line of a failure, go on. */
#ifndef HOSTACL_TESTS_CHECK_H
#define HOSTACL_TESTS_CHECK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "hostacl.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

static atomic_int check_count;
static atomic_int check_failures;

/* One check: the condition holds. */
#define CHECK(condition) check_true((condition), #condition, __FILE__, __LINE__)

/* Two integers are equal. */
#define CHECK_EQ(got, wanted) check_equal((uint64_t)(got), (uint64_t)(wanted), #got, __FILE__, __LINE__)

/* A call succeeds. */
#define OK(call) CHECK_EQ(call, ACL_SUCCESS)

__attribute__((unused)) static bool check_true(bool good, const char *text, const char *file, int line) {
    atomic_fetch_add(&check_count, 1);
    if (!good) {
        atomic_fetch_add(&check_failures, 1);
        printf("%s:%d: %s is false\n", file, line, text);
    }
    return good;
}

__attribute__((unused)) static bool check_equal(uint64_t got, uint64_t wanted, const char *text, const char *file,
                                                int line) {
    atomic_fetch_add(&check_count, 1);
    if (got != wanted) {
        atomic_fetch_add(&check_failures, 1);
        printf("%s:%d: %s is %lld (0x%llx), wanted %lld (0x%llx)\n", file, line, text, (long long)got,
               (unsigned long long)got, (long long)wanted, (unsigned long long)wanted);
    }
    return got == wanted;
}

/* Last statement of main: prints the count; a test without checks fails. */
__attribute__((unused)) static int check_done(void) {
    printf("%d checks, %d failures\n", check_count, check_failures);
    return check_count == 0 || check_failures > 0;
}

/* Back to the start, then the options given as key, value, ..., null. */
__attribute__((unused)) static void start(const char *key, ...) {
    __builtin_va_list args;
    OK(hostacl_reset());
    __builtin_va_start(args, key);
    for (; key; key = __builtin_va_arg(args, const char *)) {
        const char *value = __builtin_va_arg(args, const char *);
        if (!CHECK_EQ(hostacl_configure(key, value), 0))
            printf("    %s\n", hostacl_error());
    }
    __builtin_va_end(args);
}

/* Nothing is alive, on no device a page is taken. */
__attribute__((unused)) static void check_nothing_alive(void) {
    hostacl_live_t live;
    OK(hostacl_live(&live));
    CHECK_EQ(live.blocks, 0);
    CHECK_EQ(live.bytes, 0);
    CHECK_EQ(live.host_blocks, 0);
    CHECK_EQ(live.contexts, 0);
    CHECK_EQ(live.devices_set, 0);
    CHECK_EQ(live.reservations, 0);
    CHECK_EQ(live.reserved_bytes, 0);
    CHECK_EQ(live.handles, 0);
    CHECK_EQ(live.handle_bytes, 0);
    CHECK_EQ(live.mappings, 0);
    CHECK_EQ(live.exports, 0);
    CHECK_EQ(live.imports, 0);
    CHECK_EQ(live.managed, 0);
    CHECK_EQ(live.managed_bytes, 0);
    CHECK_EQ(live.allocators, 0);
    CHECK_EQ(live.mem_pools, 0);
    CHECK_EQ(live.registered, 0);
    CHECK_EQ(live.registered_bytes, 0);
    CHECK_EQ(live.streams, 0);
    CHECK_EQ(live.tasks, 0);
    CHECK_EQ(live.events, 0);
    CHECK_EQ(live.notifies, 0);
    CHECK_EQ(live.models, 0);
    CHECK_EQ(live.model_configs, 0);
    CHECK_EQ(live.model_descs, 0);
    for (uint32_t id = 0; id < live.device_count; id++) {
        CHECK_EQ(live.devices[id].pages_4k_used, 0);
        CHECK_EQ(live.devices[id].pages_2m_used, 0);
        CHECK_EQ(live.devices[id].pages_1g_used, 0);
        CHECK_EQ(live.devices[id].committed_bytes, 0);
    }
}

/* Free bytes of an attribute on the current device. */
__attribute__((unused)) static uint64_t free_bytes(aclrtMemAttr attr) {
    size_t free_now = 0;
    size_t total = 0;
    OK(aclrtGetMemInfo(attr, &free_now, &total));
    return free_now;
}

/* An address k bytes behind another. */
__attribute__((unused)) static void *plus(const void *ptr, uint64_t k) {
    return (void *)((uintptr_t)ptr + k);
}

#endif
