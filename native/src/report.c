/* Exported: what is alive and how the runtime is set up: hostacl_live, hostacl_live_report and hostacl_info.
 *
 * Thread safety: any thread, any time; each call shows one moment, under the table lock. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl_base.h"
#include "allocator.h"
#include "blocks.h"
#include "context.h"
#include "data_buffer.h"
#include "device.h"
#include "event.h"
#include "handles.h"
#include "host_blocks.h"
#include "host_memory.h"
#include "host_register.h"
#include "hostacl.h"
#include "ipc_memory.h"
#include "managed.h"
#include "mapping.h"
#include "mem_pool.h"
#include "model_handles.h"
#include "models.h"
#include "notify.h"
#include "physical.h"
#include "reserve.h"
#include "runtime.h"
#include "share.h"
#include "stack.h"
#include "stream.h"
#include "stream_queue.h"
#include "table.h"
#include "vspace.h"

/* Text that is written as far as there is room and measured as a whole. */
struct text {
    char *buf;   /* where it goes; may be null when len is 0 */
    size_t len;  /* room, the closing zero included */
    size_t used; /* length of the whole text so far */
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...) {
    va_list args;
    size_t room = text->used < text->len ? text->len - text->used : 0;
    va_start(args, format);
    int written = vsnprintf(room ? text->buf + text->used : NULL, room, format, args);
    va_end(args);
    text->used += written > 0 ? (size_t)written : 0;
}

static unsigned long long number(uint64_t value) {
    return (unsigned long long)value;
}

static void describe_device(const struct device *device, hostacl_device_live_t *out) {
    const struct page_pool *pools = device->phys.pools;
    *out = (hostacl_device_live_t){
        .set_count = device->set_count,
        .pages_4k_used = pools[PAGE_4K].total - pools[PAGE_4K].free,
        .pages_4k_total = pools[PAGE_4K].total,
        .pages_2m_used = pools[PAGE_2M].total - pools[PAGE_2M].free,
        .pages_2m_total = pools[PAGE_2M].total,
        .pages_1g_used = pools[PAGE_1G].total - pools[PAGE_1G].free,
        .pages_1g_total = pools[PAGE_1G].total,
        .committed_bytes = phys_committed(&device->phys),
    };
}

int hostacl_live(hostacl_live_t *out) {
    if (!out)
        return ACL_ERROR_INVALID_PARAM;
    *out = (hostacl_live_t){0};
    runtime_start();
    if (runtime_blocked())
        return ACL_ERROR_RT_DEV_SETUP_ERROR;
    table_lock();
    physicals_sweep(NULL);
    out->blocks = blocks_count();
    out->bytes = blocks_bytes();
    out->host_blocks = host_blocks_count();
    out->host_bytes = host_blocks_bytes();
    out->contexts = context_count();
    out->streams = streams_count();
    out->tasks = stream_tasks();
    out->events = events_count();
    out->notifies = notifies_count();
    out->reservations = reservations_count();
    out->reserved_bytes = reservations_bytes();
    out->handles = physicals_count();
    out->handle_bytes = physicals_bytes();
    out->mappings = mappings_count();
    out->exports = shares_count();
    out->imports = imports_count();
    out->managed = managed_count();
    out->managed_bytes = managed_bytes();
    out->allocators = allocators_count();
    out->mem_pools = mem_pools_count();
    out->registered = host_register_count();
    out->registered_bytes = host_register_bytes();
    out->data_buffers = data_buffers_count();
    out->models = models_count();
    out->model_configs = model_configs_count();
    out->model_descs = model_descs_count();
    out->device_count = runtime_config()->devices;
    for (uint32_t id = 0; id < out->device_count; id++) {
        describe_device(device_at((int32_t)id), &out->devices[id]);
        out->devices_set += out->devices[id].set_count > 0;
    }
    table_unlock();
    return ACL_SUCCESS;
}

#define FRAME_MARK '\1'
#define FRAME_BYTES 256

/* The function that made an object, and a line for each call that led to it; name_frames turns these into names when
 * the lock is free. Nothing where there is no stack. */
static void add_stack(struct text *text, const struct stack *stack) {
    void *const *frames;
    if (!stack)
        return;
    add(text, "    %s\n", stack_function(stack));
    size_t count = stack_frames(stack, &frames);
    for (size_t i = 0; i < count; i++)
        add(text, "%c%p\n", FRAME_MARK, frames[i]);
}

static void list_blocks(struct text *text) {
    for (const struct block *block = blocks_first(); block; block = block->next) {
        const struct region *region = &block->chunk->region;
        add(text, "block 0x%llx: %llu bytes asked, %llu bytes in %s pages, device %d\n", number(block->range.start),
            number(block->asked), number(block->range.len), page_class_name(region->pages->cls), region->device->id);
        add_stack(text, block->stack);
    }
    for (const struct host_block *block = host_block_from(0); block; block = host_block_from(block->range.start + 1)) {
        add(text, "host block 0x%llx: %llu bytes asked, %llu bytes\n", number(block->range.start), number(block->asked),
            number(block->range.len));
        add_stack(text, block->stack);
    }
}

static void list_virtual_memory(struct text *text) {
    size_t position = 0;
    for (const struct reservation *range = reservations_first(); range; range = range->next) {
        add(text, "reserved range 0x%llx: %llu bytes, %llu mappings\n", number(range->start), number(range->len),
            number(range->maps));
        add_stack(text, range->stack);
    }
    for (const struct physical *physical; (physical = physicals_next(&position));) {
        add(text, "handle %p: %llu bytes in %s pages, %s %u, %u references\n", physical->handle,
            number(physical->pages.bytes), page_class_name(physical->pages.cls),
            physical->device == host_memory() ? "host, node" : "device", physical->location.id, physical->references);
        add_stack(text, handle_stack(physical->handle));
        for (const struct mapping *mapping = physical->mappings; mapping; mapping = mapping->next) {
            add(text, "mapping 0x%llx: %llu bytes of handle %p\n", number(mapping->region.range.start),
                number(mapping->region.range.len), physical->handle);
            add_stack(text, mapping->stack);
        }
    }
}

static void list_others(struct text *text) {
    size_t position = 0;
    for (const struct range *range = managed_from(0); range; range = managed_from(range->start + 1))
        add(text, "managed memory 0x%llx: %llu bytes\n", number(range->start), number(range->len));
    for (const struct mem_pool *pool; (pool = mem_pools_next(&position));) {
        add(text, "memory pool %p: device %d, %llu bytes held, %llu in use\n", pool->handle, pool->device->id,
            number(pool->reserved), number(pool->used));
        add_stack(text, handle_stack(pool->handle));
    }
    position = 0;
    for (const void *handle; (handle = handle_next(HANDLE_ALLOCATOR, &position));) {
        add(text, "allocator %p\n", handle);
        add_stack(text, handle_stack(handle));
    }
}

static void list_foreign(struct text *text) {
    for (const struct registration *range = host_register_from(0); range;
         range = host_register_from(range->range.start + 1)) {
        add(text, "registered host memory 0x%llx: %llu bytes, device address 0x%llx\n", number(range->range.start),
            number(range->range.len), number(range->device_addr));
        add_stack(text, range->stack);
    }
    for (const struct ipc_block *block = ipc_blocks_first(); block; block = block->next) {
        add(text, "imported block 0x%llx: %llu bytes, device %d\n", number(block->region.range.start),
            number(block->region.range.len), block->region.device->id);
        add_stack(text, block->stack);
    }
}

static void list_data_buffers(struct text *text) {
    size_t position = 0;
    void *handle;
    for (const struct data_buffer *buffer; (buffer = data_buffers_next(&position, &handle));) {
        add(text, "data buffer %p: %zu bytes at %p\n", handle, buffer->size, buffer->data);
        add_stack(text, handle_stack(handle));
    }
}

static void list_models(struct text *text) {
    size_t position = 0;
    for (const struct model *model = models_first(); model; model = model->next)
        add(text, "model %u: device %d\n", model->id, model->device->id);
    for (void *handle; (handle = handle_next(HANDLE_MODEL_CONFIG, &position));) {
        add(text, "model configuration %p\n", handle);
        add_stack(text, handle_stack(handle));
    }
    position = 0;
    for (void *handle; (handle = handle_next(HANDLE_MODEL_DESC, &position));) {
        add(text, "model description %p\n", handle);
        add_stack(text, handle_stack(handle));
    }
}

static void list_contexts(struct text *text) {
    size_t position = 0;
    for (void *handle; (handle = handle_next(HANDLE_CONTEXT, &position));) {
        const struct context *context = handle_object(HANDLE_CONTEXT, handle);
        if (!context->explicit_one)
            continue;
        add(text, "context %p: device %d\n", handle, context->device->id);
        add_stack(text, handle_stack(handle));
    }
    for (uint32_t id = 0; id < runtime_config()->devices; id++) {
        const struct device *device = device_at((int32_t)id);
        if (device->set_count)
            add(text, "device %d: set %u times\n", device->id, device->set_count);
    }
}

static void list_streams(struct text *text) {
    for (uint32_t id = 0; id < runtime_config()->devices; id++) {
        const struct device *device = device_at((int32_t)id);
        for (const struct stream *stream = device->streams; stream; stream = stream->next) {
            uint64_t left = stream->submitted - stream->finished;
            if (stream->is_default && !left)
                continue;
            add(text, "%s %p: number %d, device %d, %llu tasks left%s\n",
                stream->is_default ? "default stream" : "stream", stream->handle, stream->id, device->id, number(left),
                stream->held ? ", held" : "");
            if (stream->handle)
                add_stack(text, handle_stack(stream->handle));
        }
    }
}

static void list_marks(struct text *text) {
    size_t position = 0;
    for (void *handle; (handle = handle_next(HANDLE_EVENT, &position));) {
        const struct event *event = handle_object(HANDLE_EVENT, handle);
        add(text, "event %p: flags 0x%x, device %d\n", handle, event->flags, event->context->device->id);
        add_stack(text, handle_stack(handle));
    }
    position = 0;
    for (void *handle; (handle = handle_next(HANDLE_NOTIFY, &position));) {
        const struct notify *notify = handle_object(HANDLE_NOTIFY, handle);
        add(text, "notify %p: device %d\n", handle, notify->device->id);
        add_stack(text, handle_stack(handle));
    }
}

static void list_everything(struct text *text) {
    list_blocks(text);
    list_virtual_memory(text);
    list_foreign(text);
    list_others(text);
    list_data_buffers(text);
    list_models(text);
    list_contexts(text);
    list_streams(text);
    list_marks(text);
}

/* The list with frames still to be named, on the heap; null when the host has no memory. */
static char *collect(void) {
    struct text length = {.len = 0};
    table_lock();
    list_everything(&length);
    struct text text = {.buf = malloc(length.used + 1), .len = length.used + 1};
    if (text.buf) {
        text.buf[0] = 0;
        list_everything(&text);
    }
    table_unlock();
    return text.buf;
}

/* The list with the frames named; those inside the library are left out. */
static void name_frames(struct text *text, const char *raw) {
    char frame[FRAME_BYTES];
    for (; *raw; raw += strcspn(raw, "\n") + 1) {
        void *address = NULL;
        if (*raw != FRAME_MARK)
            add(text, "%.*s\n", (int)strcspn(raw, "\n"), raw);
        else if (sscanf(raw + 1, "%p", &address) == 1 && stack_describe(address, frame, sizeof(frame)))
            add(text, "    %s\n", frame);
    }
}

int hostacl_live_report(char *buf, size_t len) {
    struct text text = {.buf = buf, .len = buf ? len : 0};
    if (text.len)
        buf[0] = 0;
    runtime_start();
    if (runtime_blocked()) {
        add(&text, "%s\n", runtime_blocked());
        return (int)text.used;
    }
    char *raw = collect();
    if (raw)
        name_frames(&text, raw);
    else
        add(&text, "the host has no memory for the report\n");
    free(raw);
    return (int)text.used;
}

static void add_address_range(struct text *text) {
    struct vspace_info info = vspace_info(VSPACE_DEVICE);
    add(text, "addresses: 0x%llx, %llu GiB, %s\n", number(info.first), number(info.bytes / GIB),
        info.usual      ? "reserved, the range of the card"
        : info.reserved ? "reserved, not the range of the card because that is taken"
                        : "not reserved because first_address was given; reading a device address need not fault");
}

static void add_devices(struct text *text) {
    struct pool_sizes sizes = config_pools(runtime_config());
    for (enum page_class cls = 0; cls < PAGE_CLASSES; cls++)
        add(text, "pages of %s per device: %llu\n", page_class_name(cls), number(sizes.pages[cls]));
    add(text, "1 GiB pages supported: %s\n", config_has_giant_pages(runtime_config()) ? "yes" : "no");
    for (uint32_t id = 0; id < runtime_config()->devices; id++) {
        const struct device *device = device_at((int32_t)id);
        add(text, "device %u: %s, %llu bytes of host memory committed\n", id, device->open ? "open" : "closed",
            number(phys_committed(&device->phys)));
        for (enum page_class cls = PAGE_2M; device->open && cls < PAGE_CLASSES; cls++)
            add(text, "device %u, pages of %s: %s\n", id, page_class_name(cls),
                device->phys.pools[cls].huge ? "huge pages of the host" : "ordinary memory");
    }
}

int hostacl_info(char *buf, size_t len) {
    struct text text = {.buf = buf, .len = buf ? len : 0};
    if (text.len)
        buf[0] = 0;
    runtime_start();
    add(&text, "version: %s\n", hostacl_version());
    if (runtime_blocked()) {
        add(&text, "blocked: %s\n", runtime_blocked());
        return (int)text.used;
    }
    table_lock();
    add(&text, "profile: %s\nsoc_name: %s\nmode: %s\ndevices: %u\n", runtime_config()->profile->name,
        runtime_config()->soc_name, runtime_config()->unified ? "unified" : "isolated", runtime_config()->devices);
    add_address_range(&text);
    add_devices(&text);
    table_unlock();
    return (int)text.used;
}
