/* Stream-ordered memory pools: arguments, what is reused when, figures, limits, what ends them. */
#include "virtual_memory.h"

static aclrtMemPool pool;
static aclrtStream stream, other;

static aclrtMemPoolProps props_of(uint32_t device, size_t max_size) {
    return (aclrtMemPoolProps){.location = {.id = device, .type = ACL_MEM_LOCATION_TYPE_DEVICE}, .maxSize = max_size};
}

static void set_up(size_t max_size) {
    aclrtMemPoolProps props = props_of(0, max_size);
    start("profile", "strict", NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    OK(aclrtCreateStream(&other));
    OK(aclrtMemPoolCreate(&pool, &props));
}

static void tear_down(void) {
    OK(aclrtMemPoolDestroy(pool));
    OK(aclrtDestroyStream(stream));
    OK(aclrtDestroyStream(other));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

static uint64_t figure(aclrtMemPoolAttr attr) {
    uint64_t value = 77;
    OK(aclrtMemPoolGetAttr(pool, attr, &value));
    return value;
}

static void set_figure(aclrtMemPoolAttr attr, uint64_t value) {
    OK(aclrtMemPoolSetAttr(pool, attr, &value));
}

static void *take(uint64_t size, aclrtStream of) {
    void *ptr = NULL;
    OK(aclrtMemPoolMallocAsync(&ptr, size, pool, of));
    return ptr;
}

static void test_arguments(void) {
    aclrtMemPoolProps good = props_of(0, 0), bad = good;
    aclrtMemPool out = UNTOUCHED;
    void *ptr = UNTOUCHED, *block = NULL;
    uint64_t value = 0;
    set_up(0);
    CHECK_EQ(aclrtMemPoolCreate(NULL, &good), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemPoolCreate(&out, NULL), ACL_ERROR_INVALID_PARAM);
    bad.allocType = (aclrtMemAllocationType)1;
    CHECK_EQ(aclrtMemPoolCreate(&out, &bad), ACL_ERROR_INVALID_PARAM);
    bad = good;
    bad.handleType = ACL_MEM_HANDLE_TYPE_POSIX;
    CHECK_EQ(aclrtMemPoolCreate(&out, &bad), ACL_ERROR_INVALID_PARAM);
    bad = good;
    bad.location.type = ACL_MEM_LOCATION_TYPE_HOST;
    CHECK_EQ(aclrtMemPoolCreate(&out, &bad), ACL_ERROR_INVALID_PARAM);
    bad = good;
    bad.location.id = 2;
    CHECK_EQ(aclrtMemPoolCreate(&out, &bad), ACL_ERROR_RT_INVALID_DEVICEID);
    bad = good;
    bad.reserved[31] = 1;
    CHECK_EQ(aclrtMemPoolCreate(&out, &bad), ACL_ERROR_RT_PARAM_INVALID);
    CHECK(out == UNTOUCHED);
    OK(aclrtMemPoolMallocAsync(NULL, 0, NULL, NULL));
    CHECK_EQ(aclrtMemPoolMallocAsync(NULL, 64, pool, stream), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemPoolMallocAsync(&ptr, 64, NULL, stream), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemPoolMallocAsync(&ptr, 64, pool, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemPoolMallocAsync(&ptr, 64, stream, stream), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemPoolMallocAsync(&ptr, 64, pool, pool), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(aclrtMemPoolMallocAsync(&ptr, 100 * GIB, pool, stream), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK_EQ(aclrtMemPoolMallocAsync(&ptr, UINT64_MAX, pool, stream), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK(ptr == UNTOUCHED);
    CHECK_EQ(aclrtMemPoolFreeAsync(NULL, stream), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemPoolFreeAsync(ptr, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemPoolFreeAsync(&value, stream), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_EQ(aclrtMemPoolFreeAsync(block, stream), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtFree(block));
    CHECK_EQ(aclrtMemPoolGetAttr(NULL, 5, &value), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemPoolGetAttr(pool, 5, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemPoolGetAttr(pool, 0, &value), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemPoolGetAttr(pool, 9, &value), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemPoolSetAttr(pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT, &value), ACL_ERROR_RT_PARAM_INVALID);
    value = 1;
    CHECK_EQ(aclrtMemPoolSetAttr(pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH, &value), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemPoolTrimTo(NULL, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemPoolTrimTo(&value, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemPoolDestroy(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemPoolDestroy(&value), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(live_now().mem_pools, 1);
    tear_down();
    CHECK_EQ(aclrtMemPoolDestroy(pool), ACL_ERROR_RT_PARAM_INVALID);
}

/* A block is usable in the order of the stream; with threshold 0 it goes when the stream has come to its free. */
static void test_use(void) {
    set_up(0);
    uint64_t before = free_bytes(ACL_HBM_MEM);
    uint8_t in[5000], out[5000] = {0};
    memset(in, 9, sizeof(in));
    void *ptr = take(5000, stream);
    CHECK_EQ(figure(ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT), 8192);
    CHECK_EQ(figure(ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT), 8192);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), before - 8192);
    OK(aclrtMemcpyAsync(ptr, 5000, in, 5000, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    OK(aclrtMemcpyAsync(out, 5000, ptr, 5000, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    CHECK_EQ(aclrtFree(ptr), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtMemPoolFreeAsync(ptr, stream));
    CHECK_EQ(aclrtMemPoolFreeAsync(ptr, stream), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtSynchronizeStream(stream));
    CHECK(!memcmp(in, out, sizeof(in)));
    CHECK_EQ(figure(ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT), 0);
    CHECK_EQ(figure(ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT), 0);
    CHECK_EQ(figure(ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH), 8192);
    CHECK_EQ(figure(ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH), 8192);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), before);
    CHECK_EQ(poke(ptr, 1), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    set_figure(ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH, 0);
    CHECK_EQ(figure(ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH), 0);
    ptr = take(3 * MIB, stream);
    CHECK_EQ(figure(ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT), 4 * MIB);
    OK(aclrtMemPoolFreeAsync(ptr, stream));
    OK(aclrtSynchronizeStream(stream));
    tear_down();
}

static void hold(void *user) {
    while (!atomic_load((atomic_bool *)user))
        ;
}

/* Before the stream has come to a free the block serves the same stream only. */
static void test_order(void) {
    static atomic_bool go;
    set_up(0);
    set_figure(ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, UINT64_MAX);
    atomic_store(&go, false);
    void *first = take(MIB, stream);
    OK(aclrtLaunchHostFunc(stream, hold, &go));
    OK(aclrtMemPoolFreeAsync(first, stream));
    void *elsewhere = take(MIB, other);
    CHECK(elsewhere != first);
    void *again = take(MIB, stream);
    CHECK(again == first);
    atomic_store(&go, true);
    OK(aclrtSynchronizeStream(stream));
    OK(poke(again, 4));
    CHECK_EQ(peek(again), 4);
    CHECK_EQ(figure(ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT), 2 * MIB);
    OK(aclrtMemPoolFreeAsync(again, stream));
    OK(aclrtSynchronizeStream(stream));
    void *third = take(MIB, other);
    CHECK(third == first);
    OK(aclrtMemPoolFreeAsync(third, other));
    OK(aclrtMemPoolFreeAsync(elsewhere, other));
    OK(aclrtSynchronizeStream(other));
    tear_down();
}

/* Without opportunistic reuse a free block serves only the stream that freed it. */
static void test_reuse_attribute(void) {
    int32_t no = 0, got = 77;
    set_up(0);
    set_figure(ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, UINT64_MAX);
    OK(aclrtMemPoolGetAttr(pool, ACL_RT_MEM_POOL_REUSE_ALLOW_OPPORTUNISTIC, &got));
    CHECK_EQ(got, 1);
    OK(aclrtMemPoolSetAttr(pool, ACL_RT_MEM_POOL_REUSE_ALLOW_OPPORTUNISTIC, &no));
    OK(aclrtMemPoolGetAttr(pool, ACL_RT_MEM_POOL_REUSE_ALLOW_OPPORTUNISTIC, &got));
    CHECK_EQ(got, 0);
    void *first = take(MIB, stream);
    OK(aclrtMemPoolFreeAsync(first, stream));
    OK(aclrtSynchronizeStream(stream));
    void *second = take(MIB, other);
    CHECK(second != first);
    CHECK(take(MIB, stream) == first);
    OK(aclrtResetDevice(0));
    CHECK_EQ(aclrtMemPoolDestroy(pool), ACL_ERROR_RT_PARAM_INVALID);
    check_nothing_alive();
}

/* The threshold keeps free blocks; a trim gives them back; a large block is not wasted on a small request. */
static void test_threshold(void) {
    set_up(0);
    set_figure(ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, 4 * MIB);
    CHECK_EQ(figure(ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD), 4 * MIB);
    void *blocks[4];
    for (int i = 0; i < 4; i++)
        blocks[i] = take(2 * MIB, stream);
    for (int i = 0; i < 4; i++)
        OK(aclrtMemPoolFreeAsync(blocks[i], stream));
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(figure(ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT), 4 * MIB);
    CHECK_EQ(figure(ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT), 0);
    void *small = take(100, stream);
    CHECK_EQ(figure(ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT), 4 * MIB + 4096);
    OK(aclrtMemPoolTrimTo(pool, 3 * MIB));
    CHECK_EQ(figure(ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT), 2 * MIB + 4096);
    OK(aclrtMemPoolTrimTo(pool, 0));
    CHECK_EQ(figure(ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT), 4096);
    OK(poke(small, 3));
    OK(aclrtMemPoolFreeAsync(small, stream));
    OK(aclrtSynchronizeStream(stream));
    tear_down();
}

/* The pool's own limit, and a device that is short: what pools keep is given back first. */
static void test_limits(void) {
    void *ptr = UNTOUCHED, *block = NULL;
    set_up(6 * MIB);
    set_figure(ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, UINT64_MAX);
    void *first = take(2 * MIB, stream);
    CHECK_EQ(aclrtMemPoolMallocAsync(&ptr, 5 * MIB, pool, stream), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK(ptr == UNTOUCHED);
    OK(aclrtMemPoolFreeAsync(first, stream));
    OK(aclrtSynchronizeStream(stream));
    first = take(5 * MIB, stream);
    OK(aclrtMemPoolFreeAsync(first, stream));
    OK(aclrtSynchronizeStream(stream));
    tear_down();
    aclrtMemPoolProps props = props_of(0, 0);
    start("pages_2m", "8M", "pages_4k", "4M", "pages_1g", "0", "profile", "strict", NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    OK(aclrtCreateStream(&other));
    OK(aclrtMemPoolCreate(&pool, &props));
    set_figure(ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, UINT64_MAX);
    first = take(6 * MIB, stream);
    CHECK_EQ(aclrtMallocAlign32(&block, 4 * MIB, ACL_MEM_MALLOC_HUGE_ONLY), ACL_ERROR_RT_MEMORY_ALLOCATION);
    OK(aclrtMemPoolFreeAsync(first, stream));
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(figure(ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT), 6 * MIB);
    OK(aclrtMallocAlign32(&block, 4 * MIB, ACL_MEM_MALLOC_HUGE_ONLY));
    CHECK_EQ(figure(ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT), 0);
    OK(aclrtFree(block));
    tear_down();
}

/* A destroyed pool lives on in its blocks; a stream that is destroyed by force frees what it was to free. */
static void test_ends(void) {
    set_up(0);
    void *ptr = take(64, stream);
    OK(aclrtMemPoolDestroy(pool));
    CHECK_EQ(live_now().mem_pools, 0);
    CHECK_EQ(aclrtMemPoolDestroy(pool), ACL_ERROR_RT_PARAM_INVALID);
    OK(poke(ptr, 8));
    OK(aclrtMemPoolFreeAsync(ptr, stream));
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(live_now().blocks, 0);
    aclrtMemPoolProps props = props_of(0, 0);
    OK(aclrtMemPoolCreate(&pool, &props));
    ptr = take(64, stream);
    OK(hostacl_hold(0));
    OK(aclrtMemPoolFreeAsync(ptr, stream));
    OK(aclrtDestroyStreamForce(stream));
    CHECK_EQ(figure(ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT), 0);
    OK(hostacl_release(0));
    OK(aclrtCreateStream(&stream));
    tear_down();
}

/* A pool keeps its device open; streams of another device cannot use it. */
static void test_devices(void) {
    aclrtMemPoolProps props = props_of(1, 0);
    void *ptr = UNTOUCHED;
    start(NULL);
    OK(aclrtMemPoolCreate(&pool, &props));
    CHECK_EQ(hostacl_configure("devices", "4"), ACL_ERROR_RELATIVE_RESOURCE_NOT_CLEARED);
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    CHECK_EQ(aclrtMemPoolMallocAsync(&ptr, 64, pool, stream), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtDestroyStream(stream));
    OK(aclrtResetDevice(0));
    OK(aclrtMemPoolDestroy(pool));
    OK(hostacl_configure("devices", "4"));
    check_nothing_alive();
}

static void test_products(void) {
    aclrtMemPoolProps props = props_of(0, 0);
    void *ptr = UNTOUCHED;
    static const char *const without[] = {"Ascend910_9391", "Ascend950PR_9599", "Ascend310P3"};
    for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
        start("soc_name", without[i], NULL);
        CHECK_EQ(aclrtMemPoolCreate(&pool, &props), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
        CHECK_EQ(aclrtMemPoolMallocAsync(&ptr, 64, (void *)16, (void *)16), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
        CHECK_EQ(aclrtMemPoolTrimTo((void *)16, 0), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
        OK(aclrtMemPoolMallocAsync(&ptr, 0, (void *)16, (void *)16));
    }
}

int main(void) {
    test_arguments();
    test_use();
    test_order();
    test_reuse_attribute();
    test_threshold();
    test_limits();
    test_ends();
    test_devices();
    test_products();
    start(NULL);
    check_nothing_alive();
    return check_done();
}
