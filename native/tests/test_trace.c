/* The trace of calls: option trace. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "json.h"

#define ROOM (4 << 20)

static char path[64];
static char *text; /* what trace_text read last */

/* The whole trace so far; the file is emptied. */
static const char *trace_text(void) {
    int fd = open(path, O_RDWR);
    ssize_t got = fd < 0 ? -1 : read(fd, text, ROOM - 1);
    text[got > 0 ? got : 0] = 0;
    CHECK(fd >= 0 && !ftruncate(fd, 0));
    close(fd);
    return text;
}

static int count_lines(const char *lines) {
    int count = 0;
    for (; *lines; lines++)
        count += *lines == '\n';
    return count;
}

static void no_value(void *user, const char *key, const char *value, bool is_string) {
    (void)user, (void)key, (void)value, (void)is_string;
}

/* Every line is a JSON document of its own. */
static void check_json(char *lines) {
    for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n")) {
        if (!CHECK(json_read(line, no_value, NULL)))
            printf("    %s\n", line);
    }
}

/* The trace holds this piece; printf-like. */
__attribute__((format(printf, 1, 2))) static void check_has(const char *format, ...) {
    char piece[512];
    __builtin_va_list args;
    __builtin_va_start(args, format);
    vsnprintf(piece, sizeof(piece), format, args);
    __builtin_va_end(args);
    if (!CHECK(strstr(text, piece)))
        printf("    no %s in %s\n", piece, text);
}

static void test_lines(void) {
    void *block = NULL;
    size_t free_now = 0, total = 0;
    aclrtPtrAttributes attributes;
    start("trace", path, NULL);
    OK(aclrtSetDevice(1));
    OK(aclrtMalloc(&block, 5000, ACL_MEM_MALLOC_NORMAL_ONLY));
    OK(aclrtGetMemInfo(ACL_HBM_MEM, &free_now, &total));
    OK(aclrtPointerGetAttributes(block, &attributes));
    OK(aclrtFree(block));
    CHECK_EQ(count_lines(trace_text()), 5);
    check_has("\"function\":\"aclrtSetDevice\",\"arguments\":{\"deviceId\":1},\"code\":0,\"out\":{},\"took_ns\":");
    check_has("\"function\":\"aclrtMalloc\",\"arguments\":{\"devPtr\":\"%p\",\"size\":5000,\"policy\":2},\"code\":0,"
              "\"out\":{\"devPtr\":\"%p\"},",
              (void *)&block, block);
    check_has(
        "\"arguments\":{\"attr\":1,\"free\":\"%p\",\"total\":\"%p\"},\"code\":0,\"out\":{\"free\":%zu,\"total\":%zu}",
        (void *)&free_now, (void *)&total, free_now, total);
    check_has("\"out\":{\"attributes\":{\"location.id\":1,\"location.type\":1,\"pageSize\":4096}}");
    check_has("\"function\":\"aclrtFree\",\"arguments\":{\"devPtr\":\"%p\"}", block);
    check_json(text);
    CHECK_EQ(hostacl_calls("aclrtMalloc"), 1);
}

/* A failed call shows its code and follows no pointer. */
static void test_refusals(void) {
    void *block = (void *)7;
    int32_t device = 7;
    start("trace", path, NULL);
    CHECK_EQ(aclrtSetDevice(-1), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_EQ(aclrtMalloc(NULL, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
    OK(hostacl_fail("aclrtFree", 1, 507899));
    CHECK_EQ(aclrtFree(block), 507899);
    trace_text();
    check_has("{\"deviceId\":-1},\"code\":107001,\"took_ns\"");
    check_has("{\"devPtr\":null,\"size\":64,\"policy\":0},\"code\":100000,");
    check_has("{\"deviceId\":\"%p\"},\"code\":107002,\"took_ns\"", (void *)&device);
    check_has("{\"devPtr\":\"0x7\"},\"code\":507899,");
}

static void test_texts(void) {
    char longer[600];
    memset(longer, 'n', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = 0;
    start("trace", path, NULL);
    CHECK(aclInit("/no\"where\\\n\t\x7f\xc3\xa9"));
    CHECK(aclInit(longer));
    CHECK(aclrtGetSocName());
    CHECK(aclGetRecentErrMsg());
    CHECK_EQ(count_lines(trace_text()), 4);
    check_has("{\"configPath\":\"/no\\u0022where\\u005c\\u000a\\u0009\\u007f\\udcc3\\udca9\"},\"code\":100003,");
    check_has("nnn\"},\"code\":100003");
    CHECK(!strstr(text, longer));
    check_has("\"function\":\"aclrtGetSocName\",\"arguments\":{},\"result\":\"Ascend910B1\",\"out\":{},");
    check_has("\"function\":\"aclGetRecentErrMsg\",\"arguments\":{},\"result\":\"EH0007: ");
    check_json(text);
}

/* A structure the call reads is shown among the arguments. */
static void test_structures_read(void) {
    void *block = NULL;
    aclrtMallocAttribute attribute = {.attr = ACL_RT_MEM_ATTR_MODULE_ID, .value = {.moduleId = 3}};
    aclrtMallocConfig cfg = {.attrs = &attribute, .numAttrs = 1};
    start("trace", path, NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMallocWithCfg(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST, &cfg));
    OK(aclrtFree(block));
    CHECK_EQ(aclrtMallocWithCfg(NULL, 64, ACL_MEM_MALLOC_HUGE_FIRST, &cfg), ACL_ERROR_INVALID_PARAM);
    trace_text();
    check_has("\"policy\":0,\"cfg\":{\"numAttrs\":1}},\"code\":0,\"out\":{\"devPtr\":\"%p\"},", block);
    check_has("\"devPtr\":null,\"size\":64,\"policy\":0,\"cfg\":\"%p\"},\"code\":100000", (void *)&cfg);
}

/* Numbers, signed and not, of all sizes, and reals: as arguments, as results, behind out pointers. */
static void test_kinds_of_values(void) {
    int64_t bytes = 0;
    int32_t least = 0, greatest = 0;
    void *range = NULL;
    aclrtDrvMemHandle handle = NULL;
    aclrtPhysicalMemProp prop = {.memAttr = ACL_HBM_MEM_HUGE, .location = {1, ACL_MEM_LOCATION_TYPE_DEVICE}}, back;
    start("trace", path, NULL);
    CHECK_EQ(aclDataTypeSize(ACL_DT_UNDEFINED), 0);
    CHECK_EQ(aclFloatToFloat16(-1.5f), 0xbe00);
    CHECK(aclFloat16ToFloat(0x3400) > 0.2f);
    CHECK(aclFloat16ToFloat(0x7e00) != 0);
    OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, &bytes));
    OK(aclrtSetDevice(1));
    OK(aclrtDeviceGetStreamPriorityRange(&least, &greatest));
    OK(aclrtMallocPhysical(&handle, 2 * MIB, &prop, 0));
    OK(aclrtMemGetAllocationPropertiesFromHandle(handle, &back));
    OK(aclrtReserveMemAddress(&range, 2 * MIB, 0, NULL, 1));
    OK(aclrtReleaseMemAddress(range));
    OK(aclrtFreePhysical(handle));
    trace_text();
    check_has("{\"dataType\":-1},\"result\":0,\"out\":{},");
    check_has("{\"value\":-1.5},\"result\":48640,");
    check_has("{\"value\":13312},\"result\":0.25,");
    check_has("{\"value\":32256},\"result\":null,");
    check_has("\"out\":{\"value\":%lld}", (long long)bytes);
    check_has("\"out\":{\"leastPriority\":%d,\"greatestPriority\":%d}", least, greatest);
    check_has("\"prop\":{\"handleType\":0,\"allocationType\":0,\"memAttr\":4,\"location.id\":1,\"location.type\":1},"
              "\"flags\":0},\"code\":0,\"out\":{\"handle\":\"%p\"}",
              handle);
    check_has("\"out\":{\"prop\":{\"handleType\":0,\"allocationType\":0,\"memAttr\":4,\"location.id\":1,");
    check_has("\"size\":2097152,\"alignment\":0,\"expectPtr\":null,\"flags\":1},\"code\":0,\"out\":{\"virPtr\":\"%p\"}",
              range);
    check_json(text);
}

static long long number_after(const char *key) {
    const char *found = strstr(text, key);
    return CHECK(found) ? atoll(found + strlen(key)) : -1;
}

static void test_times(void) {
    struct timespec before, after;
    uint32_t count = 0;
    start("trace", path, NULL);
    OK(hostacl_delay("aclrtGetDeviceCount", 3000));
    clock_gettime(CLOCK_MONOTONIC, &before);
    OK(aclrtGetDeviceCount(&count));
    clock_gettime(CLOCK_MONOTONIC, &after);
    trace_text();
    long long ns = number_after("{\"ns\":");
    CHECK(ns >= before.tv_sec * 1000000000ll + before.tv_nsec);
    CHECK(ns <= after.tv_sec * 1000000000ll + after.tv_nsec);
    CHECK(number_after("\"took_ns\":") >= 3000000);
    CHECK_EQ(number_after("\"thread\":"), getpid());
}

static void test_switching(void) {
    struct stat before, after;
    uint32_t count = 0;
    start("trace", path, NULL);
    OK(aclrtSetDevice(0));
    OK(hostacl_configure("trace", "off"));
    OK(aclrtGetDeviceCount(&count));
    OK(hostacl_configure("trace", path));
    OK(aclrtGetDeviceCount(&count));
    OK(aclrtResetDevice(0));
    CHECK_EQ(count_lines(trace_text()), 3);
    CHECK_EQ(hostacl_configure("trace", "/nowhere/at/all"), ACL_ERROR_INVALID_PARAM);
    CHECK(strstr(hostacl_error(), "/nowhere/at/all cannot be opened: No such file"));
    char pipe_path[sizeof(path) + 8];
    snprintf(pipe_path, sizeof(pipe_path), "%s-pipe", path);
    CHECK(!mkfifo(pipe_path, 0600));
    CHECK_EQ(hostacl_configure("trace", pipe_path), ACL_ERROR_INVALID_PARAM); /* nobody reads it */
    unlink(pipe_path);
    CHECK_EQ(hostacl_configure("trace", "fd:9999"), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(hostacl_configure("trace", "fd:"), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(hostacl_configure("trace", "fd:x"), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(hostacl_configure("trace", ""), ACL_ERROR_INVALID_PARAM);
    OK(aclrtGetDeviceCount(&count));
    CHECK_EQ(count_lines(trace_text()), 1);
    OK(hostacl_reset());
    stat(path, &before);
    OK(aclrtGetDeviceCount(&count));
    stat(path, &after);
    CHECK_EQ(before.st_size, after.st_size);
}

static void test_descriptor(void) {
    char line[512] = "";
    char place[16];
    int ends[2];
    uint32_t count = 0;
    CHECK(!pipe(ends));
    snprintf(place, sizeof(place), "fd:%d", ends[1]);
    start("trace", place, NULL);
    OK(aclrtGetDeviceCount(&count));
    ssize_t got = read(ends[0], line, sizeof(line) - 1);
    CHECK(got > 0 && line[got - 1] == '\n' && strstr(line, "aclrtGetDeviceCount"));
    OK(hostacl_configure("trace", "off"));
    CHECK(fcntl(ends[1], F_GETFD) >= 0);
    OK(hostacl_configure("trace", place));
    close(ends[0]);
    close(ends[1]);
    OK(hostacl_configure("poison", "off"));
    OK(hostacl_configure("trace", "off"));
}

static void call_back(void *user) {
    OK(aclrtGetDeviceCount(user));
}

static void *serve(void *calls) {
    while (!atomic_load((atomic_bool *)calls))
        aclrtProcessReport(100);
    return NULL;
}

/* Calls that a callback makes inside of aclrtProcessReport have lines of their own. */
static void test_calls_of_callbacks(void) {
    uint32_t count = 0;
    pthread_t thread;
    aclrtStream stream = NULL;
    atomic_bool stop = false;
    start("trace", path, NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    pthread_create(&thread, NULL, serve, &stop);
    OK(aclrtSubscribeReport((uint64_t)thread, stream));
    OK(aclrtLaunchCallback(call_back, &count, ACL_CALLBACK_BLOCK, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtUnSubscribeReport((uint64_t)thread, stream));
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    OK(aclrtDestroyStream(stream));
    CHECK_EQ(count, 2);
    trace_text();
    check_has("\"function\":\"aclrtGetDeviceCount\",\"arguments\":{\"count\":\"%p\"},\"code\":0,\"out\":{\"count\":2}",
              (void *)&count);
    check_has("\"function\":\"aclrtProcessReport\",\"arguments\":{\"timeout\":100},\"code\":0,");
}

/* Arrays that a call reads are addresses, not something it wrote. */
static void test_arrays(void) {
    char bytes[8] = "";
    void *block = NULL, *source = bytes;
    size_t size = sizeof(bytes), attr = 0, failed = 7;
    aclrtMemcpyBatchAttr attrs = {.dstLoc = {0, ACL_MEM_LOCATION_TYPE_DEVICE},
                                  .srcLoc = {0, ACL_MEM_LOCATION_TYPE_HOST}};
    start("trace", path, NULL);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMallocHost(&source, 64));
    OK(aclrtMemcpyBatch(&block, &size, &source, &size, 1, &attrs, &attr, 1, &failed));
    OK(aclrtFreeHost(source));
    OK(aclrtFree(block));
    trace_text();
    check_has("\"dsts\":\"%p\",\"destMaxs\":\"%p\",", (void *)&block, (void *)&size);
    check_has("\"code\":0,\"out\":{\"failIndex\":%zu}", failed);
}

static void *work(void *unused) {
    OK(aclrtSetDevice(0));
    for (int i = 0; i < 300; i++) {
        void *block = NULL;
        OK(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST));
        OK(aclrtFree(block));
    }
    return unused;
}

static void test_threads(void) {
    pthread_t threads[4];
    start("trace", path, NULL);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(count_lines(trace_text()), 4 * 601);
    check_json(text);
    CHECK_EQ(hostacl_calls("aclrtFree"), 1200);
}

static void test_forked_child(void) {
    uint32_t count = 0;
    int status = -1;
    start("trace", path, NULL);
    OK(aclrtGetDeviceCount(&count));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(aclrtGetDeviceCount(&count) != ACL_ERROR_RT_DEV_SETUP_ERROR);
    waitpid(child, &status, 0);
    CHECK_EQ(status, 0);
    CHECK_EQ(count_lines(trace_text()), 1);
}

int main(void) {
    text = malloc(ROOM);
    snprintf(path, sizeof(path), "/tmp/hostacl-trace-%d.jsonl", getpid());
    test_lines();
    test_refusals();
    test_texts();
    test_structures_read();
    test_kinds_of_values();
    test_times();
    test_switching();
    test_descriptor();
    test_calls_of_callbacks();
    test_arrays();
    test_threads();
    test_forked_child();
    start(NULL);
    unlink(path);
    free(text);
    return check_done();
}
