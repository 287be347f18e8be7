/* Custom allocators: what a program registers for its streams, kept and given back, never called.
 *
 * Streams are told apart by the value of their handle, which is never used twice, so an entry of a stream that is gone
 * does no harm; it stays until it is unregistered or the runtime is reset.
 *
 * Thread safety: callers hold the table lock. */
#include "allocator.h"

#include <stdlib.h>

#include "handles.h"

/* An entry of the list of streams. */
struct entry {
    const void *stream;         /* handle of the stream */
    struct allocator allocator; /* what was registered */
    struct entry *next;         /* next stream */
};

static struct entry *entries;
static uint64_t count;

struct allocator *allocator_make(void) {
    struct allocator *allocator = calloc(1, sizeof(*allocator));
    void *handle = allocator ? handle_new(HANDLE_ALLOCATOR, allocator) : NULL;
    if (!handle) {
        free(allocator);
        return NULL;
    }
    allocator->handle = handle;
    count++;
    return allocator;
}

struct allocator *allocator_at(const void *handle) {
    return handle_object(HANDLE_ALLOCATOR, handle);
}

void allocator_end(struct allocator *allocator) {
    handle_end(allocator->handle);
    count--;
    free(allocator);
}

static struct entry *entry_of(const void *stream) {
    struct entry *entry = entries;
    while (entry && entry->stream != stream)
        entry = entry->next;
    return entry;
}

bool allocator_register(const void *stream, const struct allocator *allocator) {
    struct entry *entry = entry_of(stream);
    if (!entry) {
        entry = calloc(1, sizeof(*entry));
        if (!entry)
            return false;
        entry->stream = stream;
        entry->next = entries;
        entries = entry;
    }
    entry->allocator = *allocator;
    return true;
}

const struct allocator *allocator_of(const void *stream) {
    const struct entry *entry = entry_of(stream);
    return entry ? &entry->allocator : NULL;
}

void allocator_unregister(const void *stream) {
    struct entry **link = &entries;
    while (*link && (*link)->stream != stream)
        link = &(*link)->next;
    struct entry *entry = *link;
    if (!entry)
        return;
    *link = entry->next;
    free(entry);
}

uint64_t allocators_count(void) {
    return count;
}

void allocators_drop_all(void) {
    size_t position = 0;
    for (void *handle; (handle = handle_next(HANDLE_ALLOCATOR, &position));)
        allocator_end(handle_object(HANDLE_ALLOCATOR, handle));
    while (entries)
        allocator_unregister(entries->stream);
}
