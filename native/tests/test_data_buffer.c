/* aclCreateDataBuffer, aclDestroyDataBuffer, aclGetDataBufferAddr, aclGetDataBufferSize(V2). */
#include <pthread.h>

#include "check.h"

static uint64_t alive(void) {
    hostacl_live_t live;
    OK(hostacl_live(&live));
    return live.data_buffers;
}

static void test_life(void) {
    char memory[16], text[256], line[128];
    start(NULL);
    aclDataBuffer *buffer = aclCreateDataBuffer(memory, sizeof(memory));
    aclDataBuffer *large = aclCreateDataBuffer(NULL, SIZE_MAX);
    CHECK(buffer && large && buffer != large);
    CHECK(aclGetDataBufferAddr(buffer) == memory);
    CHECK_EQ(aclGetDataBufferSizeV2(buffer), sizeof(memory));
    CHECK_EQ(aclGetDataBufferSize(buffer), sizeof(memory));
    CHECK(!aclGetDataBufferAddr(large));
    CHECK_EQ(aclGetDataBufferSizeV2(large), SIZE_MAX);
    CHECK_EQ(alive(), 2);
    hostacl_live_report(text, sizeof(text));
    snprintf(line, sizeof(line), "data buffer %p: 16 bytes at %p\n", (void *)buffer, (void *)memory);
    CHECK(strstr(text, line));
    OK(aclDestroyDataBuffer(buffer));
    OK(aclDestroyDataBuffer(large));
    CHECK_EQ(alive(), 0);
}

static void test_no_buffer(void) {
    int other = 0;
    aclrtContext context = NULL;
    start(NULL);
    aclDataBuffer *buffer = aclCreateDataBuffer(&other, 4);
    OK(aclDestroyDataBuffer(buffer));
    OK(aclrtCreateContext(&context, 0));
    const void *wrong[] = {buffer, NULL, &other, (void *)16, context};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        CHECK_EQ(aclDestroyDataBuffer(wrong[i]), ACL_ERROR_INVALID_PARAM);
        CHECK(!aclGetDataBufferAddr(wrong[i]));
        CHECK_EQ(aclGetDataBufferSizeV2(wrong[i]), 0);
        CHECK_EQ(aclGetDataBufferSize(wrong[i]), 0);
    }
    OK(aclrtDestroyContext(context));
}

static void test_reset_and_failure(void) {
    start(NULL);
    aclDataBuffer *buffer = aclCreateDataBuffer(NULL, 1);
    CHECK_EQ(alive(), 1);
    OK(hostacl_configure("devices", "3"));
    CHECK_EQ(aclGetDataBufferSizeV2(buffer), 1);
    OK(hostacl_reset());
    CHECK_EQ(alive(), 0);
    CHECK_EQ(aclDestroyDataBuffer(buffer), ACL_ERROR_INVALID_PARAM);
    OK(hostacl_fail("aclCreateDataBuffer", 1, ACL_ERROR_BAD_ALLOC));
    CHECK(!aclCreateDataBuffer(NULL, 1));
    CHECK_EQ(alive(), 0);
}

static void *work(void *unused) {
    for (size_t i = 1; i < 500; i++) {
        aclDataBuffer *buffer = aclCreateDataBuffer(&i, i);
        CHECK(aclGetDataBufferAddr(buffer) == &i);
        CHECK_EQ(aclGetDataBufferSizeV2(buffer), i);
        OK(aclDestroyDataBuffer(buffer));
    }
    return unused;
}

static void test_threads(void) {
    pthread_t threads[3];
    start(NULL);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(alive(), 0);
}

int main(void) {
    test_life();
    test_no_buffer();
    test_reset_and_failure();
    test_threads();
    return check_done();
}
