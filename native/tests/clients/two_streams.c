/* A pipeline over two streams with events: one stream brings pieces to the device, the other waits for each, copies it
 * on the device and takes it back to the host. Two staging buffers are reused, so the first stream waits in turn until
 * a buffer has been read. The host buffers are pinned and are looked at only after a synchronise. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition);                                   \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define ACL(call) CHECK((call) == ACL_SUCCESS)

enum { PIECES = 24, SLOTS = 2, PIECE_BYTES = 1 << 20 };

static unsigned char value_at(size_t piece, size_t offset) {
    return (unsigned char)(piece * 37 + offset * 11 + (offset >> 12));
}

struct pipeline {
    aclrtStream in, out;           /* towards the device, back to the host */
    aclrtEvent arrived[SLOTS];     /* a piece is in the staging block */
    aclrtEvent taken[SLOTS];       /* the staging block may be overwritten */
    char *staging[SLOTS], *result; /* device memory */
    unsigned char *source, *back;  /* pinned host memory */
};

static void open_pipeline(struct pipeline *line) {
    ACL(aclrtCreateStream(&line->in));
    ACL(aclrtCreateStreamWithConfig(&line->out, 0, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
    for (int slot = 0; slot < SLOTS; slot++) {
        ACL(aclrtCreateEventWithFlag(&line->arrived[slot], ACL_EVENT_SYNC));
        ACL(aclrtCreateEventWithFlag(&line->taken[slot], ACL_EVENT_SYNC));
        ACL(aclrtMalloc((void **)&line->staging[slot], PIECE_BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    }
    ACL(aclrtMalloc((void **)&line->result, (size_t)PIECES * PIECE_BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    ACL(aclrtMallocHost((void **)&line->source, (size_t)PIECES * PIECE_BYTES));
    ACL(aclrtMallocHost((void **)&line->back, (size_t)PIECES * PIECE_BYTES));
}

static void close_pipeline(struct pipeline *line) {
    for (int slot = 0; slot < SLOTS; slot++) {
        ACL(aclrtDestroyEvent(line->arrived[slot]));
        ACL(aclrtDestroyEvent(line->taken[slot]));
        ACL(aclrtFree(line->staging[slot]));
    }
    ACL(aclrtDestroyStream(line->in));
    ACL(aclrtDestroyStream(line->out));
    ACL(aclrtFree(line->result));
    ACL(aclrtFreeHost(line->source));
    ACL(aclrtFreeHost(line->back));
}

static void queue_piece(struct pipeline *line, size_t piece) {
    size_t slot = piece % SLOTS, at = piece * PIECE_BYTES;
    if (piece >= SLOTS) {
        ACL(aclrtStreamWaitEvent(line->in, line->taken[slot]));
        ACL(aclrtResetEvent(line->taken[slot], line->in));
    }
    ACL(aclrtMemcpyAsync(line->staging[slot], PIECE_BYTES, line->source + at, PIECE_BYTES, ACL_MEMCPY_HOST_TO_DEVICE,
                         line->in));
    ACL(aclrtRecordEvent(line->arrived[slot], line->in));
    ACL(aclrtStreamWaitEvent(line->out, line->arrived[slot]));
    ACL(aclrtResetEvent(line->arrived[slot], line->out));
    ACL(aclrtMemcpyAsync(line->result + at, PIECE_BYTES, line->staging[slot], PIECE_BYTES, ACL_MEMCPY_DEVICE_TO_DEVICE,
                         line->out));
    ACL(aclrtRecordEvent(line->taken[slot], line->out));
    ACL(aclrtMemcpyAsync(line->back + at, PIECE_BYTES, line->result + at, PIECE_BYTES, ACL_MEMCPY_DEVICE_TO_HOST,
                         line->out));
}

static void check_all(const struct pipeline *line) {
    for (size_t piece = 0; piece < PIECES; piece++) {
        for (size_t offset = 0; offset < PIECE_BYTES; offset += 509)
            CHECK(line->back[piece * PIECE_BYTES + offset] == value_at(piece, offset));
    }
}

int main(void) {
    struct pipeline line;
    aclrtEvent start = NULL, end = NULL;
    aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    aclrtStreamStatus busy = ACL_STREAM_STATUS_NOT_READY;
    float ms = -1;
    ACL(aclInit(NULL));
    ACL(aclrtSetDevice(0));
    open_pipeline(&line);
    ACL(aclrtCreateEventExWithFlag(&start, ACL_EVENT_TIME_LINE));
    ACL(aclrtCreateEventExWithFlag(&end, ACL_EVENT_TIME_LINE));
    for (size_t piece = 0; piece < PIECES; piece++) {
        for (size_t offset = 0; offset < PIECE_BYTES; offset++)
            line.source[piece * PIECE_BYTES + offset] = value_at(piece, offset);
    }
    ACL(aclrtRecordEvent(start, line.in));
    for (size_t piece = 0; piece < PIECES; piece++)
        queue_piece(&line, piece);
    ACL(aclrtRecordEvent(end, line.out));
    ACL(aclrtSynchronizeEvent(end));
    ACL(aclrtEventElapsedTime(&ms, start, end));
    CHECK(ms > 0);
    ACL(aclrtSynchronizeStreamWithTimeout(line.in, 10000));
    ACL(aclrtSynchronizeStream(line.out));
    ACL(aclrtStreamQuery(line.out, &busy));
    CHECK(busy == ACL_STREAM_STATUS_COMPLETE);
    ACL(aclrtQueryEventStatus(line.taken[(PIECES - 1) % SLOTS], &status));
    CHECK(status == ACL_EVENT_RECORDED_STATUS_COMPLETE);
    check_all(&line);
    printf("%d pieces of %d bytes went through in %.2f ms\n", PIECES, PIECE_BYTES, ms);
    ACL(aclrtDestroyEvent(start));
    ACL(aclrtDestroyEvent(end));
    close_pipeline(&line);
    ACL(aclrtResetDevice(0));
    return aclFinalize();
}
