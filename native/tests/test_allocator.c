/* Custom allocators: what is registered for a stream is given back, and never called. */
#include "acl/acl_rt_allocator.h"
#include "virtual_memory.h"

static char object, first_stream, second_stream;

static void *take(aclrtAllocator allocator, size_t size) {
    (void)allocator;
    (void)size;
    abort();
}

static void give(aclrtAllocator allocator, aclrtAllocatorBlock block) {
    (void)allocator;
    (void)block;
    abort();
}

static void *take_at(aclrtAllocator allocator, size_t size, aclrtAllocatorAddr addr) {
    (void)allocator;
    (void)size;
    (void)addr;
    abort();
}

static void *address(aclrtAllocatorBlock block) {
    (void)block;
    abort();
}

/* What GetByStream gives. */
struct got {
    aclrtAllocatorDesc desc;
    aclrtAllocator object;
    aclrtAllocatorAllocFunc alloc;
    aclrtAllocatorFreeFunc free;
    aclrtAllocatorAllocAdviseFunc advise;
    aclrtAllocatorGetAddrFromBlockFunc address;
};

static int get(void *stream, struct got *got) {
    return aclrtAllocatorGetByStream(stream, &got->desc, &got->object, &got->alloc, &got->free, &got->advise,
                                     &got->address);
}

static aclrtAllocatorDesc full(void) {
    aclrtAllocatorDesc desc = aclrtAllocatorCreateDesc();
    CHECK(desc != NULL);
    OK(aclrtAllocatorSetObjToDesc(desc, &object));
    OK(aclrtAllocatorSetAllocFuncToDesc(desc, take));
    OK(aclrtAllocatorSetFreeFuncToDesc(desc, give));
    OK(aclrtAllocatorSetAllocAdviseFuncToDesc(desc, take_at));
    OK(aclrtAllocatorSetGetAddrFromBlockFuncToDesc(desc, address));
    return desc;
}

static void test_arguments(void) {
    struct got got = {0};
    start(NULL);
    aclrtAllocatorDesc desc = aclrtAllocatorCreateDesc();
    CHECK_EQ(live_now().allocators, 1);
    CHECK_EQ(aclrtAllocatorSetObjToDesc(NULL, &object), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtAllocatorSetObjToDesc(desc, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtAllocatorSetAllocFuncToDesc(desc, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtAllocatorSetFreeFuncToDesc(&object, give), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtAllocatorRegister(&first_stream, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtAllocatorRegister(NULL, desc), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtAllocatorRegister(&first_stream, desc), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtAllocatorRegister(&first_stream, &object), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(get(&first_stream, &got), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(get(NULL, &got), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(
        aclrtAllocatorGetByStream(&first_stream, NULL, &got.object, &got.alloc, &got.free, &got.advise, &got.address),
        ACL_ERROR_INVALID_PARAM);
    CHECK(!got.desc && !got.object);
    CHECK_EQ(aclrtAllocatorUnregister(NULL), ACL_ERROR_INVALID_PARAM);
    OK(aclrtAllocatorUnregister(&first_stream));
    CHECK_EQ(aclrtAllocatorDestroyDesc(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtAllocatorDestroyDesc(&object), ACL_ERROR_INVALID_PARAM);
    OK(aclrtAllocatorDestroyDesc(desc));
    CHECK_EQ(aclrtAllocatorDestroyDesc(desc), ACL_ERROR_INVALID_PARAM);
    check_nothing_alive();
}

static void test_streams(void) {
    struct got got = {0};
    start(NULL);
    aclrtAllocatorDesc desc = full(), other = full();
    OK(aclrtAllocatorSetObjToDesc(other, &first_stream));
    OK(aclrtAllocatorRegister(&first_stream, desc));
    OK(aclrtAllocatorRegister(&second_stream, other));
    OK(get(&first_stream, &got));
    CHECK(got.desc == desc && got.object == &object && got.alloc == take && got.free == give);
    CHECK(got.advise == take_at && got.address == address);
    OK(get(&second_stream, &got));
    CHECK(got.desc == other && got.object == &first_stream);
    OK(aclrtAllocatorRegister(&first_stream, other));
    OK(get(&first_stream, &got));
    CHECK(got.desc == other);
    OK(aclrtAllocatorUnregister(&second_stream));
    CHECK_EQ(get(&second_stream, &got), ACL_ERROR_INVALID_PARAM);
    OK(aclrtAllocatorDestroyDesc(other));
    OK(get(&first_stream, &got));
    CHECK(got.object == &first_stream);
    OK(aclrtAllocatorUnregister(&first_stream));
    OK(aclrtAllocatorDestroyDesc(desc));
    check_nothing_alive();
}

static void test_reset(void) {
    struct got got = {0};
    start(NULL);
    aclrtAllocatorDesc desc = full();
    OK(aclrtAllocatorRegister(&first_stream, desc));
    OK(hostacl_reset());
    CHECK_EQ(get(&first_stream, &got), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtAllocatorDestroyDesc(desc), ACL_ERROR_INVALID_PARAM);
    check_nothing_alive();
}

int main(void) {
    test_arguments();
    test_streams();
    test_reset();
    start(NULL);
    check_nothing_alive();
    return check_done();
}
