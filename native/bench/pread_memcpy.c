/*
 * Reference for the upload of weights: the bytes of a file, block by block, through one buffer per thread into a
 * destination. Nothing else: no table of addresses, no queue, no check of a range. What a loader costs more than this
 * is its own.
 *
 * Threads take the next block from a common counter, so that none waits while another has work. The buffers are
 * allocated and touched before the clock starts, as pinned buffers are that a loader uses again and again.
 * Thread safety: every call has its own state; calls do not share anything.
 */
#include "pread_memcpy.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_THREADS = 64, PAGE_BYTES = 4096 };

typedef struct {
    int fd;                      /* the source, opened for reading */
    uint64_t file_offset;        /* first byte of the source */
    uint64_t size_bytes;         /* bytes to move */
    uint64_t block_bytes;        /* bytes per read and per copy; the last block may be shorter */
    unsigned char *dst;          /* at least size_bytes long */
    _Atomic uint64_t next_block; /* the next block nobody has taken */
    _Atomic int error;           /* the first errno of a thread; 0 while all is well */
} job_t;

typedef struct {
    job_t *job;
    unsigned char *buffer; /* block_bytes long */
} worker_t;

/* Read exactly count bytes; a file that ends early is EIO. */
static int read_block(int fd, unsigned char *buffer, uint64_t count, uint64_t offset) {
    while (count > 0) {
        ssize_t got = pread(fd, buffer, count, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? errno : EIO;
        buffer += got;
        offset += (uint64_t)got;
        count -= (uint64_t)got;
    }
    return 0;
}

static void *move_blocks(void *argument) {
    worker_t *worker = argument;
    job_t *job = worker->job;
    while (atomic_load(&job->error) == 0) {
        uint64_t start = atomic_fetch_add(&job->next_block, 1) * job->block_bytes;
        if (start >= job->size_bytes)
            break;
        uint64_t left = job->size_bytes - start;
        uint64_t count = left < job->block_bytes ? left : job->block_bytes;
        int error = read_block(job->fd, worker->buffer, count, job->file_offset + start);
        if (error != 0)
            atomic_store(&job->error, error);
        else
            memcpy(job->dst + start, worker->buffer, count);
    }
    return NULL;
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Start the workers, wait for them, and return the time that took, or -errno. */
static int64_t run_workers(job_t *job, worker_t *workers, unsigned threads) {
    pthread_t ids[MAX_THREADS];
    unsigned started = 0;
    int64_t begin = now_ns();
    while (started < threads) {
        int error = pthread_create(&ids[started], NULL, move_blocks, &workers[started]);
        if (error != 0) {
            atomic_store(&job->error, error);
            break;
        }
        started++;
    }
    for (unsigned i = 0; i < started; i++)
        pthread_join(ids[i], NULL);
    int64_t elapsed = now_ns() - begin;
    int error = atomic_load(&job->error);
    return error != 0 ? -error : elapsed;
}

int64_t bench_pread_memcpy(int fd, uint64_t file_offset, uint64_t size_bytes, void *dst, uint64_t block_bytes,
                           unsigned threads) {
    if (dst == NULL || block_bytes == 0 || threads == 0 || threads > MAX_THREADS)
        return -EINVAL;
    job_t job = {
        .fd = fd, .file_offset = file_offset, .size_bytes = size_bytes, .block_bytes = block_bytes, .dst = dst};
    worker_t workers[MAX_THREADS];
    unsigned ready = 0;
    while (ready < threads) {
        void *buffer = NULL;
        if (posix_memalign(&buffer, PAGE_BYTES, block_bytes) != 0)
            break;
        memset(buffer, 1, block_bytes);
        workers[ready++] = (worker_t){.job = &job, .buffer = buffer};
    }
    int64_t result = ready == threads ? run_workers(&job, workers, threads) : -ENOMEM;
    for (unsigned i = 0; i < ready; i++)
        free(workers[i].buffer);
    return result;
}
