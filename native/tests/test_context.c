/* Contexts: explicit and default ones, life and death. */
#include <pthread.h>

#include "check.h"

static void test_switching(void) {
    aclrtContext initial = NULL, second = NULL, current = NULL;
    int32_t device = -1;
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtGetCurrentContext(&initial));
    OK(aclrtCreateContext(&second, 1));
    CHECK(second && second != initial);
    OK(aclrtGetCurrentContext(&current));
    CHECK(current == second);
    OK(aclrtGetDevice(&device));
    CHECK_EQ(device, 1);
    OK(aclrtSetCurrentContext(initial));
    OK(aclrtGetDevice(&device));
    CHECK_EQ(device, 0);
    OK(aclrtSetDevice(0));
    OK(aclrtGetCurrentContext(&current));
    CHECK(current == initial);
    OK(aclrtDestroyContext(second));
    OK(aclrtGetCurrentContext(&current));
    CHECK(current == initial);
}

static void test_refusals(void) {
    aclrtContext context = &context, initial = NULL, made = NULL;
    char garbage[64] = "no context";
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtGetCurrentContext(&initial));
    CHECK_EQ(aclrtCreateContext(NULL, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtCreateContext(&context, 2), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtCreateContext(&context, -1), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK(context == &context);
    CHECK_EQ(aclrtSetCurrentContext(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtDestroyContext(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetCurrentContext(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtSetCurrentContext(garbage), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtDestroyContext(garbage), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtDestroyContext(initial), ACL_ERROR_RT_CONTEXT_NULL);
    OK(aclrtCreateContext(&made, 0));
    CHECK_EQ(aclrtSetCurrentContext(plus(made, 1)), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtDestroyContext(made));
    CHECK_EQ(aclrtDestroyContext(made), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtSetCurrentContext(made), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtGetCurrentContext(&context), ACL_ERROR_RT_CONTEXT_NULL);
}

static void test_destroying_the_current_one(void) {
    aclrtContext context = NULL;
    void *block = NULL;
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtCreateContext(&context, 0));
    OK(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtDestroyContext(context));
    CHECK_EQ(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_CONTEXT_NULL);
    OK(aclrtFree(block));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

static void test_without_set_device(void) {
    aclrtContext first = NULL, second = NULL;
    void *block = NULL;
    start(NULL);
    OK(aclrtCreateContext(&first, 0));
    OK(aclrtMalloc(&block, 1024, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtCreateContext(&second, 0));
    CHECK_EQ(aclrtResetDevice(0), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
    OK(aclrtDestroyContext(first));
    OK(aclrtMemset(block, 1024, 1, 1024));
    OK(aclrtDestroyContext(second));
    CHECK_EQ(aclrtFree(block), ACL_ERROR_RT_PARAM_INVALID);
    check_nothing_alive();
}

static void test_last_reset_ends_explicit_ones(void) {
    aclrtContext context = NULL;
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtCreateContext(&context, 0));
    OK(aclrtResetDevice(0));
    CHECK_EQ(aclrtSetCurrentContext(context), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtDestroyContext(context), ACL_ERROR_RT_CONTEXT_NULL);
    check_nothing_alive();
}

static void *shares_the_default(void *initial) {
    aclrtContext current = NULL;
    CHECK_EQ(aclrtGetCurrentContext(&current), ACL_ERROR_RT_CONTEXT_NULL);
    OK(aclrtSetCurrentContext(initial));
    OK(aclrtSetDevice(0));
    OK(aclrtGetCurrentContext(&current));
    CHECK(current == initial);
    return NULL;
}

static void test_threads(void) {
    pthread_t thread;
    aclrtContext initial = NULL;
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtGetCurrentContext(&initial));
    pthread_create(&thread, NULL, shares_the_default, initial);
    pthread_join(thread, NULL);
    OK(aclrtResetDevice(0));
    OK(aclrtGetCurrentContext(&initial));
    OK(aclrtResetDevice(0));
}

/* A handle value never comes back, so a stale one is always told apart. */
static void test_handles_are_not_reused(void) {
    enum { MANY = 2000 };
    static aclrtContext made[MANY];
    start(NULL);
    for (int i = 0; i < MANY; i++) {
        OK(aclrtCreateContext(&made[i], 0));
        if (i % 3)
            OK(aclrtDestroyContext(made[i]));
    }
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(aclrtSetCurrentContext(made[i]), i % 3 ? ACL_ERROR_RT_PARAM_INVALID : ACL_SUCCESS);
    OK(hostacl_reset());
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(aclrtSetCurrentContext(made[i]), ACL_ERROR_RT_PARAM_INVALID);
    check_nothing_alive();
}

int main(void) {
    test_switching();
    test_refusals();
    test_destroying_the_current_one();
    test_without_set_device();
    test_last_reset_ends_explicit_ones();
    test_threads();
    test_handles_are_not_reused();
    return check_done();
}
