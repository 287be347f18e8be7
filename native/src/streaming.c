/* Copies to device memory that pass the caches.
 *
 * Who copies much to a device does not read it back at once, so bytes that stay in the caches of the processor only
 * push others out, such as the staging buffer that the next bytes come through; and a plain store first reads the line
 * that it is about to replace. Stores that pass the caches do neither, a line at a time; what is left at the ends, and
 * what is small, goes the plain way. Where the processor has no such stores all of it does, and under sanitizers, which
 * do not see them.
 *
 * Thread safety: has no state; the bytes are there for other threads when the call returns. */
#include "streaming.h"

#include <stdint.h>
#include <string.h>

#if defined(__SSE2__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#include <emmintrin.h>

#define LINE 64
#define SMALL (64 * 1024) /* below this bytes may well be wanted again soon */

void streaming_copy(char *to, const char *from, size_t len) {
    if (len < SMALL) {
        memcpy(to, from, len);
        return;
    }
    size_t head = -(uintptr_t)to % LINE;
    memcpy(to, from, head);
    size_t at = head;
    for (; at + LINE <= len; at += LINE) {
        const __m128i *line = (const __m128i *)(const void *)(from + at);
        __m128i *place = (__m128i *)(void *)(to + at);
        __m128i a = _mm_loadu_si128(line), b = _mm_loadu_si128(line + 1);
        __m128i c = _mm_loadu_si128(line + 2), d = _mm_loadu_si128(line + 3);
        _mm_stream_si128(place, a);
        _mm_stream_si128(place + 1, b);
        _mm_stream_si128(place + 2, c);
        _mm_stream_si128(place + 3, d);
    }
    _mm_sfence();
    memcpy(to + at, from + at, len - at);
}

#else

void streaming_copy(char *to, const char *from, size_t len) {
    memcpy(to, from, len);
}

#endif
