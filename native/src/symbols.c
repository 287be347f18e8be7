/* Variables of devices. On a card the device's compiler puts them into a program; here a program names them by
 * hostacl_symbol. Each device has its own copy in 4 KiB pages, made with zeros when it is first used; it ends with the
 * device's tear-down or the symbol.
 *
 * Thread safety: callers hold the table lock; making and taking away a copy may give it up. */
#include "symbols.h"

#include <stdlib.h>

#include "access.h"
#include "chunk.h"
#include "device.h"
#include "hostacl.h"
#include "table.h"

#define LARGEST_VARIABLE (128 * GIB)

struct symbol {
    struct symbol *next;
    const void *symbol;                        /* what a program calls it by */
    uint64_t bytes;                            /* as said */
    struct chunk *copies[HOSTACL_MAX_DEVICES]; /* by number of the device; null: not made yet */
};

static struct symbol *symbols;

static struct symbol **find(const void *symbol) {
    struct symbol **link = &symbols;
    while (*link && (*link)->symbol != symbol)
        link = &(*link)->next;
    return link;
}

/* Takes a copy away when nobody uses it any more. */
static void end_copy(struct chunk *copy) {
    copy->region.closing = true;
    while (access_overlaps(copy->region.range.start, copy->region.range.len))
        table_wait();
    chunk_end(copy);
}

static void end(struct symbol **link) {
    struct symbol *symbol = *link;
    *link = symbol->next;
    for (int32_t id = 0; id < HOSTACL_MAX_DEVICES; id++) {
        if (symbol->copies[id])
            end_copy(symbol->copies[id]);
    }
    free(symbol);
}

bool symbol_define(const void *symbol, uint64_t bytes) {
    struct symbol **link = find(symbol);
    if (*link && bytes)
        return (*link)->bytes == bytes;
    if (*link) {
        end(link);
        return true;
    }
    *link = bytes && bytes <= LARGEST_VARIABLE ? calloc(1, sizeof(**link)) : NULL;
    if (!*link)
        return false;
    (*link)->symbol = symbol;
    (*link)->bytes = bytes;
    return true;
}

uint64_t symbol_bytes(const void *symbol) {
    const struct symbol *found = *find(symbol);
    return found ? found->bytes : 0;
}

uint64_t symbol_place(const void *name, struct device *device) {
    struct symbol *symbol = *find(name);
    if (!symbol->copies[device->id]) {
        uint64_t page_bytes = page_class_bytes(PAGE_4K);
        struct chunk_plan plan = {.cls = PAGE_4K,
                                  .bytes = (symbol->bytes + page_bytes - 1) & ~(page_bytes - 1),
                                  .limit = symbol->bytes,
                                  .align = page_bytes,
                                  .gap = page_bytes,
                                  .fresh_addresses = true};
        symbol->copies[device->id] = chunk_make(device, &plan);
    }
    const struct chunk *copy = symbol->copies[device->id];
    return copy ? copy->region.range.start : 0;
}

void symbols_drop_device(const struct device *device) {
    for (struct symbol *symbol = symbols; symbol; symbol = symbol->next) {
        if (symbol->copies[device->id])
            chunk_drop(symbol->copies[device->id]);
        symbol->copies[device->id] = NULL;
    }
}

void symbols_drop_all(void) {
    while (symbols)
        end(&symbols);
}
