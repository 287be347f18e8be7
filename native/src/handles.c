/* Handles. A handle is no address but a token: slot number and generation of the slot. A look-up is one comparison, a
 * destroyed or foreign pointer is told from a live one with certainty, and nothing a caller passes is dereferenced.
 *
 *   bits 63..56 zero | 55..28 generation, from 1 | 27..4 slot | 3..0 zero
 *
 * Generations go on through hostacl_reset, so a stale handle stays stale; a slot whose generations are used up is
 * retired. Thread safety: callers hold the table lock. */
#include "handles.h"

#include <stdint.h>
#include <stdlib.h>

#include "stack.h"

#define SLOT_BITS 24
#define GENERATION_BITS 28
#define FIRST_SLOTS 64

struct slot {
    void *object;          /* what the handle stands for */
    struct stack *stack;   /* the calls that made it */
    enum handle_kind kind; /* HANDLE_NONE when free */
    uint32_t generation;   /* of the live handle, or of the next one */
    size_t next_free;      /* next slot of the free list, plus 1; 0 ends it */
};

static struct slot *slots;
static size_t slot_count;
static size_t free_list; /* first free slot plus 1; 0 when there is none */

static void *token(size_t slot) {
    return (void *)(uintptr_t)((uint64_t)slots[slot].generation << (SLOT_BITS + 4) | (uint64_t)slot << 4);
}

static void add_free(size_t slot) {
    slots[slot].kind = HANDLE_NONE;
    slots[slot].next_free = free_list;
    free_list = slot + 1;
}

static int grow(void) {
    size_t wanted = slot_count ? slot_count * 2 : FIRST_SLOTS;
    struct slot *larger = wanted > (size_t)1 << SLOT_BITS ? NULL : realloc(slots, wanted * sizeof(*slots));
    if (!larger)
        return 0;
    slots = larger;
    for (size_t slot = wanted; slot-- > slot_count;) {
        slots[slot] = (struct slot){.generation = 1};
        add_free(slot);
    }
    slot_count = wanted;
    return 1;
}

void *handle_new(enum handle_kind kind, void *object) {
    if (!free_list && !grow())
        return NULL;
    size_t slot = free_list - 1;
    free_list = slots[slot].next_free;
    slots[slot].object = object;
    slots[slot].kind = kind;
    slots[slot].stack = stack_take();
    return token(slot);
}

static uint64_t slot_of(const void *handle) {
    return (uint64_t)(uintptr_t)handle >> 4 & (((uint64_t)1 << SLOT_BITS) - 1);
}

void *handle_object(enum handle_kind kind, const void *handle) {
    uint64_t slot = slot_of(handle);
    if (slot >= slot_count || slots[slot].kind != kind || token(slot) != handle)
        return NULL;
    return slots[slot].object;
}

const struct stack *handle_stack(const void *handle) {
    return slots[slot_of(handle)].stack;
}

void handle_end(const void *handle) {
    uint64_t slot = slot_of(handle);
    stack_free(slots[slot].stack);
    slots[slot].kind = HANDLE_NONE;
    if (++slots[slot].generation >> GENERATION_BITS == 0)
        add_free(slot);
}

void *handle_next(enum handle_kind kind, size_t *position) {
    for (; *position < slot_count; ++*position) {
        if (slots[*position].kind == kind)
            return token((*position)++);
    }
    return NULL;
}
