/* Variables of devices under symbols that hostacl_symbol names. */
#include "streams.h"

static uint32_t counters[4]; /* its address is the symbol */
static aclrtStream stream;

static void set_up(void) {
    start(NULL);
    OK(hostacl_symbol(counters, sizeof(counters)));
    OK(aclrtSetDevice(0));
    stream = new_stream();
}

static void tear_down(void) {
    OK(aclrtResetDeviceForce(0));
    OK(hostacl_symbol(counters, 0));
    check_nothing_alive();
}

static uint32_t read_counter(size_t index) {
    uint32_t value = 77;
    OK(aclrtMemcpyFromSymbol(&value, sizeof(value), counters, sizeof(value), index * sizeof(value),
                             ACL_MEMCPY_DEVICE_TO_HOST));
    return value;
}

static void write_counter(size_t index, uint32_t value) {
    OK(aclrtMemcpyToSymbol(counters, &value, sizeof(value), index * sizeof(value), ACL_MEMCPY_HOST_TO_DEVICE));
}

static void test_use(void) {
    void *at = NULL, *again = NULL;
    size_t size = 0;
    uint32_t values[4] = {1, 2, 3, 4}, seen[4] = {0};
    set_up();
    OK(aclrtGetSymbolSize(counters, &size));
    CHECK_EQ(size, sizeof(counters));
    CHECK_EQ(read_counter(3), 0);
    write_counter(3, 9);
    CHECK_EQ(read_counter(3), 9);
    CHECK_EQ(read_counter(2), 0);
    OK(aclrtGetSymbolAddress(counters, &at));
    OK(aclrtGetSymbolAddress(counters, &again));
    CHECK(at && at == again && at != counters);
    OK(aclrtMemcpy(seen, 16, at, 16, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(seen[3] == 9 && counters[3] == 0);
    CHECK_EQ(aclrtFree(at), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtMemcpyToSymbolAsync(counters, values, 16, 0, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    OK(aclrtMemcpyFromSymbolAsync(seen, 16, counters, 12, 4, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    OK(aclrtSynchronizeStream(stream));
    CHECK(seen[0] == 2 && seen[1] == 3 && seen[2] == 4);
    tear_down();
}

/* Each device has its own; a reset takes it away. */
static void test_devices(void) {
    set_up();
    write_counter(0, 5);
    OK(aclrtSetDevice(1));
    CHECK_EQ(read_counter(0), 0);
    write_counter(0, 6);
    OK(aclrtSetDevice(0));
    CHECK_EQ(read_counter(0), 5);
    CHECK_EQ(live_now().devices[1].pages_4k_used, 1);
    OK(aclrtSetDevice(1));
    OK(aclrtResetDeviceForce(1));
    OK(aclrtSetDevice(1));
    CHECK_EQ(read_counter(0), 0);
    OK(aclrtResetDeviceForce(1));
    OK(aclrtSetDevice(0));
    CHECK_EQ(read_counter(0), 5);
    tear_down();
}

static void test_order(void) {
    uint32_t *pinned;
    set_up();
    pinned = (uint32_t *)new_pinned(16, 1);
    write_counter(0, 0);
    OK(hostacl_hold(0));
    OK(aclrtMemcpyToSymbolAsync(counters, pinned, 16, 0, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    CHECK_EQ(read_counter(0), 0);
    OK(hostacl_release(0));
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(read_counter(0), 0x01010101);
    OK(hostacl_hold(0));
    OK(aclrtMemcpyFromSymbolAsync(pinned, 16, counters, 16, 0, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    OK(hostacl_symbol(counters, 0));
    OK(hostacl_release(0));
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(hostacl_symbol(counters, sizeof(counters)));
    OK(aclrtFreeHost(pinned));
    tear_down();
}

static void test_arguments(void) {
    const aclrtMemcpyKind IN = ACL_MEMCPY_HOST_TO_DEVICE, OUT = ACL_MEMCPY_DEVICE_TO_HOST;
    uint32_t value = 1;
    void *at = NULL;
    size_t size = 77;
    start(NULL);
    CHECK_EQ(hostacl_symbol(NULL, 4), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(hostacl_symbol(counters, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(hostacl_symbol(counters, UINT64_MAX), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetSymbolAddress(counters, &at), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtGetSymbolSize(counters, &size), ACL_ERROR_RT_PARAM_INVALID);
    set_up();
    CHECK_EQ(hostacl_symbol(counters, 8), ACL_ERROR_INVALID_PARAM);
    OK(hostacl_symbol(counters, sizeof(counters)));
    CHECK_EQ(aclrtGetSymbolAddress(&value, &at), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtGetSymbolAddress(NULL, &at), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetSymbolAddress(counters, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetSymbolSize(NULL, &size), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetSymbolSize(counters, NULL), ACL_ERROR_INVALID_PARAM);
    OK(aclrtMemcpyToSymbol(NULL, NULL, 0, 99, (aclrtMemcpyKind)99));
    CHECK_EQ(aclrtMemcpyToSymbol(NULL, &value, 4, 0, IN), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemcpyToSymbol(counters, NULL, 4, 0, IN), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemcpyToSymbol(counters, &value, 4, 0, (aclrtMemcpyKind)5), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemcpyToSymbol(counters, &value, 4, 13, IN), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemcpyToSymbol(counters, &value, 4, SIZE_MAX, IN), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemcpyToSymbol(&value, &value, 4, 0, IN), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemcpyFromSymbol(&value, 3, counters, 4, 0, OUT), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemcpyFromSymbol(NULL, 4, counters, 4, 0, OUT), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemcpyFromSymbolAsync(&value, 3, counters, 4, 0, OUT, stream), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemcpyToSymbolAsync(counters, &value, 4, 0, IN, &value), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK(value == 1 && size == 77);
    tear_down();
}

static void test_no_memory(void) {
    void *at = NULL;
    start("pages_4k", "0", "pages_2m", "2M", "pages_1g", "0", NULL);
    OK(hostacl_symbol(counters, sizeof(counters)));
    OK(aclrtSetDevice(0));
    CHECK_EQ(aclrtGetSymbolAddress(counters, &at), ACL_ERROR_RT_MEMORY_ALLOCATION);
    OK(aclrtResetDevice(0));
    OK(hostacl_reset());
    CHECK_EQ(aclrtGetSymbolSize(counters, &(size_t){0}), ACL_ERROR_RT_PARAM_INVALID);
}

int main(void) {
    test_use();
    test_devices();
    test_order();
    test_arguments();
    test_no_memory();
    start(NULL);
    check_nothing_alive();
    return check_done();
}
