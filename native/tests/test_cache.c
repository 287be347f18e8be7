/* Operations on caches: arguments are checked, memory is looked for when a task runs, bytes stay. */
#include "streams.h"

enum { SIZE = 4096 };

static aclrtStream stream;
static void *block;

static void set_up(void) {
    start(NULL);
    OK(aclrtSetDevice(0));
    stream = new_stream();
    block = new_block(SIZE, 9);
}

static void tear_down(void) {
    OK(aclrtResetDeviceForce(0));
    check_nothing_alive();
}

static void test_operations(void) {
    aclrtBarrierTaskInfo barrier = {.barrierNum = 2,
                                    .cmoInfo = {{ACL_RT_CMO_TYPE_PREFETCH, 1}, {ACL_RT_CMO_TYPE_FLUSH, 2}}};
    set_up();
    for (int type = ACL_RT_CMO_TYPE_PREFETCH; type <= ACL_RT_CMO_TYPE_FLUSH; type++) {
        OK(aclrtCmoAsync(block, SIZE, (aclrtCmoType)type, stream));
        OK(aclrtCmoAsyncWithBarrier(plus(block, 100), 50, (aclrtCmoType)type, 1, NULL));
    }
    OK(aclrtCmoWaitBarrier(&barrier, stream, 0));
    OK(aclrtMemFlush(block, SIZE));
    OK(aclrtMemInvalidate(plus(block, SIZE - 1), 1));
    OK(aclrtSynchronizeDevice());
    CHECK(block_is(block, SIZE, 9));
    tear_down();
}

static void test_arguments(void) {
    aclrtBarrierTaskInfo barrier = {.barrierNum = 1};
    char host[64];
    start(NULL);
    CHECK_EQ(aclrtCmoAsync(host, 1, ACL_RT_CMO_TYPE_FLUSH, NULL), ACL_ERROR_RT_CONTEXT_NULL);
    set_up();
    CHECK_EQ(aclrtCmoAsync(NULL, 1, ACL_RT_CMO_TYPE_FLUSH, stream), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtCmoAsync(block, 0, ACL_RT_CMO_TYPE_FLUSH, stream), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtCmoAsync(block, 1, (aclrtCmoType)4, stream), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtCmoAsync(block, 1, ACL_RT_CMO_TYPE_FLUSH, host), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(aclrtCmoAsync(block, SIZE + 1, ACL_RT_CMO_TYPE_FLUSH, stream), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtCmoAsync(host, 1, ACL_RT_CMO_TYPE_FLUSH, stream), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtCmoAsyncWithBarrier(NULL, 1, ACL_RT_CMO_TYPE_FLUSH, 1, stream), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtCmoWaitBarrier(NULL, stream, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtCmoWaitBarrier(&barrier, stream, 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtCmoWaitBarrier(&barrier, host, 0), ACL_ERROR_RT_INVALID_HANDLE);
    barrier.cmoInfo[0].cmoType = (aclrtCmoType)9;
    CHECK_EQ(aclrtCmoWaitBarrier(&barrier, stream, 0), ACL_ERROR_RT_PARAM_INVALID);
    barrier.barrierNum = 0;
    CHECK_EQ(aclrtCmoWaitBarrier(&barrier, stream, 0), ACL_ERROR_RT_PARAM_INVALID);
    barrier.barrierNum = ACL_RT_CMO_MAX_BARRIER_NUM + 1;
    CHECK_EQ(aclrtCmoWaitBarrier(&barrier, stream, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemFlush(NULL, 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemFlush(block, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemFlush(host, 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemInvalidate(block, SIZE + 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemInvalidate(block, UINT64_MAX), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtSynchronizeStream(stream));
    tear_down();
}

static void test_memory_that_went_away(void) {
    set_up();
    OK(hostacl_hold(0));
    OK(aclrtCmoAsync(block, SIZE, ACL_RT_CMO_TYPE_WRITEBACK, stream));
    OK(aclrtFree(block));
    OK(hostacl_release(0));
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    tear_down();
}

static void test_descriptions(void) {
    size_t bytes = 0;
    set_up();
    OK(aclrtCmoGetDescSize(&bytes));
    void *desc = new_block(2 * bytes, 0);
    OK(aclrtCmoSetDesc(desc, block, SIZE));
    OK(aclrtCmoAsyncWithDesc(desc, ACL_RT_CMO_TYPE_PREFETCH, stream, NULL));
    OK(aclrtSynchronizeStream(stream));
    CHECK(block_is(block, SIZE, 9));
    OK(aclrtCmoSetDesc(desc, block, SIZE + 1));
    OK(aclrtCmoAsyncWithDesc(desc, ACL_RT_CMO_TYPE_PREFETCH, stream, NULL));
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtCmoAsyncWithDesc(plus(desc, bytes), ACL_RT_CMO_TYPE_PREFETCH, stream, NULL));
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtCmoGetDescSize(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtCmoSetDesc(NULL, block, 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtCmoSetDesc(desc, NULL, 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtCmoSetDesc(desc, block, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtCmoSetDesc(plus(desc, 8), block, 1), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtCmoAsyncWithDesc(NULL, ACL_RT_CMO_TYPE_PREFETCH, stream, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtCmoAsyncWithDesc(desc, ACL_RT_CMO_TYPE_PREFETCH, stream, desc), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtCmoAsyncWithDesc(desc, (aclrtCmoType)4, stream, NULL), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtCmoAsyncWithDesc(plus(desc, 1 * MIB), ACL_RT_CMO_TYPE_FLUSH, stream, NULL),
             ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    tear_down();
}

int main(void) {
    test_operations();
    test_arguments();
    test_memory_that_went_away();
    test_descriptions();
    start(NULL);
    check_nothing_alive();
    return check_done();
}
