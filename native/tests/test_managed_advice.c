/* What a program says about managed memory, and what it reads back. */
#include "streams.h"

#define UNIT (2 * MIB)

static void *at;
static const aclrtMemManagedLocation nowhere = {ACL_MEM_LOCATIONTYPE_INVALID, 0};
static const aclrtMemManagedLocation on_host = {ACL_MEM_LOCATIONTYPE_HOST, 0};
static const aclrtMemManagedLocation on_device_1 = {ACL_MEM_LOCATIONTYPE_DEVICE, 1};

static void set_up(void) {
    start(NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMemAllocManaged(&at, 3 * UNIT, ACL_RT_MEM_ATTACH_GLOBAL));
}

static void tear_down(void) {
    OK(aclrtFree(at));
    OK(aclrtResetDeviceForce(0));
    check_nothing_alive();
}

static int32_t read_units(aclrtMemManagedRangeAttribute attribute, size_t first, size_t count) {
    int32_t value = 77;
    OK(aclrtMemManagedGetAttr(attribute, plus(at, first * UNIT), count * UNIT, &value, sizeof(value)));
    return value;
}

static int advise(size_t first, size_t count, aclrtMemManagedAdviseType advice, aclrtMemManagedLocation location) {
    return aclrtMemManagedAdvise(plus(at, first * UNIT), count * UNIT, advice, location);
}

static void test_read_mostly(void) {
    set_up();
    CHECK_EQ(read_units(ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 0, 3), 0);
    OK(advise(1, 1, ACL_MEM_ADVISE_SET_READ_MOSTLY, nowhere));
    CHECK_EQ(read_units(ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 1, 1), 1);
    CHECK_EQ(read_units(ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 0, 2), 0);
    OK(advise(0, 3, ACL_MEM_ADVISE_SET_READ_MOSTLY, nowhere));
    CHECK_EQ(read_units(ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 0, 3), 1);
    OK(aclrtMemManagedAdvise(plus(at, 3 * UNIT - 1), 1, ACL_MEM_ADVISE_UNSET_READ_MOSTLY, nowhere));
    CHECK_EQ(read_units(ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 0, 3), 0);
    CHECK_EQ(read_units(ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 0, 2), 1);
    tear_down();
}

static void test_places(void) {
    set_up();
    CHECK_EQ(read_units(ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, 0, 3), -2);
    CHECK_EQ(read_units(ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, 0, 3), ACL_MEM_LOCATIONTYPE_INVALID);
    OK(advise(0, 2, ACL_MEM_ADVISE_SET_PREFERRED_LOCATION, on_device_1));
    CHECK_EQ(read_units(ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, 0, 2), 1);
    CHECK_EQ(read_units(ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, 0, 2), ACL_MEM_LOCATIONTYPE_DEVICE);
    CHECK_EQ(read_units(ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, 0, 2), 1);
    CHECK_EQ(read_units(ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, 0, 3), -2);
    CHECK_EQ(read_units(ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, 0, 3), -2);
    OK(advise(0, 3, ACL_MEM_ADVISE_SET_PREFERRED_LOCATION, on_host));
    CHECK_EQ(read_units(ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, 0, 3), -1);
    CHECK_EQ(read_units(ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, 0, 3), ACL_MEM_LOCATIONTYPE_HOST);
    OK(advise(0, 3, ACL_MEM_ADVISE_UNSET_PREFERRED_LOCATION, nowhere));
    CHECK_EQ(read_units(ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, 0, 3), -2);
    tear_down();
}

static void test_users(void) {
    int32_t users[3] = {77, 77, 77};
    set_up();
    OK(advise(0, 3, ACL_MEM_ADVISE_SET_ACCESSED_BY, on_device_1));
    OK(advise(0, 3, ACL_MEM_ADVISE_SET_ACCESSED_BY, on_host));
    OK(aclrtMemManagedGetAttr(ACL_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, at, 3 * UNIT, users, sizeof(users)));
    CHECK(users[0] == -1 && users[1] == 1 && users[2] == -2);
    OK(aclrtMemManagedGetAttr(ACL_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, at, 3 * UNIT, users, sizeof(users[0])));
    CHECK_EQ(users[0], -1);
    OK(advise(0, 3, ACL_MEM_ADVISE_UNSET_ACCESSED_BY, on_host));
    OK(advise(2, 1, ACL_MEM_ADVISE_UNSET_ACCESSED_BY, on_device_1));
    OK(aclrtMemManagedGetAttr(ACL_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, at, 3 * UNIT, users, sizeof(users)));
    CHECK(users[0] == -2 && users[2] == -2);
    OK(aclrtMemManagedGetAttr(ACL_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, at, 2 * UNIT, users, sizeof(users)));
    CHECK(users[0] == 1 && users[1] == -2);
    tear_down();
}

/* Prefetches take their place in the stream and move nothing. */
static void test_prefetch(void) {
    set_up();
    const void *ptrs[3] = {at, plus(at, UNIT), plus(at, 2 * UNIT)};
    size_t sizes[3] = {UNIT, UNIT, 1}, indexes[2] = {0, 2};
    aclrtMemManagedLocation places[2] = {on_device_1, on_host};
    aclrtStream stream = new_stream();
    memset(at, 5, 3 * UNIT);
    OK(hostacl_hold(0));
    OK(aclrtMemManagedPrefetchAsync(at, 3 * UNIT, on_host, 0, stream));
    CHECK_EQ(read_units(ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, 0, 3), -2);
    OK(hostacl_release(0));
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(read_units(ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, 0, 3), -1);
    OK(aclrtMemManagedPrefetchBatchAsync(ptrs, sizes, 3, places, indexes, 2, 0, stream));
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(read_units(ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, 0, 2), 1);
    CHECK_EQ(read_units(ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE, 2, 1), ACL_MEM_LOCATIONTYPE_HOST);
    CHECK_EQ(read_units(ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID, 0, 2), 1);
    CHECK_EQ(read_units(ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, 0, 3), -2);
    CHECK(((char *)at)[0] == 5 && ((char *)at)[3 * UNIT - 1] == 5);
    void *gone = NULL;
    OK(aclrtMemAllocManaged(&gone, UNIT, ACL_RT_MEM_ATTACH_GLOBAL));
    OK(hostacl_hold(0));
    OK(aclrtMemManagedPrefetchAsync(gone, UNIT, on_device_1, 0, stream));
    OK(aclrtFree(gone));
    OK(hostacl_release(0));
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_PARAM_INVALID);
    tear_down();
}

static void test_many_attributes(void) {
    aclrtMemManagedRangeAttribute attributes[2] = {ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
                                                   ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION};
    int32_t mostly = 77, place = 77;
    void *data[2] = {&mostly, &place};
    size_t sizes[2] = {sizeof(mostly), sizeof(place)};
    set_up();
    OK(advise(0, 3, ACL_MEM_ADVISE_SET_READ_MOSTLY, nowhere));
    OK(aclrtMemManagedGetAttrs(attributes, 2, at, UNIT, data, sizes));
    CHECK(mostly == 1 && place == -2);
    CHECK_EQ(aclrtMemManagedGetAttrs(NULL, 2, at, UNIT, data, sizes), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemManagedGetAttrs(attributes, 2, at, UNIT, NULL, sizes), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemManagedGetAttrs(attributes, 2, at, UNIT, data, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemManagedGetAttrs(attributes, 0, at, UNIT, data, sizes), ACL_ERROR_INVALID_PARAM);
    data[1] = NULL;
    CHECK_EQ(aclrtMemManagedGetAttrs(attributes, 2, at, UNIT, data, sizes), ACL_ERROR_INVALID_PARAM);
    tear_down();
}

static void test_arguments(void) {
    const aclrtMemManagedAdviseType LOCATION = ACL_MEM_ADVISE_SET_PREFERRED_LOCATION;
    int32_t value = 77;
    set_up();
    aclrtMemManagedLocation nobody = {ACL_MEM_LOCATIONTYPE_DEVICE, 2}, odd = {(aclrtMemManagedLocationType)5, 0};
    CHECK_EQ(aclrtMemManagedAdvise(NULL, 1, LOCATION, on_host), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemManagedAdvise(at, 0, LOCATION, on_host), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemManagedAdvise(at, 1, (aclrtMemManagedAdviseType)6, on_host), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemManagedAdvise(at, 1, LOCATION, nobody), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtMemManagedAdvise(at, 1, LOCATION, odd), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemManagedAdvise(at, 1, LOCATION, nowhere), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemManagedAdvise(&value, 1, LOCATION, on_host), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemManagedAdvise(at, 3 * UNIT + 1, LOCATION, on_host), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemManagedAdvise(plus(at, 1), UINT64_MAX, LOCATION, on_host), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemManagedPrefetchAsync(at, 1, on_host, 1, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemManagedPrefetchAsync(NULL, 1, on_host, 0, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemManagedPrefetchAsync(at, 1, nowhere, 0, NULL), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemManagedPrefetchAsync(at, 1, on_host, 0, at), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(aclrtMemManagedPrefetchAsync(&value, 1, on_host, 0, NULL), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemManagedGetAttr(ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, at, 1, NULL, 4), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemManagedGetAttr((aclrtMemManagedRangeAttribute)9, at, 1, &value, 4), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemManagedGetAttr((aclrtMemManagedRangeAttribute)0, at, 1, &value, 4), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemManagedGetAttr(ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, at, 1, &value, 8), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemManagedGetAttr(ACL_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, at, 1, &value, 3), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemManagedGetAttr(ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, at, 0, &value, 4), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemManagedGetAttr(ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, &value, 1, &value, 4),
             ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(value, 77);
    tear_down();
}

static void test_batch_arguments(void) {
    set_up();
    const void *ptrs[2] = {at, at};
    size_t sizes[2] = {1, 1}, indexes[2] = {0, 1};
    aclrtMemManagedLocation places[2] = {on_host, on_host};
    CHECK_EQ(aclrtMemManagedPrefetchBatchAsync(NULL, sizes, 2, places, indexes, 2, 0, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemManagedPrefetchBatchAsync(ptrs, NULL, 2, places, indexes, 2, 0, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemManagedPrefetchBatchAsync(ptrs, sizes, 2, NULL, indexes, 2, 0, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemManagedPrefetchBatchAsync(ptrs, sizes, 2, places, NULL, 2, 0, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemManagedPrefetchBatchAsync(ptrs, sizes, 0, places, indexes, 2, 0, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemManagedPrefetchBatchAsync(ptrs, sizes, 2, places, indexes, 0, 0, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemManagedPrefetchBatchAsync(ptrs, sizes, 2, places, indexes, 2, 1, NULL), ACL_ERROR_INVALID_PARAM);
    indexes[1] = 2;
    CHECK_EQ(aclrtMemManagedPrefetchBatchAsync(ptrs, sizes, 2, places, indexes, 2, 0, NULL),
             ACL_ERROR_RT_PARAM_INVALID);
    indexes[0] = 1;
    CHECK_EQ(aclrtMemManagedPrefetchBatchAsync(ptrs, sizes, 2, places, indexes, 1, 0, NULL),
             ACL_ERROR_RT_PARAM_INVALID);
    tear_down();
}

int main(void) {
    test_read_mostly();
    test_places();
    test_users();
    test_prefetch();
    test_many_attributes();
    test_arguments();
    test_batch_arguments();
    start(NULL);
    check_nothing_alive();
    return check_done();
}
