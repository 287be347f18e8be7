/* Filling of new and freed memory (options poison and poison_free).
 *
 * The content of new memory is nobody's promise: a program that reads it before it writes finds zeros here and old data
 * on a card. A byte that stands out shows such reads. All bytes that were asked for are filled, so all of them are
 * committed. Memory that is freed is filled only where it can still be read afterwards: blocks that the driver keeps,
 * in the card profile. Elsewhere a late read is refused, or faults in host memory.
 *
 * Thread safety: any thread; each function says what it does with the table lock. */
#include "poison.h"

#include <stdatomic.h>
#include <string.h>

#include "copy.h"
#include "device.h"
#include "table.h"

#define OFF (-1)

static _Atomic int new_byte = OFF;
static _Atomic int freed_byte = OFF;

void poison_apply(const struct config *config) {
    atomic_store(&new_byte, config->poison_given ? config->poison : OFF);
    atomic_store(&freed_byte, config->poison_free_given ? config->poison_free : OFF);
}

static void fill(uint64_t addr, int byte, uint64_t len) {
    struct fill plan = fill_of_bytes(addr, (uint8_t)byte, len);
    fill_run(&plan);
}

void poison_new_bytes(uint64_t addr, uint64_t len) {
    int byte = atomic_load_explicit(&new_byte, memory_order_relaxed);
    if (byte != OFF)
        fill(addr, byte, len);
}

void poison_new_pages(struct device *device, const struct pages *pages) {
    int byte = atomic_load_explicit(&new_byte, memory_order_relaxed);
    if (byte == OFF)
        return;
    for (uint32_t i = 0; i < pages->count; i++)
        phys_touch(&device->phys, pages->extents[i].phys, pages->extents[i].len);
    device_hold(device);
    table_unlock();
    for (uint32_t i = 0; i < pages->count; i++)
        memset(device->phys.window + pages->extents[i].phys, byte, pages->extents[i].len);
    table_lock();
    device_release(device);
}

void poison_freed_bytes(struct device *device, uint64_t addr, uint64_t len) {
    int byte = atomic_load_explicit(&freed_byte, memory_order_relaxed);
    if (byte == OFF)
        return;
    device_hold(device);
    table_unlock();
    fill(addr, byte, len);
    table_lock();
    device_release(device);
}
