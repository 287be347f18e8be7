/* Figures of a device, the limits on its cores, and its faults, of which there are none. */
#include "streams.h"

static void test_capabilities(void) {
    int64_t value = 77;
    start("cube_cores", "20", "vector_cores", "40", "l2_cache", "96M", NULL);
    OK(aclGetDeviceCapability(1, ACL_DEVICE_INFO_AI_CORE_NUM, &value));
    CHECK_EQ(value, 20);
    OK(aclGetDeviceCapability(1, ACL_DEVICE_INFO_VECTOR_CORE_NUM, &value));
    CHECK_EQ(value, 40);
    OK(aclGetDeviceCapability(1, ACL_DEVICE_INFO_L2_SIZE, &value));
    CHECK_EQ(value, 96 * MIB);
    OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_AICORE_CORE_NUM, &value));
    CHECK_EQ(value, 20);
    OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_CUBE_CORE_NUM, &value));
    CHECK_EQ(value, 20);
    OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_VECTOR_CORE_NUM, &value));
    CHECK_EQ(value, 40);
    OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_L2_CACHE_SIZE, &value));
    CHECK_EQ(value, 96 * MIB);
    CHECK_EQ(aclGetDeviceCapability(0, ACL_DEVICE_INFO_L2_SIZE, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclGetDeviceCapability(2, ACL_DEVICE_INFO_L2_SIZE, &value), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclGetDeviceCapability(0, ACL_DEVICE_INFO_UNDEFINED, &value), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclGetDeviceCapability(0, (aclDeviceInfo)3, &value), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(hostacl_configure("cube_cores", "0"), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(hostacl_configure("vector_cores", "1025"), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(hostacl_configure("l2_cache", "much"), ACL_ERROR_INVALID_PARAM);
}

static void test_utilization(void) {
    aclrtUtilizationInfo info = {77, 77, 77, 77, NULL};
    void *block = NULL;
    start("pages_4k", "0", "pages_2m", "100M", "pages_1g", "0", NULL);
    OK(aclrtGetDeviceUtilizationRate(0, &info));
    CHECK_EQ(info.memoryUtilization, 0);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, 50 * MIB - 64, ACL_MEM_MALLOC_HUGE_ONLY));
    OK(aclrtGetDeviceUtilizationRate(0, &info));
    CHECK_EQ(info.memoryUtilization, 50);
    CHECK(!info.cubeUtilization && !info.vectorUtilization && !info.aicpuUtilization);
    OK(aclrtGetDeviceUtilizationRate(1, &info));
    CHECK_EQ(info.memoryUtilization, 0);
    CHECK_EQ(aclrtGetDeviceUtilizationRate(0, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetDeviceUtilizationRate(2, &info), ACL_ERROR_RT_INVALID_DEVICEID);
    OK(aclrtFree(block));
    OK(aclrtResetDevice(0));
}

static void test_memory_usage(void) {
    aclrtMemUsageInfo infos[2];
    size_t count = 77;
    void *block = NULL;
    start(NULL);
    OK(aclrtSetDevice(1));
    OK(aclrtMalloc(&block, 3 * MIB, ACL_MEM_MALLOC_HUGE_ONLY));
    memset(infos, '?', sizeof(infos));
    OK(aclrtGetMemUsageInfo(1, infos, 2, &count));
    CHECK_EQ(count, 1);
    CHECK(!strcmp(infos[0].name, "process"));
    CHECK(infos[0].curMemSize == 4 * MIB && infos[0].memPeakSize == 4 * MIB);
    OK(aclrtFree(block));
    OK(aclrtGetMemUsageInfo(1, infos, 1, &count));
    CHECK(infos[0].curMemSize == 0 && infos[0].memPeakSize == 4 * MIB);
    OK(aclrtResetDevice(1));
    OK(aclrtGetMemUsageInfo(1, infos, 1, &count));
    CHECK(infos[0].curMemSize == 0 && infos[0].memPeakSize == 0);
    CHECK_EQ(aclrtGetMemUsageInfo(1, NULL, 1, &count), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetMemUsageInfo(1, infos, 0, &count), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetMemUsageInfo(1, infos, 1, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetMemUsageInfo(-1, infos, 1, &count), ACL_ERROR_RT_INVALID_DEVICEID);
    start("soc_name", "Ascend950PR_9599", NULL);
    CHECK_EQ(aclrtGetMemUsageInfo(1, infos, 1, &count), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
}

static void test_host_memory_map(void) {
    aclrtHostMemMapCapability can = ACL_RT_HOST_MEM_MAP_NOT_SUPPORTED;
    start(NULL);
    for (int type = ACL_RT_HAC_TYPE_STARS; type <= ACL_RT_HAC_TYPE_CCU; type++) {
        OK(aclrtHostMemMapCapabilities(0, (aclrtHacType)type, &can));
        CHECK_EQ(can, ACL_RT_HOST_MEM_MAP_SUPPORTED);
    }
    CHECK_EQ(aclrtHostMemMapCapabilities(0, (aclrtHacType)10, &can), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtHostMemMapCapabilities(2, ACL_RT_HAC_TYPE_SDMA, &can), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtHostMemMapCapabilities(0, ACL_RT_HAC_TYPE_SDMA, NULL), ACL_ERROR_INVALID_PARAM);
}

static void test_no_faults(void) {
    aclrtErrorInfo error;
    aclrtMemUceInfo places[2] = {{.addr = &error, .len = 1}};
    size_t count = 77;
    start(NULL);
    memset(&error, '?', sizeof(error));
    OK(aclrtGetErrorVerbose(1, &error));
    CHECK(error.errorType == ACL_RT_NO_ERROR && !error.tryRepair && !error.hasDetail);
    OK(aclrtRepairError(1, &error));
    error.errorType = ACL_RT_ERROR_L2;
    CHECK_EQ(aclrtRepairError(1, &error), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtRepairError(1, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtRepairError(2, &error), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtGetErrorVerbose(1, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetErrorVerbose(2, &error), ACL_ERROR_RT_INVALID_DEVICEID);
    OK(aclrtGetMemUceInfo(0, places, 2, &count));
    CHECK_EQ(count, 0);
    CHECK_EQ(aclrtGetMemUceInfo(0, NULL, 2, &count), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetMemUceInfo(0, places, 0, &count), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetMemUceInfo(0, places, 2, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetMemUceInfo(2, places, 2, &count), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtMemUceRepair(0, places, 1), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemUceRepair(0, places, 0), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemUceRepair(0, places, MAX_MEM_UCE_INFO_ARRAY_SIZE + 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemUceRepair(0, NULL, 1), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemUceRepair(2, places, 1), ACL_ERROR_RT_INVALID_DEVICEID);
}

static uint32_t device_limit(int32_t id, aclrtDevResLimitType type) {
    uint32_t value = 77;
    OK(aclrtGetDeviceResLimit(id, type, &value));
    return value;
}

static uint32_t stream_limit(aclrtStream stream, aclrtDevResLimitType type) {
    uint32_t value = 77;
    OK(aclrtGetStreamResLimit(stream, type, &value));
    return value;
}

static uint32_t thread_limit(aclrtDevResLimitType type) {
    uint32_t value = 77;
    OK(aclrtGetResInCurrentThread(type, &value));
    return value;
}

static void *other_thread_limit(void *limit) {
    OK(aclrtSetDevice(0));
    *(uint32_t *)limit = thread_limit(ACL_RT_DEV_RES_CUBE_CORE);
    return NULL;
}

static void test_limits(void) {
    const aclrtDevResLimitType CUBE = ACL_RT_DEV_RES_CUBE_CORE, VECTOR = ACL_RT_DEV_RES_VECTOR_CORE;
    uint32_t other = 0;
    pthread_t thread;
    start("cube_cores", "20", "vector_cores", "40", NULL);
    OK(aclrtSetDeviceResLimit(1, CUBE, 3));
    CHECK(device_limit(1, CUBE) == 3 && device_limit(1, VECTOR) == 40 && device_limit(0, CUBE) == 20);
    OK(aclrtResetDeviceResLimit(1));
    CHECK_EQ(device_limit(1, CUBE), 20);
    OK(aclrtSetDevice(0));
    aclrtStream stream = new_stream();
    CHECK(stream_limit(stream, CUBE) == 20 && thread_limit(VECTOR) == 40);
    OK(aclrtSetDeviceResLimit(0, CUBE, 10));
    CHECK(stream_limit(stream, CUBE) == 10 && stream_limit(NULL, CUBE) == 10 && thread_limit(CUBE) == 10);
    OK(aclrtSetStreamResLimit(stream, CUBE, 5));
    CHECK(stream_limit(stream, CUBE) == 5 && stream_limit(NULL, CUBE) == 10 && thread_limit(CUBE) == 10);
    OK(aclrtUseStreamResInCurrentThread(stream));
    CHECK(thread_limit(CUBE) == 5 && thread_limit(VECTOR) == 40);
    CHECK(!pthread_create(&thread, NULL, other_thread_limit, &other) && !pthread_join(thread, NULL));
    CHECK_EQ(other, 10);
    OK(aclrtUnuseStreamResInCurrentThread(NULL));
    CHECK_EQ(thread_limit(CUBE), 5);
    OK(aclrtUnuseStreamResInCurrentThread(stream));
    CHECK_EQ(thread_limit(CUBE), 10);
    OK(aclrtUseStreamResInCurrentThread(stream));
    OK(aclrtResetStreamResLimit(stream));
    CHECK_EQ(thread_limit(CUBE), 10);
    OK(aclrtSetStreamResLimit(stream, CUBE, 5));
    OK(aclrtDestroyStream(stream));
    CHECK_EQ(thread_limit(CUBE), 10);
    OK(aclrtResetDeviceForce(0));
    CHECK_EQ(device_limit(0, CUBE), 20);
    OK(aclrtSetDeviceResLimit(1, CUBE, 3));
    start(NULL);
    CHECK_EQ(device_limit(1, CUBE), 24);
    check_nothing_alive();
}

static void test_limit_arguments(void) {
    uint32_t value = 77;
    start(NULL);
    CHECK_EQ(aclrtSetDeviceResLimit(2, ACL_RT_DEV_RES_CUBE_CORE, 1), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtSetDeviceResLimit(0, (aclrtDevResLimitType)2, 1), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, 25), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetDeviceResLimit(-1, ACL_RT_DEV_RES_CUBE_CORE, &value), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtGetDeviceResLimit(0, (aclrtDevResLimitType)-1, &value), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtResetDeviceResLimit(2), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtSetStreamResLimit(NULL, ACL_RT_DEV_RES_CUBE_CORE, 1), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtGetStreamResLimit(NULL, ACL_RT_DEV_RES_CUBE_CORE, &value), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtResetStreamResLimit(NULL), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtUseStreamResInCurrentThread(NULL), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtUnuseStreamResInCurrentThread(NULL), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_EQ(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_CUBE_CORE, &value), ACL_ERROR_RT_CONTEXT_NULL);
    OK(aclrtSetDevice(0));
    CHECK_EQ(aclrtSetStreamResLimit(&value, ACL_RT_DEV_RES_CUBE_CORE, 1), ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_EQ(aclrtSetStreamResLimit(NULL, ACL_RT_DEV_RES_VECTOR_CORE, 49), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtSetStreamResLimit(NULL, (aclrtDevResLimitType)2, 1), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtGetStreamResLimit(NULL, ACL_RT_DEV_RES_CUBE_CORE, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_CUBE_CORE, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetResInCurrentThread((aclrtDevResLimitType)2, &value), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(value, 77);
    OK(aclrtResetDevice(0));
}

int main(void) {
    test_capabilities();
    test_utilization();
    test_memory_usage();
    test_host_memory_map();
    test_no_faults();
    test_limits();
    test_limit_arguments();
    start(NULL);
    check_nothing_alive();
    return check_done();
}
