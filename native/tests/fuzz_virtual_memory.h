/* The virtual memory part of fuzz.c: ranges, handles, mappings, exports, registered and managed memory against a model
 * of them.
 *
 * Handles keep a few bytes whose value is known, wherever they are mapped. Arguments are right, off by some, stale or
 * nonsense; the model says which code each call returns. */
#ifndef HOSTACL_TESTS_FUZZ_VIRTUAL_MEMORY_H
#define HOSTACL_TESTS_FUZZ_VIRTUAL_MEMORY_H

enum { RANGES = 12, HANDLES = 16, MAPPINGS = 24, NOBODY = -1, HOST_PAGES = 16, MANAGED = 6 };

#define UNIT (2 * MIB)

struct model_range {
    char *start;  /* null: free slot */
    uint64_t len; /* whole units */
    int device;   /* owner of what was mapped first, or NOBODY */
};

struct model_handle {
    aclrtDrvMemHandle handle; /* stays after the end, as a stale value */
    bool alive;               /* references or mappings are left */
    int device;               /* of the thread's own */
    int cls;                  /* 1: 2 MiB, 2: 1 GiB pages */
    uint64_t pages;           /* pages of that class */
    int references;           /* from creation and retaining */
    bool exported;            /* offered to other processes */
    uint64_t at[PROBES];      /* offsets whose bytes are known */
    uint8_t byte[PROBES];     /* the bytes there */
};

struct model_mapping {
    char *at;                    /* null: free slot */
    uint64_t len;                /* bytes */
    struct model_range *range;   /* where */
    struct model_handle *handle; /* what */
    uint32_t rights;             /* one bit for each device of the thread */
};

struct model_managed {
    char *at;      /* null: free slot */
    uint64_t size; /* bytes asked for */
    uint8_t byte;  /* the last of them */
};

static _Thread_local struct model_managed managed[MANAGED];
static _Thread_local struct model_range ranges[RANGES];
static _Thread_local struct model_handle handles[HANDLES];
static _Thread_local struct model_mapping mappings[MAPPINGS];
static _Thread_local char *host_pages;
static _Thread_local uint64_t registered[HOST_PAGES]; /* pages of a registration that starts there, else 0 */

static uint8_t peek_byte(const void *at) {
    uint8_t byte = 0;
    OK(aclrtMemcpy(&byte, 1, at, 1, ACL_MEMCPY_DEFAULT));
    return byte;
}

static uint64_t handle_bytes(const struct model_handle *handle) {
    return handle->pages * page_bytes[handle->cls];
}

static int maps_of(const struct model_handle *handle) {
    int count = 0;
    for (int i = 0; i < MAPPINGS; i++)
        count += mappings[i].at && mappings[i].handle == handle;
    return count;
}

static int maps_in(const struct model_range *range) {
    int count = 0;
    for (int i = 0; i < MAPPINGS; i++)
        count += mappings[i].at && mappings[i].range == range;
    return count;
}

static struct model_range *range_at(const char *at) {
    for (int i = 0; i < RANGES; i++) {
        if (ranges[i].start && (uint64_t)(at - ranges[i].start) < ranges[i].len)
            return &ranges[i];
    }
    return NULL;
}

static struct model_mapping *mapping_at(const char *at) {
    for (int i = 0; i < MAPPINGS; i++) {
        if (mappings[i].at && (uint64_t)(at - mappings[i].at) < mappings[i].len)
            return &mappings[i];
    }
    return NULL;
}

/* The memory returns when the last reference and the last mapping are gone. */
static void end_if_unused(struct model_handle *handle) {
    if (handle->references || maps_of(handle))
        return;
    handle->alive = false;
    used[handle->device][handle->cls] -= handle->pages;
}

/* The last reset of a device drops its handles and mappings; ranges stay bound. */
static void forget_device_mappings(int device) {
    for (int i = 0; i < MAPPINGS; i++) {
        if (mappings[i].at && mappings[i].handle->device == device)
            mappings[i].at = NULL;
    }
    for (int i = 0; i < HANDLES; i++) {
        if (handles[i].device == device)
            handles[i].alive = false;
    }
}

static void do_reserve(void) {
    struct model_range *range = &ranges[random_below(RANGES)];
    static const uint64_t sizes[] = {0, 1, 512, UNIT - 1, UNIT, UNIT + 1, 6 * UNIT, GIB, 2 * GIB + 5};
    uint64_t size = sizes[random_below(9)], flags = random_below(3), alignment = random_below(8) ? 0 : UNIT;
    void *start = (void *)1;
    if (range->start)
        return;
    int code = aclrtReserveMemAddress(&start, size, alignment, NULL, flags);
    CHECK_EQ(code, !size || flags > 1 ? ACL_ERROR_INVALID_PARAM : alignment ? ACL_ERROR_RT_PARAM_INVALID : 0);
    if (code) {
        CHECK(start == (void *)1);
        return;
    }
    CHECK_EQ((uintptr_t)start % (size >= GIB ? GIB : UNIT), 0);
    *range = (struct model_range){.start = start, .len = (size + UNIT - 1) & ~(UNIT - 1), .device = NOBODY};
}

static void do_release(void) {
    struct model_range *range = &ranges[random_below(RANGES)];
    uint64_t shift = random_below(3) ? 0 : 1 + random_below(UNIT);
    if (!range->start || shift >= range->len)
        return;
    int code = aclrtReleaseMemAddress(range->start + shift);
    CHECK_EQ(code, shift ? ACL_ERROR_RT_PARAM_INVALID : maps_in(range) ? ACL_ERROR_RT_DRV_INTERNAL_ERROR : 0);
    if (code)
        return;
    if (threads == 1) /* else another thread may have got the address */
        CHECK_EQ(aclrtFree(range->start), ACL_ERROR_RT_PARAM_INVALID);
    range->start = NULL;
}

static void do_malloc_physical(void) {
    struct model_handle *slot = &handles[random_below(HANDLES)];
    static const aclrtMemAttr attributes[] = {
        ACL_HBM_MEM_HUGE, ACL_HBM_MEM_NORMAL, ACL_MEM_HUGE, ACL_MEM_P2P_HUGE, ACL_HBM_MEM_HUGE1G, ACL_HBM_MEM, 99};
    aclrtMemAttr attr = attributes[random_below(7)];
    int device = (int)random_below(DEVICES + 1);
    struct model_handle made = {.device = device, .cls = attr == ACL_HBM_MEM_HUGE1G ? 2 : 1, .references = 1};
    uint64_t size = (1 + random_below(4)) * UNIT + (random_below(6) ? 0 : random_below(UNIT));
    aclrtPhysicalMemProp prop = {.memAttr = attr, .location = {.id = (uint32_t)id_of(device), .type = 1}};
    bool bad_attr = attr == ACL_HBM_MEM || attr == 99;
    if (slot->alive)
        return;
    made.pages = (size + page_bytes[made.cls] - 1) / page_bytes[made.cls];
    int code = aclrtMallocPhysical(&made.handle, size, &prop, 0);
    if (bad_attr)
        CHECK_EQ(code, ACL_ERROR_INVALID_PARAM);
    else if (device == DEVICES)
        CHECK_EQ(code, ACL_ERROR_RT_INVALID_DEVICEID);
    else if (made.cls == 1 && size % UNIT)
        CHECK_EQ(code, ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    else if (strict)
        CHECK_EQ(code, fits(device, made.cls, made.pages) ? ACL_SUCCESS : ACL_ERROR_RT_MEMORY_ALLOCATION);
    else
        CHECK(code == ACL_SUCCESS || code == ACL_ERROR_RT_MEMORY_ALLOCATION);
    if (code) {
        CHECK(made.handle == NULL);
        return;
    }
    for (int i = 0; i < PROBES; i++)
        made.at[i] = random_below(handle_bytes(&made));
    made.alive = true;
    used[device][made.cls] += made.pages;
    *slot = made;
}

/* A handle's value, sometimes a stale one or one that never was; *handle is null for those. */
static aclrtDrvMemHandle some_handle(struct model_handle **handle) {
    struct model_handle *slot = &handles[random_below(HANDLES)];
    aclrtDrvMemHandle value = random_below(12) ? slot->handle : (void *)(uintptr_t)(1 + random_below(1 << 30));
    *handle = NULL;
    for (int i = 0; i < HANDLES; i++) {
        if (handles[i].alive && handles[i].handle == value)
            *handle = &handles[i];
    }
    /* A number from nowhere might name a handle of another thread. */
    return threads > 1 && !*handle && value != slot->handle ? (void *)1 : value;
}

static void do_free_physical(void) {
    struct model_handle *handle;
    aclrtDrvMemHandle value = some_handle(&handle);
    int code = aclrtFreePhysical(value);
    if (!value)
        CHECK_EQ(code, ACL_ERROR_INVALID_PARAM);
    else
        CHECK_EQ(code, handle && handle->references ? ACL_SUCCESS : ACL_ERROR_RT_PARAM_INVALID);
    if (code)
        return;
    handle->references--;
    end_if_unused(handle);
}

static bool place_is_free(const char *at, uint64_t len) {
    for (int i = 0; i < MAPPINGS; i++) {
        if (mappings[i].at && mappings[i].at < at + len && at < mappings[i].at + mappings[i].len)
            return false;
    }
    return true;
}

static int map_code(const struct model_range *range, const char *at, uint64_t size, const struct model_handle *handle,
                    uint64_t offset, uint64_t flags) {
    if (!size || flags)
        return ACL_ERROR_INVALID_PARAM;
    if (offset)
        return ACL_ERROR_RT_PARAM_INVALID;
    if (!handle)
        return ACL_ERROR_RT_INVALID_HANDLE;
    if (!range)
        return ACL_ERROR_RT_DRV_INTERNAL_ERROR;
    uint64_t page = page_bytes[handle->cls], inside = (uint64_t)(at - range->start);
    bool good = (uintptr_t)at % page == 0 && size % page == 0 && size <= handle_bytes(handle) &&
                (!strict || size == handle_bytes(handle)) && inside <= range->len && size <= range->len - inside &&
                (range->device == NOBODY || range->device == handle->device) && place_is_free(at, size);
    return good ? ACL_SUCCESS : ACL_ERROR_RT_DRV_INTERNAL_ERROR;
}

static const struct model_mapping *first_mapping_of(const struct model_handle *handle) {
    for (int i = 0; i < MAPPINGS; i++) {
        if (mappings[i].at && mappings[i].handle == handle)
            return &mappings[i];
    }
    return NULL;
}

static void do_map(void) {
    struct model_range *range = &ranges[random_below(RANGES)];
    struct model_mapping *slot = &mappings[random_below(MAPPINGS)];
    struct model_handle *handle;
    aclrtDrvMemHandle value = some_handle(&handle);
    bool no_access = random_below(6) == 0;
    uint64_t offset = random_below(20) ? 0 : UNIT, flags = random_below(20) ? 0 : 1;
    if (!range->start || slot->at || !value)
        return;
    uint64_t page = handle ? page_bytes[handle->cls] : UNIT;
    uint64_t places = range->len / page + 1;
    char *at = range->start + random_below(places) * page + (random_below(10) ? 0 : 4096);
    range = range_at(at);
    if (!range && threads > 1) /* might be the range of another thread */
        return;
    uint64_t size = random_below(5) && handle ? handle_bytes(handle) : random_below(5) * MIB;
    int wanted = map_code(range, at, size, handle, offset, flags);
    const struct model_mapping *shown = handle && !no_access && !offset && !flags ? first_mapping_of(handle) : NULL;
    int code = no_access ? aclrtMemMapNoAccess(at, size, offset, value, flags)
               : shown   ? aclrtMemMapSelectedLink(at, size, shown->at, (uint32_t)random_below(2))
                         : aclrtMapMem(at, size, offset, value, flags);
    if (!CHECK_EQ(code, wanted) || code)
        return;
    *slot = (struct model_mapping){.at = at, .len = size, .range = range, .handle = handle};
    slot->rights = no_access ? 0 : 1u << handle->device;
    range->device = handle->device;
}

static void do_unmap(void) {
    struct model_mapping *mapping = &mappings[random_below(MAPPINGS)];
    uint64_t shift = random_below(4) ? 0 : random_below(2) ? UNIT : 64;
    if (!mapping->at)
        return;
    struct model_mapping *hit = mapping_at(mapping->at + shift);
    bool good = hit && hit->at == mapping->at + shift;
    char *at = mapping->at + shift;
    if (!range_at(at) && threads > 1) /* might be the range of another thread */
        return;
    CHECK_EQ(aclrtUnmapMem(at), good ? ACL_SUCCESS : ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    if (!good)
        return;
    hit->at = NULL;
    end_if_unused(hit->handle);
    CHECK_EQ(aclrtUnmapMem(at), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
}

static void do_retain(void) {
    struct model_mapping *mapping = &mappings[random_below(MAPPINGS)];
    aclrtDrvMemHandle handle = (void *)1;
    if (!mapping->at)
        return;
    CHECK_EQ(aclrtMemRetainAllocationHandle(mapping->at + 64, &handle), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK(handle == (void *)1);
    OK(aclrtMemRetainAllocationHandle(mapping->at, &handle));
    CHECK(handle == mapping->handle->handle);
    mapping->handle->references++;
}

static void do_access(void) {
    struct model_mapping *mapping = &mappings[random_below(MAPPINGS)];
    int device = (int)random_below(DEVICES);
    uint64_t flag = 77;
    aclrtMemAccessDesc desc = {.flags = random_below(4) ? 3 : 1,
                               .location = {.id = (uint32_t)id_of(device), .type = ACL_MEM_LOCATION_TYPE_DEVICE}};
    if (!mapping->at)
        return;
    uint64_t size = random_below(4) ? mapping->len : mapping->len + UNIT;
    int wanted = desc.flags != 3        ? ACL_ERROR_RT_FEATURE_NOT_SUPPORT
                 : size != mapping->len ? ACL_ERROR_RT_DRV_INTERNAL_ERROR
                                        : ACL_SUCCESS;
    CHECK_EQ(aclrtMemSetAccess(mapping->at, size, &desc, 1), wanted);
    if (!wanted)
        mapping->rights |= 1u << device;
    OK(aclrtMemGetAccess(mapping->at, &desc.location, &flag));
    CHECK_EQ(flag, mapping->rights >> device & 1 ? 3 : 0);
}

/* Reads and writes known bytes of a handle through one of its mappings. */
static void do_mapped_bytes(void) {
    struct model_mapping *mapping = &mappings[random_below(MAPPINGS)];
    if (!mapping->at || current < 0)
        return;
    struct model_handle *handle = mapping->handle;
    int i = (int)random_below(PROBES);
    uint8_t byte = (uint8_t)random_below(256);
    if (handle->at[i] >= mapping->len)
        return;
    char *at = mapping->at + handle->at[i];
    int wanted = mapping->rights ? ACL_SUCCESS : ACL_ERROR_RT_DRV_INTERNAL_ERROR;
    uint8_t got = (uint8_t)~handle->byte[i];
    CHECK_EQ(aclrtMemcpy(&got, 1, at, 1, ACL_MEMCPY_DEVICE_TO_HOST), wanted);
    if (!wanted)
        CHECK_EQ(got, handle->byte[i]);
    if (aclrtMemcpy(at, 1, &byte, 1, ACL_MEMCPY_HOST_TO_DEVICE))
        return;
    for (int k = 0; k < PROBES; k++) {
        if (handle->at[k] == handle->at[i])
            handle->byte[k] = byte;
    }
}

/* What the runtime says about an address inside a range. */
static void do_ask_about_range(void) {
    struct model_range *range = &ranges[random_below(RANGES)];
    aclrtPtrAttributes attributes;
    void *base = (void *)1;
    size_t size = 77;
    if (!range->start)
        return;
    char *at = range->start + random_below(range->len);
    OK(aclrtPointerGetAttributes(at, &attributes));
    bool bound = range->device != NOBODY;
    CHECK_EQ(attributes.location.type, bound ? ACL_MEM_LOCATION_TYPE_DEVICE : ACL_MEM_LOCATION_TYPE_HOST);
    CHECK_EQ(attributes.location.id, bound ? id_of(range->device) : 0);
    const struct model_mapping *mapping = mapping_at(at);
    CHECK_EQ(aclrtMemGetAddressRange(at, &base, &size), mapping ? ACL_SUCCESS : ACL_ERROR_RT_PARAM_INVALID);
    CHECK(base == (mapping ? mapping->at : NULL));
    CHECK_EQ(size, mapping ? mapping->len : 77);
    if (!mapping && current >= 0)
        CHECK_EQ(aclrtMemset(at, 1, 1, 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
}

/* Exports a handle, and lets a process import it that never will. */
static void do_export(void) {
    struct model_handle *handle;
    uint64_t token = 77;
    int32_t pid = 1;
    aclrtDrvMemHandle value = some_handle(&handle), imported = NULL;
    int code = aclrtMemExportToShareableHandle(value, ACL_MEM_HANDLE_TYPE_NONE, random_below(2), &token);
    CHECK_EQ(code, !value             ? ACL_ERROR_INVALID_PARAM
                   : !handle          ? ACL_ERROR_RT_INVALID_HANDLE
                   : handle->exported ? ACL_ERROR_RT_DRV_INTERNAL_ERROR
                                      : ACL_SUCCESS);
    if (code) {
        CHECK_EQ(token, 77);
        return;
    }
    handle->exported = true;
    OK(aclrtMemSetPidToShareableHandle(token, &pid, 1));
    CHECK_EQ(aclrtMemImportFromShareableHandle(token, id_of(0), &imported), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    CHECK_EQ(aclrtMemSetPidToShareableHandle(token ^ 2, &pid, 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
}

/* Advice about a piece reads back, its bytes stay. */
static void do_advice(void) {
    const struct model_managed *piece = &managed[random_below(MANAGED)];
    aclrtMemManagedLocation location = {(aclrtMemManagedLocationType)random_below(4), id_of((int)random_below(3))};
    int32_t place = 77;
    if (!piece->at)
        return;
    uint64_t at = random_below(piece->size), len = 1 + random_below(3 * UNIT);
    uint64_t room = (piece->size + UNIT - 1) / UNIT * UNIT - at;
    bool device = location.type == ACL_MEM_LOCATIONTYPE_DEVICE, known = location.id < threads * DEVICES;
    int wanted = !location.type     ? ACL_ERROR_RT_PARAM_INVALID
                 : device && !known ? ACL_ERROR_RT_INVALID_DEVICEID
                 : len > room       ? ACL_ERROR_RT_PARAM_INVALID
                                    : ACL_SUCCESS;
    CHECK_EQ(aclrtMemManagedAdvise(piece->at + at, len, ACL_MEM_ADVISE_SET_PREFERRED_LOCATION, location), wanted);
    if (wanted)
        return;
    OK(aclrtMemManagedGetAttr(ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, piece->at + at, len, &place, sizeof(place)));
    CHECK_EQ(place, device ? location.id : -1);
    CHECK_EQ((uint8_t)piece->at[piece->size - 1], piece->byte);
}

static void do_managed(void) {
    struct model_managed *piece = &managed[random_below(MANAGED)];
    uint64_t size = random_below(3 * UNIT);
    uint32_t flag = random_below(10) ? 1 : 0;
    void *at = (void *)1;
    if (piece->at) {
        uint64_t shift = random_below(3) ? 0 : 1 + random_below(UNIT - 1);
        CHECK_EQ((uint8_t)piece->at[piece->size - 1], piece->byte);
        if (current >= 0)
            CHECK_EQ(peek_byte(piece->at + piece->size - 1), piece->byte);
        CHECK_EQ(aclrtFree(piece->at + shift), shift ? ACL_ERROR_RT_PARAM_INVALID : ACL_SUCCESS);
        if (!shift)
            piece->at = NULL;
        return;
    }
    int code = aclrtMemAllocManaged(&at, size, flag);
    CHECK_EQ(code, !size || !flag ? ACL_ERROR_INVALID_PARAM : current < 0 ? ACL_ERROR_RT_CONTEXT_NULL : ACL_SUCCESS);
    if (code)
        return;
    *piece = (struct model_managed){.at = at, .size = size, .byte = (uint8_t)random_below(256)};
    piece->at[size - 1] = (char)piece->byte;
}

static bool is_registered(uint64_t first, uint64_t count) {
    for (uint64_t i = 0; i < HOST_PAGES; i++) {
        if (registered[i] && i < first + count && first < i + registered[i])
            return true;
    }
    return false;
}

static void do_register(void) {
    uint64_t first = random_below(HOST_PAGES), count = 1 + random_below(HOST_PAGES - first);
    char *at = host_pages + first * 4096;
    void *device_at = NULL;
    if (random_below(2)) {
        int code = aclrtHostRegister(at, count * 4096, ACL_HOST_REGISTER_MAPPED, &device_at);
        CHECK_EQ(code, current < 0                   ? ACL_ERROR_RT_CONTEXT_NULL
                       : is_registered(first, count) ? ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED
                                                     : ACL_SUCCESS);
        if (code)
            return;
        registered[first] = count;
        at[0] = (char)random_below(256);
        char got = (char)~at[0];
        OK(aclrtMemcpy(&got, 1, device_at, 1, ACL_MEMCPY_DEVICE_TO_HOST));
        CHECK_EQ(got, at[0]);
    } else {
        CHECK_EQ(aclrtHostUnregister(at), registered[first] ? ACL_SUCCESS : ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
        registered[first] = 0;
    }
}

/* The counts of everything here; one thread only, as they are those of the process. */
static void check_virtual_memory(const hostacl_live_t *live) {
    uint64_t range_count = 0, handle_count = 0, mapping_count = 0, registered_count = 0;
    uint64_t export_count = 0, managed_count = 0;
    for (int i = 0; i < RANGES; i++)
        range_count += ranges[i].start != NULL;
    for (int i = 0; i < HANDLES; i++) {
        handle_count += handles[i].alive;
        export_count += handles[i].alive && handles[i].exported;
    }
    for (int i = 0; i < MAPPINGS; i++)
        mapping_count += mappings[i].at != NULL;
    for (int i = 0; i < HOST_PAGES; i++)
        registered_count += registered[i] != 0;
    for (int i = 0; i < MANAGED; i++)
        managed_count += managed[i].at != NULL;
    CHECK_EQ(live->exports, export_count);
    CHECK_EQ(live->managed, managed_count);
    CHECK_EQ(live->reservations, range_count);
    CHECK_EQ(live->handles, handle_count);
    CHECK_EQ(live->mappings, mapping_count);
    CHECK_EQ(live->registered, registered_count);
}

static void start_virtual_memory(void) {
    host_pages = aligned_alloc(4096, HOST_PAGES * 4096);
    memset(host_pages, 0, HOST_PAGES * 4096);
}

/* After the reset of the thread's devices: what outlives them. */
static void end_virtual_memory(void) {
    for (int device = 0; device < DEVICES; device++) {
        for (int i = 0; i < HANDLES; i++) {
            while (handles[i].alive && handles[i].device == device && handles[i].references) {
                OK(aclrtFreePhysical(handles[i].handle));
                handles[i].references--;
            }
        }
    }
    for (int i = 0; i < MAPPINGS; i++) {
        if (mappings[i].at)
            OK(aclrtUnmapMem(mappings[i].at));
    }
    for (int i = 0; i < RANGES; i++) {
        if (ranges[i].start)
            OK(aclrtReleaseMemAddress(ranges[i].start));
    }
    for (int i = 0; i < HOST_PAGES; i++) {
        if (registered[i])
            OK(aclrtHostUnregister(host_pages + i * 4096));
    }
    for (int i = 0; i < MANAGED; i++) {
        if (managed[i].at)
            OK(aclrtFree(managed[i].at));
    }
    free(host_pages);
}

static void do_virtual_memory(void) {
    static void (*const steps[])(void) = {do_reserve,
                                          do_reserve,
                                          do_release,
                                          do_malloc_physical,
                                          do_malloc_physical,
                                          do_free_physical,
                                          do_map,
                                          do_map,
                                          do_map,
                                          do_map,
                                          do_unmap,
                                          do_unmap,
                                          do_retain,
                                          do_access,
                                          do_mapped_bytes,
                                          do_mapped_bytes,
                                          do_ask_about_range,
                                          do_register,
                                          do_export,
                                          do_managed,
                                          do_advice};
    steps[random_below(sizeof(steps) / sizeof(steps[0]))]();
}

#endif
