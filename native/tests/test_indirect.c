/* Copies whose addresses are words of memory, or stand in a description. */
#include "streams.h"

enum { SIZE = 1024 };

static aclrtStream stream;
static void *from, *to;
static void **words; /* device memory: where to copy to, where from */

static void set_words(void *first, void *second) {
    void *values[2] = {first, second};
    OK(aclrtMemcpy(words, sizeof(values), values, sizeof(values), ACL_MEMCPY_HOST_TO_DEVICE));
}

static void set_up(void) {
    start(NULL);
    OK(aclrtSetDevice(0));
    stream = new_stream();
    from = new_block(SIZE, 1);
    to = new_block(SIZE, 2);
    words = new_block(64, 0);
    set_words(to, from);
}

static void tear_down(void) {
    OK(aclrtResetDeviceForce(0));
    check_nothing_alive();
}

static const void **word_of(int i) {
    return (const void **)plus(words, (size_t)i * sizeof(void *));
}

static int offset_copy(void **dst, size_t at, const void **src, size_t count) {
    return aclrtMemcpyAsyncWithOffset(dst, SIZE, at, src, count, at, ACL_MEMCPY_DEVICE_TO_DEVICE, stream);
}

/* Words are read when the copy runs: a task before it may still write them. */
static void test_words(void) {
    set_up();
    OK(offset_copy(words, 100, word_of(1), 200));
    OK(aclrtSynchronizeStream(stream));
    CHECK(block_is(to, 100, 2) && block_is(plus(to, 100), 200, 1) && block_is(plus(to, 300), SIZE - 300, 2));
    void *other = new_block(SIZE, 3);
    OK(hostacl_hold(0));
    OK(offset_copy(words, 0, word_of(1), SIZE));
    set_words(other, from);
    OK(hostacl_release(0));
    OK(aclrtSynchronizeStream(stream));
    CHECK(block_is(other, SIZE, 1) && block_is(to, 100, 2));
    set_words(NULL, from);
    OK(aclrtValueWrite(words, (uint64_t)(uintptr_t)to, 0, stream));
    OK(offset_copy(words, 0, word_of(1), SIZE));
    OK(aclrtSynchronizeStream(stream));
    CHECK(block_is(to, SIZE, 1));
    tear_down();
}

/* Words of the host are read by the call. */
static void test_host_words(void) {
    set_up();
    void *target = to;
    const void *source = from;
    OK(hostacl_hold(0));
    OK(offset_copy(&target, 8, &source, 16));
    target = NULL;
    source = NULL;
    OK(hostacl_release(0));
    OK(aclrtSynchronizeStream(stream));
    CHECK(block_is(to, 8, 2) && block_is(plus(to, 8), 16, 1) && block_is(plus(to, 24), 8, 2));
    tear_down();
}

static void test_bad_words(void) {
    char host[SIZE];
    set_up();
    set_words(host, from);
    OK(offset_copy(words, 0, word_of(1), SIZE));
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    set_words(to, NULL);
    OK(offset_copy(words, 0, word_of(1), SIZE));
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    set_words(to, from);
    OK(offset_copy(words, SIZE, word_of(1), SIZE));
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(hostacl_hold(0));
    OK(offset_copy(words, 0, word_of(1), SIZE));
    OK(aclrtFree(words));
    OK(hostacl_release(0));
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(offset_copy(words, 0, word_of(1), SIZE), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK(block_is(to, SIZE, 2));
    tear_down();
}

static void test_arguments(void) {
    start(NULL);
    CHECK_EQ(
        aclrtMemcpyAsyncWithOffset((void **)&from, 1, 0, (const void **)&to, 1, 0, ACL_MEMCPY_DEVICE_TO_DEVICE, NULL),
        ACL_ERROR_RT_CONTEXT_NULL);
    set_up();
    OK(aclrtMemcpyAsyncWithOffset(NULL, 0, 0, NULL, 0, 0, (aclrtMemcpyKind)99, NULL));
    CHECK_EQ(offset_copy(NULL, 0, word_of(1), 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(offset_copy(words, 0, NULL, 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(offset_copy(words, 0, word_of(1), SIZE + 1), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(offset_copy((void **)plus(words, 4), 0, word_of(1), 1), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemcpyAsyncWithOffset(words, 1, 0, word_of(1), 1, 0, ACL_MEMCPY_HOST_TO_DEVICE, stream),
             ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_EQ(aclrtMemcpyAsyncWithOffset(words, 1, 0, word_of(1), 1, 0, (aclrtMemcpyKind)8, stream),
             ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemcpyAsyncWithOffset(words, 1, 0, word_of(1), 1, 0, ACL_MEMCPY_DEVICE_TO_DEVICE, words),
             ACL_ERROR_RT_INVALID_HANDLE);
    tear_down();
}

static void test_descriptions(void) {
    const aclrtMemcpyKind KIND = ACL_MEMCPY_INNER_DEVICE_TO_DEVICE;
    size_t bytes = 0;
    char host[64];
    set_up();
    OK(aclrtGetMemcpyDescSize(KIND, &bytes));
    void *desc = new_block(2 * bytes, 0);
    OK(aclrtSetMemcpyDesc(desc, KIND, from, to, 300, NULL));
    OK(aclrtMemcpyAsyncWithDesc(desc, KIND, stream));
    OK(aclrtSynchronizeStream(stream));
    CHECK(block_is(to, 300, 1) && block_is(plus(to, 300), SIZE - 300, 2));
    OK(hostacl_hold(0));
    OK(aclrtMemcpyAsyncWithDesc(desc, KIND, stream));
    OK(aclrtSetMemcpyDesc(desc, KIND, from, to, SIZE, NULL));
    OK(hostacl_release(0));
    OK(aclrtSynchronizeStream(stream));
    CHECK(block_is(to, SIZE, 1));
    OK(aclrtSetMemcpyDesc(desc, KIND, from, to, SIZE + 1, NULL));
    OK(aclrtMemcpyAsyncWithDesc(desc, KIND, stream));
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclrtSetMemcpyDesc(desc, KIND, from, to, 0, NULL));
    OK(aclrtMemcpyAsyncWithDesc(desc, KIND, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtCmoSetDesc(desc, from, SIZE));
    OK(aclrtMemcpyAsyncWithDesc(desc, KIND, stream));
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtGetMemcpyDescSize(KIND, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetMemcpyDescSize(ACL_MEMCPY_HOST_TO_DEVICE, &bytes), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_EQ(aclrtSetMemcpyDesc(NULL, KIND, from, to, 1, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtSetMemcpyDesc(desc, KIND, NULL, to, 1, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtSetMemcpyDesc(desc, KIND, from, NULL, 1, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtSetMemcpyDesc(desc, KIND, from, to, 1, host), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtSetMemcpyDesc(plus(desc, 32), KIND, from, to, 1, NULL), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemcpyAsyncWithDesc(NULL, KIND, stream), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemcpyAsyncWithDesc(desc, ACL_MEMCPY_DEFAULT, stream), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_EQ(aclrtMemcpyAsyncWithDesc(desc, KIND, host), ACL_ERROR_RT_INVALID_HANDLE);
    tear_down();
}

int main(void) {
    test_words();
    test_host_words();
    test_bad_words();
    test_arguments();
    test_descriptions();
    start(NULL);
    check_nothing_alive();
    return check_done();
}
