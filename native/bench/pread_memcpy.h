/* Reference for the upload of weights; see pread_memcpy.c. */
#ifndef GEVAR_BENCH_PREAD_MEMCPY_H
#define GEVAR_BENCH_PREAD_MEMCPY_H

#include <stdint.h>

/*
 * Move size_bytes bytes of the file, from file_offset on, to dst: `threads` threads (1 to 64), block_bytes per read and
 * copy. Returns the time in nanoseconds from the start of the first thread to the end of the last, or -errno: -EINVAL
 * for an argument out of range, -EIO when the file ends early, -ENOMEM.
 */
__attribute__((visibility("default"))) int64_t bench_pread_memcpy(int fd, uint64_t file_offset, uint64_t size_bytes,
                                                                  void *dst, uint64_t block_bytes, unsigned threads);

#endif
