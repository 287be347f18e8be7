/* Exported: copies of many pieces in one call, at once and in stream order.
 *
 * Each attribute says for the pieces from its index on where source and destination are; pieces go from host to device
 * or back. The pieces are copied in their order up to the first that is refused; its index goes to failIndex, SIZE_MAX
 * when there is none. Bad arguments leave failIndex alone. The second version of both calls does without the index.
 * Thread safety: any thread, any time. */
#include "acl/acl.h"
#include "async_copy.h"
#include "context.h"
#include "device.h"
#include "entry.h"
#include "errors.h"
#include "place.h"
#include "stream.h"
#include "table.h"

/* The arguments of both forms. */
struct batch {
    void **dsts;
    const size_t *dest_maxs;
    void **srcs;
    const size_t *sizes;
    size_t count;
    const aclrtMemcpyBatchAttr *attrs;
    const size_t *attrs_indexes;
    size_t num_attrs;
    size_t *fail_index;        /* where the index of the first refused piece goes; null in the second version */
    bool tells_index;          /* the first version, which has that argument */
    enum function_id function; /* of tasks */
};

static bool all_empty(const struct batch *batch) {
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->sizes[i])
            return false;
    }
    return true;
}

static int check_pointers(const struct batch *batch) {
    const void *const needed[] = {batch->dsts, batch->dest_maxs, batch->srcs, batch->attrs, batch->attrs_indexes};
    static const char *const names[] = {"dsts", "destMaxs", "srcs", "attrs", "attrsIndexes"};
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        if (!needed[i])
            return error_null(names[i]);
    }
    return ACL_SUCCESS;
}

/* The attributes start at piece 0 and follow each other; returns a code. */
static int check_attrs(const struct batch *batch) {
    if (!batch->num_attrs)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "numAttrs is 0");
    for (size_t i = 0; i < batch->num_attrs; i++) {
        size_t index = batch->attrs_indexes[i];
        if (i ? index <= batch->attrs_indexes[i - 1] || index >= batch->count : index != 0)
            return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID,
                               "attrsIndexes[%zu] is %zu; they rise from 0 to below %zu", i, index, batch->count);
        for (size_t k = 0; k < sizeof(batch->attrs[i].rsv); k++) {
            if (batch->attrs[i].rsv[k])
                return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "attrs[%zu].rsv is not zero", i);
        }
    }
    return ACL_SUCCESS;
}

/* Sizes and pointers of the pieces; returns a code. */
static int check_pieces(const struct batch *batch) {
    for (size_t i = 0; i < batch->count; i++) {
        bool null = batch->sizes[i] && (!batch->dsts[i] || !batch->srcs[i]);
        if (!null && batch->dest_maxs[i] >= batch->sizes[i])
            continue;
        if (null)
            return error_raise(ERROR_NULL, ACL_ERROR_INVALID_PARAM, "piece %zu has a null address", i);
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "piece %zu: size %zu is above destMax %zu", i,
                           batch->sizes[i], batch->dest_maxs[i]);
    }
    return ACL_SUCCESS;
}

static int check_batch(const struct batch *batch) {
    int code = check_pointers(batch);
    if (!code && batch->tells_index && !batch->fail_index)
        code = error_null("failIndex");
    if (!code)
        code = check_pieces(batch);
    return code ? code : check_attrs(batch);
}

/* Whether an address is where its attribute says. */
static bool is_at(const aclrtMemLocation *location, const void *addr) {
    struct place place = place_of((uint64_t)(uintptr_t)addr);
    if (location->type == ACL_MEM_LOCATION_TYPE_DEVICE)
        return place.kind == PLACE_DEVICE && device_at((int32_t)location->id);
    return place.kind == PLACE_PINNED || place.kind == PLACE_UNREGISTERED;
}

/* Whether a piece goes from host to device or back, and is where its attribute says; returns a code. The table lock is
 * held. */
static int check_place(const struct batch *batch, size_t i, const aclrtMemcpyBatchAttr *attr) {
    aclrtMemLocationType to = attr->dstLoc.type, from = attr->srcLoc.type;
    bool good = (to == ACL_MEM_LOCATION_TYPE_DEVICE && from == ACL_MEM_LOCATION_TYPE_HOST) ||
                (to == ACL_MEM_LOCATION_TYPE_HOST && from == ACL_MEM_LOCATION_TYPE_DEVICE);
    if (!good)
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID,
                           "piece %zu goes from location type %d to %d, not between host and device", i, (int)from,
                           (int)to);
    if (!is_at(&attr->dstLoc, batch->dsts[i]) || !is_at(&attr->srcLoc, batch->srcs[i]))
        return error_raise(ERROR_ARGUMENT, ACL_ERROR_RT_PARAM_INVALID, "piece %zu is not where its attribute says", i);
    return ACL_SUCCESS;
}

/* Does one piece: at once where stream is null, else as a task. Returns a code. The table lock is held. */
static int do_piece(const struct batch *batch, size_t i, struct stream *stream, bool *at_once) {
    struct copy_route route;
    struct copy copy = {.to.addr = (uint64_t)(uintptr_t)batch->dsts[i],
                        .from.addr = (uint64_t)(uintptr_t)batch->srcs[i],
                        .width = batch->sizes[i],
                        .rows = 1};
    if (!stream) {
        table_unlock();
        int code = copy_run(&copy);
        table_lock();
        return code;
    }
    int code = async_copy_plan(&copy, ACL_MEMCPY_DEFAULT, &route);
    *at_once = *at_once || route.at_once;
    return code ? code : async_copy_submit(stream, &copy, NULL, batch->function);
}

/* Does the pieces up to the first that is refused; returns a code. The table lock is held. */
static int do_pieces(const struct batch *batch, struct stream *stream) {
    bool at_once = false;
    size_t attr = 0;
    int code = stream ? stream_check_wait(stream) : ACL_SUCCESS;
    size_t failed = SIZE_MAX;
    for (size_t i = 0; i < batch->count && !code; i++) {
        if (attr + 1 < batch->num_attrs && batch->attrs_indexes[attr + 1] == i)
            attr++;
        if (batch->sizes[i])
            code = check_place(batch, i, &batch->attrs[attr]);
        if (batch->sizes[i] && !code)
            code = do_piece(batch, i, stream, &at_once);
        if (code)
            failed = i;
    }
    if (batch->fail_index)
        *batch->fail_index = failed;
    int waited = at_once ? stream_wait(stream, NEVER) : ACL_SUCCESS;
    return code ? code : waited;
}

/* Both forms after the entry; handle is the stream, or null with async unset. */
static int run_batch(const struct batch *batch, bool async, const void *handle) {
    struct stream *stream = NULL;
    int code;
    if (!batch->sizes || !batch->count)
        return batch->sizes ? error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "numBatches is 0")
                            : error_null("sizes");
    if (all_empty(batch)) {
        if (batch->fail_index)
            *batch->fail_index = SIZE_MAX;
        return ACL_SUCCESS;
    }
    code = check_batch(batch);
    if (code)
        return code;
    table_lock();
    if (async)
        stream = stream_need(handle, true, &code);
    else
        code = context_need() ? ACL_SUCCESS : ACL_ERROR_RT_CONTEXT_NULL;
    if (!code)
        code = do_pieces(batch, stream);
    table_unlock();
    return code;
}

aclError aclrtMemcpyBatch(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes, size_t numBatches,
                          aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes, size_t numAttrs, size_t *failIndex) {
    ENTER(aclrtMemcpyBatch, IN(dsts), IN(destMaxs), IN(srcs), IN(sizes), numBatches, IN(attrs), IN(attrsIndexes),
          numAttrs, failIndex);
    struct batch batch = {dsts,
                          destMaxs,
                          srcs,
                          sizes,
                          numBatches,
                          attrs,
                          attrsIndexes,
                          numAttrs,
                          failIndex,
                          true,
                          FUNCTION_aclrtMemcpyBatch};
    return run_batch(&batch, false, NULL);
}

aclError aclrtMemcpyBatchAsync(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes, size_t numBatches,
                               aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes, size_t numAttrs, size_t *failIndex,
                               aclrtStream stream) {
    ENTER(aclrtMemcpyBatchAsync, IN(dsts), IN(destMaxs), IN(srcs), IN(sizes), numBatches, IN(attrs), IN(attrsIndexes),
          numAttrs, failIndex, stream);
    struct batch batch = {dsts,
                          destMaxs,
                          srcs,
                          sizes,
                          numBatches,
                          attrs,
                          attrsIndexes,
                          numAttrs,
                          failIndex,
                          true,
                          FUNCTION_aclrtMemcpyBatchAsync};
    return run_batch(&batch, true, stream);
}

aclError aclrtMemcpyBatchV2(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes, size_t numBatches,
                            aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes, size_t numAttrs) {
    ENTER(aclrtMemcpyBatchV2, IN(dsts), IN(destMaxs), IN(srcs), IN(sizes), numBatches, IN(attrs), IN(attrsIndexes),
          numAttrs);
    struct batch batch = {dsts,
                          destMaxs,
                          srcs,
                          sizes,
                          numBatches,
                          attrs,
                          attrsIndexes,
                          numAttrs,
                          NULL,
                          false,
                          FUNCTION_aclrtMemcpyBatchV2};
    return run_batch(&batch, false, NULL);
}

aclError aclrtMemcpyBatchAsyncV2(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes, size_t numBatches,
                                 aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes, size_t numAttrs,
                                 aclrtStream stream) {
    ENTER(aclrtMemcpyBatchAsyncV2, IN(dsts), IN(destMaxs), IN(srcs), IN(sizes), numBatches, IN(attrs), IN(attrsIndexes),
          numAttrs, stream);
    struct batch batch = {dsts,
                          destMaxs,
                          srcs,
                          sizes,
                          numBatches,
                          attrs,
                          attrsIndexes,
                          numAttrs,
                          NULL,
                          false,
                          FUNCTION_aclrtMemcpyBatchAsyncV2};
    return run_batch(&batch, true, stream);
}
