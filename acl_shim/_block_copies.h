/* Blocks of a file on their way to a device, many in one call: each is read into host memory, and its pieces are copied
 * from there to where they belong. What lies between the pieces is read, because that costs less than another call, and
 * goes nowhere.
 *
 *   file      ...|========== block ==========|......|========== block ==========|...
 *   memory       |--copy--|--copy--|..|-copy-|      |--copy--|.......|---copy---|
 *                     v       v          v               v               v
 *                    dst     dst        dst             dst             dst
 *
 * The structures are the rows of arrays that the Python side fills. Included by _acl.csrc.c, whose table it calls.
 *
 * Thread safety: every call has its own state; `stop` may be set by any thread. */
#ifndef ACL_SHIM_BLOCK_COPIES_H
#define ACL_SHIM_BLOCK_COPIES_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    uint64_t offset; /* first byte in the file */
    uint64_t size;   /* bytes to read */
    uint64_t copies; /* how many of the copies are of this block */
} acl_block;

typedef struct {
    uint64_t dst;   /* address on the device */
    uint64_t start; /* first byte in the block */
    uint64_t size;  /* bytes */
} acl_block_copy;

typedef struct {
    uint64_t blocks;  /* blocks whose copies are all made */
    uint64_t copies;  /* copies made, those of the blocks included */
    uint64_t got;     /* bytes read of the block after those */
    int64_t os_error; /* why no more came of it; 0 at the end of the file */
    int64_t read_ns;  /* time spent reading */
    int64_t copy_ns;  /* time spent copying */
} acl_blocks_done;

static int64_t block_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Reads a block; false where not all of it came. */
static bool block_read(int file, char *memory, const acl_block *block, acl_blocks_done *done) {
    done->got = 0;
    while (done->got < block->size) {
        ssize_t got = pread(file, memory + done->got, block->size - done->got, (off_t)(block->offset + done->got));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            done->os_error = got < 0 ? errno : 0;
            return false;
        }
        done->got += (uint64_t)got;
    }
    return true;
}

/* Makes copies from memory, or queues them where that is asked for; returns the code of the first that is refused. */
static int64_t block_copy(const acl_table *table, const char *memory, const acl_block_copy *copies, uint64_t count,
                          bool is_queued, aclrtStream stream, acl_blocks_done *done) {
    int64_t code = ACL_SUCCESS;
    for (uint64_t i = 0; i < count && code == ACL_SUCCESS; i++) {
        void *dst = (void *)(uintptr_t)copies[i].dst;
        const char *src = memory + copies[i].start;
        size_t size = copies[i].size;
        code = is_queued ? CALL(aclrtMemcpyAsync, dst, size, src, size, ACL_MEMCPY_HOST_TO_DEVICE, stream)
                         : CALL(aclrtMemcpy, dst, size, src, size, ACL_MEMCPY_HOST_TO_DEVICE);
        if (code == ACL_SUCCESS)
            done->copies++;
    }
    return code;
}

/* Moves blocks until all are moved, one cannot be read, a copy is refused, or *stop is not 0. */
static int64_t block_move_all(const acl_table *table, int file, char *memory, const acl_block *blocks, uint64_t count,
                              const acl_block_copy *copies, const int *stop, acl_blocks_done *done) {
    int64_t code = ACL_SUCCESS, start = block_clock_ns();
    while (done->blocks < count && !__atomic_load_n(stop, __ATOMIC_RELAXED)) {
        const acl_block *block = &blocks[done->blocks];
        bool is_whole = block_read(file, memory, block, done);
        int64_t read = block_clock_ns();
        done->read_ns += read - start;
        if (!is_whole)
            break;
        code = block_copy(table, memory, copies + done->copies, block->copies, false, NULL, done);
        start = block_clock_ns();
        done->copy_ns += start - read;
        if (code != ACL_SUCCESS)
            break;
        done->blocks++;
    }
    return code;
}

#endif
