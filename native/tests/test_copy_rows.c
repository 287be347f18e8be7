/* Copies of rows (2d) and of many pieces (batch), at once and in stream order. */
#include "streams.h"

enum { WIDTH = 100, HEIGHT = 50, DPITCH = 128, SPITCH = 160, SIZE = 4096 };

static aclrtStream stream;

static void set_up(void) {
    start(NULL);
    OK(aclrtSetDevice(0));
    stream = new_stream();
}

static void tear_down(void) {
    OK(aclrtResetDeviceForce(0));
    check_nothing_alive();
}

/* Row r of the source holds r + 1 in its bytes, 0 between the rows; the destination holds 255 everywhere. */
static uint8_t *new_rows(uint8_t *rows) {
    memset(rows, 0, HEIGHT * SPITCH);
    for (int row = 0; row < HEIGHT; row++)
        memset(rows + row * SPITCH, row + 1, WIDTH);
    return rows;
}

/* Whether the rows have arrived and nothing between them was touched. */
static bool rows_arrived(const void *block) {
    static uint8_t got[HEIGHT * DPITCH];
    OK(aclrtMemcpy(got, sizeof(got), block, sizeof(got), ACL_MEMCPY_DEFAULT));
    for (int at = 0; at < HEIGHT * DPITCH; at++) {
        if (got[at] != (at % DPITCH < WIDTH ? at / DPITCH + 1 : 255))
            return false;
    }
    return true;
}

static void test_rows_arguments(void) {
    uint8_t a[64], b[64];
    start(NULL);
    OK(aclrtMemcpy2d(NULL, 0, NULL, 0, 0, 9, (aclrtMemcpyKind)77));
    OK(aclrtMemcpy2d(NULL, 0, NULL, 0, 9, 0, (aclrtMemcpyKind)77));
    OK(aclrtMemcpy2dAsync(NULL, 0, NULL, 0, 0, 0, (aclrtMemcpyKind)77, NULL));
    for (int async = 0; async < 2; async++) {
#define ROWS(d, dp, s, sp, w, h, kind)                                                                                 \
    (async ? aclrtMemcpy2dAsync(d, dp, s, sp, w, h, kind, NULL) : aclrtMemcpy2d(d, dp, s, sp, w, h, kind))
        CHECK_EQ(ROWS(NULL, 8, b, 8, 8, 2, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_INVALID_PARAM);
        CHECK_EQ(ROWS(a, 8, NULL, 8, 8, 2, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_INVALID_PARAM);
        CHECK_EQ(ROWS(a, 7, b, 8, 8, 2, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_INVALID_PARAM);
        CHECK_EQ(ROWS(a, 8, b, 7, 8, 2, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_INVALID_PARAM);
        CHECK_EQ(ROWS(a, 8, b, 8, 8, 2, ACL_MEMCPY_HOST_TO_HOST), ACL_ERROR_INVALID_PARAM);
        CHECK_EQ(ROWS(a, 8, b, 8, 8, 2, ACL_MEMCPY_DEFAULT), ACL_ERROR_INVALID_PARAM);
        CHECK_EQ(ROWS(a, 8, b, 8, 8, 2, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_CONTEXT_NULL);
    }
    set_up();
    CHECK_EQ(aclrtMemcpy2dAsync(a, 6000000, b, 6000000, 5000001, 1, ACL_MEMCPY_HOST_TO_DEVICE, stream),
             ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemcpy2dAsync(a, 8, b, 8, 8, 5 * 1024 * 1024 + 1, ACL_MEMCPY_HOST_TO_DEVICE, stream),
             ACL_ERROR_RT_PARAM_INVALID);
    void *block = new_block(SIZE, 0);
    CHECK_EQ(aclrtMemcpy2dAsync(block, 8, b, 8, 8, 2, ACL_MEMCPY_DEVICE_TO_HOST, stream), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemcpy2d(block, SIZE_MAX / 2, b, 8, 8, 4, ACL_MEMCPY_HOST_TO_DEVICE),
             ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemcpy2d(block, SIZE, b, 8, 8, 2, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK(block_is(block, SIZE, 0));
    tear_down();
}

static void test_rows(void) {
    static uint8_t heap[HEIGHT * SPITCH], back[HEIGHT * DPITCH];
    set_up();
    uint8_t *rows = new_rows(heap), *pinned = new_rows(new_pinned(HEIGHT * SPITCH, 0));
    void *block = new_block(HEIGHT * DPITCH, 255);
    OK(aclrtMemcpy2d(block, DPITCH, rows, SPITCH, WIDTH, HEIGHT, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK(rows_arrived(block));
    memset(back, 255, sizeof(back));
    OK(aclrtMemcpy2d(back, DPITCH, block, DPITCH, WIDTH, HEIGHT, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(rows_arrived(back));
    void *other = new_block(HEIGHT * DPITCH, 255);
    OK(aclrtMemcpy2d(other, DPITCH, block, DPITCH, WIDTH, HEIGHT, ACL_MEMCPY_DEVICE_TO_DEVICE));
    CHECK(rows_arrived(other));
    OK(aclrtMemset(other, HEIGHT * DPITCH, 255, HEIGHT * DPITCH));
    OK(aclrtMemcpy2dAsync(other, DPITCH, rows, SPITCH, WIDTH, HEIGHT, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    CHECK(rows_arrived(other));
    OK(aclrtMemset(other, HEIGHT * DPITCH, 255, HEIGHT * DPITCH));
    OK(hostacl_hold(0));
    OK(aclrtMemcpy2dAsync(other, DPITCH, pinned, SPITCH, WIDTH, HEIGHT, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    CHECK(block_is(other, HEIGHT * DPITCH, 255));
    OK(hostacl_release(0));
    OK(aclrtSynchronizeStream(stream));
    CHECK(rows_arrived(other));
    OK(aclrtFreeHost(pinned));
    tear_down();
}

/* The last row need not have a whole pitch behind it, and rows may run through two blocks side by side. */
static void test_rows_at_the_end(void) {
    uint8_t rows[3 * 16];
    start("profile", "card", NULL);
    OK(aclrtSetDevice(0));
    memset(rows, 4, sizeof(rows));
    start(NULL);
    OK(aclrtSetDevice(0));
    void *block = new_block(2 * 64 + 16, 0);
    OK(aclrtMemcpy2d(block, 64, rows, 16, 16, 3, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK(block_is(plus(block, 128), 16, 4));
    CHECK_EQ(aclrtMemcpy2d(block, 64, rows, 16, 16, 4, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemcpy2d(block, 65, rows, 16, 16, 3, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    void *low = new_block(64, 0), *high = new_block(64, 0);
    if (high < low) {
        void *swap = low;
        low = high;
        high = swap;
    }
    size_t apart = (size_t)((char *)high - (char *)low);
    OK(aclrtMemcpy2d(low, apart, rows, 16, 16, 2, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK(block_is(low, 16, 4) && block_is(high, 16, 4));
    OK(aclrtFree(high));
    OK(aclrtMemset(low, 64, 0, 64));
    CHECK_EQ(aclrtMemcpy2d(low, apart, rows, 16, 16, 2, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK(block_is(low, 64, 0));
    OK(aclrtResetDevice(0));
}

/* A short copy stops inside the rows. */
static void test_short_rows(void) {
    uint8_t rows[4 * 16];
    set_up();
    memset(rows, 4, sizeof(rows));
    void *block = new_block(256, 0);
    OK(hostacl_short_copy(1, 20, 507899));
    CHECK_EQ(aclrtMemcpy2d(block, 64, rows, 16, 16, 4, ACL_MEMCPY_HOST_TO_DEVICE), 507899);
    CHECK(block_is(block, 16, 4) && block_is(plus(block, 64), 4, 4) && block_is(plus(block, 68), 188, 0));
    tear_down();
}

/* ---- Batches ---- */

static const aclrtMemcpyBatchAttr in_attr = {.dstLoc = {0, ACL_MEM_LOCATION_TYPE_DEVICE},
                                             .srcLoc = {0, ACL_MEM_LOCATION_TYPE_HOST}};
static const aclrtMemcpyBatchAttr out_attr = {.dstLoc = {0, ACL_MEM_LOCATION_TYPE_HOST},
                                              .srcLoc = {0, ACL_MEM_LOCATION_TYPE_DEVICE}};

struct batch {
    void *dsts[3], *srcs[3];
    size_t dest_maxs[3], sizes[3], count;
    aclrtMemcpyBatchAttr attrs[3];
    size_t indexes[3], num_attrs;
    size_t fail;
};

static int run(struct batch *batch, bool async) {
    batch->fail = 77;
    if (async)
        return aclrtMemcpyBatchAsync(batch->dsts, batch->dest_maxs, batch->srcs, batch->sizes, batch->count,
                                     batch->attrs, batch->indexes, batch->num_attrs, &batch->fail, stream);
    return aclrtMemcpyBatch(batch->dsts, batch->dest_maxs, batch->srcs, batch->sizes, batch->count, batch->attrs,
                            batch->indexes, batch->num_attrs, &batch->fail);
}

/* Two pieces from host to device and one back. */
static struct batch good_batch(void *first, void *second, uint8_t *host) {
    return (struct batch){.dsts = {first, second, host + SIZE},
                          .srcs = {host, host + 16, first},
                          .dest_maxs = {SIZE, 64, 16},
                          .sizes = {16, 16, 16},
                          .count = 3,
                          .attrs = {in_attr, out_attr},
                          .indexes = {0, 2},
                          .num_attrs = 2};
}

static void test_batch_arguments(void) {
    uint8_t host[2 * SIZE] = {0};
    size_t fail = 77;
    start(NULL);
    for (int async = 0; async < 2; async++) {
        struct batch batch = good_batch(host, host, host);
        CHECK_EQ(run(&batch, async), ACL_ERROR_RT_CONTEXT_NULL);
        CHECK_EQ(batch.fail, 77);
        set_up();
        void *first = new_block(SIZE, 0), *second = new_block(SIZE, 0);
        struct batch good = good_batch(first, second, host);
#define BAD(change, code, index)                                                                                       \
    do {                                                                                                               \
        batch = good;                                                                                                  \
        change;                                                                                                        \
        CHECK_EQ(run(&batch, async), code);                                                                            \
        CHECK_EQ(batch.fail, index);                                                                                   \
    } while (0)
        BAD(batch.count = 0, ACL_ERROR_INVALID_PARAM, 77);
        BAD(batch.dest_maxs[1] = 15, ACL_ERROR_INVALID_PARAM, 77);
        BAD(batch.dsts[2] = NULL, ACL_ERROR_INVALID_PARAM, 77);
        BAD(batch.srcs[0] = NULL, ACL_ERROR_INVALID_PARAM, 77);
        BAD(batch.attrs[1].rsv[15] = 1, ACL_ERROR_INVALID_PARAM, 77);
        BAD(batch.num_attrs = 0, ACL_ERROR_INVALID_PARAM, 77);
        BAD(batch.indexes[0] = 1, ACL_ERROR_RT_PARAM_INVALID, 77);
        BAD(batch.indexes[1] = 0, ACL_ERROR_RT_PARAM_INVALID, 77);
        BAD(batch.indexes[1] = 3, ACL_ERROR_RT_PARAM_INVALID, 77);
        BAD(batch.attrs[1].dstLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE, ACL_ERROR_RT_PARAM_INVALID, 2);
        BAD(batch.attrs[0].dstLoc.type = ACL_MEM_LOCATION_TYPE_HOST, ACL_ERROR_RT_PARAM_INVALID, 0);
        BAD(batch.attrs[0].dstLoc.id = 9, ACL_ERROR_RT_PARAM_INVALID, 0);
        BAD(batch.srcs[1] = first, ACL_ERROR_RT_PARAM_INVALID, 1);
        BAD(batch.dsts[1] = host, ACL_ERROR_RT_PARAM_INVALID, 1);
        BAD(memset(batch.sizes, 0, sizeof(batch.sizes)), ACL_SUCCESS, SIZE_MAX);
        BAD(batch.sizes[1] = 0, ACL_SUCCESS, SIZE_MAX);
        OK(aclrtSynchronizeStream(stream));
        tear_down();
        CHECK(host[SIZE] == 0);
        start(NULL);
    }
    CHECK_EQ(aclrtMemcpyBatch(NULL, &fail, NULL, NULL, 1, NULL, NULL, 1, &fail), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemcpyBatch(NULL, &fail, NULL, &fail, 1, NULL, NULL, 1, &fail), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(fail, 77);
}

static void test_batch(void) {
    set_up();
    uint8_t *host = new_pinned(2 * SIZE, 1);
    for (int async = 0; async < 2; async++) {
        void *first = new_block(SIZE, 9), *second = new_block(SIZE, 9);
        memset(host, 1, 16);
        memset(host + 16, 2, 16);
        memset(host + SIZE, 8, 16);
        struct batch batch = good_batch(first, second, host);
        OK(hostacl_hold(0));
        OK(run(&batch, async));
        CHECK_EQ(batch.fail, SIZE_MAX);
        CHECK(block_is(first, 16, async ? 9 : 1) && host[SIZE] == (async ? 8 : 1));
        OK(hostacl_release(0));
        OK(aclrtSynchronizeStream(stream));
        CHECK(block_is(first, 16, 1) && block_is(second, 16, 2) && host[SIZE] == 1 && host[SIZE + 15] == 1);
        CHECK(block_is(plus(first, 16), SIZE - 16, 9));
    }
    OK(aclrtFreeHost(host));
    tear_down();
}

/* Pieces before a refused one are done; those of unregistered memory even when the call fails. */
static void test_batch_up_to_a_bad_piece(void) {
    uint8_t host[2 * SIZE];
    memset(host, 3, sizeof(host));
    for (int async = 0; async < 2; async++) {
        set_up();
        void *first = new_block(SIZE, 0), *second = new_block(SIZE, 0);
        struct batch batch = good_batch(first, second, host);
        OK(aclrtFree(second));
        CHECK_EQ(run(&batch, async), ACL_ERROR_RT_PARAM_INVALID);
        CHECK_EQ(batch.fail, 1);
        CHECK(is_idle(stream));
        CHECK(block_is(first, 16, 3));
        CHECK(block_is(plus(first, 16), 16, 0));
        tear_down();
    }
}

/* The second version of both calls tells no index; else it does the same. */
static int run_second(struct batch *batch, bool async) {
    if (async)
        return aclrtMemcpyBatchAsyncV2(batch->dsts, batch->dest_maxs, batch->srcs, batch->sizes, batch->count,
                                       batch->attrs, batch->indexes, batch->num_attrs, stream);
    return aclrtMemcpyBatchV2(batch->dsts, batch->dest_maxs, batch->srcs, batch->sizes, batch->count, batch->attrs,
                              batch->indexes, batch->num_attrs);
}

static void test_second_version(void) {
    for (int async = 0; async < 2; async++) {
        set_up();
        uint8_t *host = new_pinned(2 * SIZE, 1);
        void *first = new_block(SIZE, 9), *second = new_block(SIZE, 9);
        struct batch good = good_batch(first, second, host), bad = good;
        OK(run_second(&good, async));
        OK(aclrtSynchronizeStream(stream));
        CHECK(block_is(first, 16, 1) && block_is(second, 16, 1) && host[SIZE] == 1);
        bad.srcs[1] = first;
        CHECK_EQ(run_second(&bad, async), ACL_ERROR_RT_PARAM_INVALID);
        bad = good;
        bad.dsts[0] = NULL;
        CHECK_EQ(run_second(&bad, async), ACL_ERROR_INVALID_PARAM);
        bad = good;
        memset(bad.sizes, 0, sizeof(bad.sizes));
        OK(run_second(&bad, async));
        OK(aclrtSynchronizeStream(stream));
        OK(aclrtFreeHost(host));
        tear_down();
    }
    CHECK_EQ(aclrtMemcpyBatchV2(NULL, NULL, NULL, NULL, 1, NULL, NULL, 1), ACL_ERROR_INVALID_PARAM);
}

int main(void) {
    test_rows_arguments();
    test_rows();
    test_rows_at_the_end();
    test_short_rows();
    test_batch_arguments();
    test_batch();
    test_batch_up_to_a_bad_piece();
    test_second_version();
    start(NULL);
    return check_done();
}
