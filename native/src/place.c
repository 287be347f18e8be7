/* Kinds of memory. Thread safety: callers hold the table lock; the answer is about that moment. */
#include "place.h"

#include "host_blocks.h"
#include "host_register.h"
#include "pagetable.h"
#include "vspace.h"

struct place place_of(uint64_t addr) {
    const struct registration *registration = host_register_at(addr);
    uint64_t serial = registration ? registration->serial : host_block_serial(addr);
    if (pagetable_at(addr))
        return (struct place){.kind = PLACE_DEVICE};
    if (serial)
        return (struct place){.kind = PLACE_PINNED, .block = serial};
    return (struct place){.kind = vspace_holds(addr) ? PLACE_NOWHERE : PLACE_UNREGISTERED};
}

bool place_covers(uint64_t addr, uint64_t len, uint64_t block) {
    const struct registration *registration = host_register_at(addr);
    if (!registration)
        return host_block_covers(addr, len, block);
    return registration->serial == block && len <= registration->range.len - (addr - registration->range.start);
}

const char *place_name(enum place_kind kind) {
    static const char *const names[] = {"unregistered host memory", "pinned host memory", "device memory",
                                        "no live device memory"};
    return names[kind];
}
