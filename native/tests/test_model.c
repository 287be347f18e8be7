/* aclmdlQuerySize(FromMem), aclmdlLoadWithConfig, aclmdlUnload: sizes, memory, and what is refused with which code. */
#include <sys/stat.h>
#include <unistd.h>

#include "om_writer.h"

static void begin(void) {
    start(NULL);
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
}

static void done(void) {
    OK(aclrtResetDevice(0));
    check_nothing_alive();
    OK(aclFinalize());
}

static int query(const struct out *file) {
    size_t work = 77, weight = 78;
    int code = aclmdlQuerySizeFromMem(file->bytes, file->size, &work, &weight);
    CHECK_EQ(work == 77 && weight == 78, code != 0);
    return code;
}

static void test_sizes(void) {
    size_t work, weight;
    begin();
    for (int wide = 0; wide < 2; wide++) {
        struct out file = make_model(wide, 1, false);
        OK(aclmdlQuerySizeFromMem(file.bytes, file.size, &work, &weight));
        CHECK_EQ(work, WORK_BYTES);
        CHECK_EQ(weight, WEIGHT_BYTES);
        const char *path = save("sizes.om", file.bytes, file.size);
        work = weight = 0;
        OK(aclmdlQuerySize(path, &work, &weight));
        CHECK_EQ(work, WORK_BYTES);
        CHECK_EQ(weight, WEIGHT_BYTES);
        unlink(path);
        file = make_model(wide, 3, false);
        OK(aclmdlQuerySizeFromMem(file.bytes, file.size, &work, &weight));
        CHECK_EQ(work, 0);
        CHECK_EQ(weight, 3 * WEIGHT_BYTES);
    }
    done();
}

static void test_arguments(void) {
    struct out file = make_model(true, 1, false);
    size_t size = 0;
    uint32_t id = 9;
    begin();
    CHECK_EQ(aclmdlQuerySize(NULL, &size, &size), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclmdlQuerySize("x", NULL, &size), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclmdlQuerySize("x", &size, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclmdlQuerySize("/nowhere/x.om", &size, &size), ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID);
    CHECK_EQ(aclmdlQuerySize("/", &size, &size), ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID);
    CHECK_EQ(aclmdlQuerySize("/dev/zero", &size, &size), ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID);
    const char *pipe_path = save("pipe.om", file.bytes, file.size);
    unlink(pipe_path);
    CHECK(!mkfifo(pipe_path, 0600));
    CHECK_EQ(aclmdlQuerySize(pipe_path, &size, &size), ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID); /* nobody will write */
    CHECK(strstr(aclGetRecentErrMsg(), "cannot be opened: no file"));
    unlink(pipe_path);
    CHECK_EQ(aclmdlQuerySizeFromMem(NULL, 9, &size, &size), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclmdlQuerySizeFromMem(&file, 0, &size, &size), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclmdlQuerySizeFromMem(&file, 9, NULL, &size), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclmdlUnload(1000), ACL_ERROR_GE_EXEC_MODEL_ID_INVALID);
    CHECK(strstr(aclGetRecentErrMsg(), "E10001: aclmdlUnload: no model 1000 is loaded (145003"));
    CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS);
    CHECK_EQ(aclmdlLoadWithConfig(NULL, &id), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclmdlLoadWithConfig((aclmdlConfigHandle *)&file, &id), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(id, 9);
    done();
}

static void test_needs_init_and_device(void) {
    struct out file = make_model(true, 1, false);
    uint32_t id;
    size_t size;
    start(NULL);
    CHECK_EQ(query(&file), ACL_ERROR_GE_EXEC_NOT_INIT);
    CHECK_EQ(aclmdlQuerySize("/nowhere", &size, &size), ACL_ERROR_GE_EXEC_NOT_INIT);
    CHECK_EQ(load(&file, &id), ACL_ERROR_GE_EXEC_NOT_INIT);
    CHECK_EQ(aclmdlUnload(1), ACL_ERROR_GE_EXEC_NOT_INIT);
    OK(aclInit(NULL));
    OK(query(&file));
    CHECK_EQ(load(&file, &id), ACL_ERROR_RT_CONTEXT_NULL);
    OK(aclFinalize());
    CHECK_EQ(query(&file), ACL_ERROR_GE_EXEC_NOT_INIT);
}

static void test_own_memory(void) {
    struct out file = make_model(true, 1, false);
    hostacl_live_t live;
    uint32_t id, second;
    begin();
    OK(load(&file, &id));
    OK(load(&file, &second));
    CHECK(id && second > id);
    OK(hostacl_live(&live));
    CHECK_EQ(live.models, 2);
    CHECK_EQ(live.blocks, 4);
    OK(aclmdlUnload(id));
    CHECK_EQ(aclmdlUnload(id), ACL_ERROR_GE_EXEC_MODEL_ID_INVALID);
    OK(hostacl_live(&live));
    CHECK_EQ(live.models, 1);
    CHECK_EQ(live.blocks, 2);
    OK(aclrtResetDevice(0));
    OK(aclrtSetDevice(0));
    CHECK_EQ(aclmdlUnload(second), ACL_ERROR_GE_EXEC_MODEL_ID_INVALID);
    done();
}

/* Sets both pieces of memory of the caller. */
static void give(aclmdlConfigHandle *config, void *work, size_t work_size, void *weights, size_t weight_size) {
    OK(aclmdlSetConfigOpt(config, ACL_MDL_WORKSPACE_ADDR_PTR, &work, sizeof(work)));
    OK(aclmdlSetConfigOpt(config, ACL_MDL_WORKSPACE_SIZET, &work_size, sizeof(work_size)));
    OK(aclmdlSetConfigOpt(config, ACL_MDL_WEIGHT_ADDR_PTR, &weights, sizeof(weights)));
    OK(aclmdlSetConfigOpt(config, ACL_MDL_WEIGHT_SIZET, &weight_size, sizeof(weight_size)));
}

static void test_memory_of_the_caller(void) {
    struct out weights = make_weights(), file;
    uint8_t back[3 * WEIGHT_BYTES];
    void *work, *block;
    uint32_t id;
    hostacl_live_t live;
    begin();
    OK(aclrtMalloc(&work, WORK_BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMalloc(&block, sizeof(back), ACL_MEM_MALLOC_HUGE_FIRST));
    aclmdlConfigHandle *config = aclmdlCreateConfigHandle();
    for (uint32_t models = 1; models <= 3; models += 2) {
        file = make_model(models == 1, models, false);
        give(config, work, WORK_BYTES, block, sizeof(back));
        OK(load_memory(config, &file, ACL_MDL_LOAD_FROM_MEM_WITH_MEM, &id));
        OK(aclrtMemcpy(back, sizeof(back), block, models * WEIGHT_BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
        for (uint32_t i = 0; i < models; i++)
            CHECK(!memcmp(back + i * WEIGHT_BYTES, weights.bytes, WEIGHT_BYTES));
        OK(hostacl_live(&live));
        CHECK_EQ(live.blocks, 2);
        OK(aclmdlUnload(id));
        OK(hostacl_live(&live));
        CHECK_EQ(live.blocks, 2);
    }
    file = make_model(true, 1, false);
    give(config, work, WORK_BYTES - 1, block, sizeof(back));
    CHECK_EQ(load_memory(config, &file, ACL_MDL_LOAD_FROM_MEM_WITH_MEM, &id), ACL_ERROR_GE_PARAM_INVALID);
    give(config, work, WORK_BYTES, block, WEIGHT_BYTES - 1);
    CHECK_EQ(load_memory(config, &file, ACL_MDL_LOAD_FROM_MEM_WITH_MEM, &id), ACL_ERROR_GE_PARAM_INVALID);
    give(config, back, WORK_BYTES, block, WEIGHT_BYTES);
    CHECK_EQ(load_memory(config, &file, ACL_MDL_LOAD_FROM_MEM_WITH_MEM, &id), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    give(config, NULL, 0, block, WEIGHT_BYTES);
    OK(load_memory(config, &file, ACL_MDL_LOAD_FROM_MEM_WITH_MEM, &id));
    OK(hostacl_live(&live));
    CHECK_EQ(live.blocks, 3);
    OK(aclmdlUnload(id));
    give(config, NULL, 0, plus(block, 8 * WEIGHT_BYTES), WEIGHT_BYTES);
    CHECK_EQ(load_memory(config, &file, ACL_MDL_LOAD_FROM_MEM_WITH_MEM, &id), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(hostacl_live(&live));
    CHECK_EQ(live.blocks, 2);
    OK(aclmdlDestroyConfigHandle(config));
    OK(aclrtFree(work));
    OK(aclrtFree(block));
    done();
}

static void test_short_of_memory(void) {
    struct out definition = make_definition(false), weights = make_weights(), tasks = make_tasks();
    put_attr_number(&definition, 11, "memory_size", (uint64_t)1 << 40);
    const struct part parts[] = {{PART_DEFINITION, definition}, {PART_WEIGHTS, weights}, {PART_TASKS, tasks}};
    struct out file = make_file(true, 1, 3, parts);
    uint32_t id;
    begin();
    CHECK_EQ(load(&file, &id), ACL_ERROR_GE_MEMORY_ALLOCATION);
    put_attr_number(&definition, 11, "memory_size", UINT64_MAX);
    file = make_file(true, 1, 3, (const struct part[]){{PART_DEFINITION, definition}, parts[1], parts[2]});
    CHECK_EQ(load(&file, &id), ACL_ERROR_GE_MEMORY_ALLOCATION);
    done();
}

/* A failed copy leaves no block of the library. */
static void test_failed_copy(void) {
    struct out file = make_model(true, 1, false);
    uint32_t id;
    begin();
    OK(hostacl_short_copy(1, 100, ACL_ERROR_RT_DRV_INTERNAL_ERROR));
    CHECK_EQ(load(&file, &id), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(load(&file, &id));
    OK(aclmdlUnload(id));
    done();
}

/* What is refused alike when sizes are asked for and when a model is loaded. */
static void check_refused(const struct out *file, int code) {
    uint32_t id = 5;
    if (!CHECK_EQ(query(file), code) || !CHECK_EQ(load(file, &id), code))
        printf("    %s\n", aclGetRecentErrMsg());
    CHECK_EQ(id, 5);
}

static void test_bad_headers(void) {
    struct out file = make_model(true, 1, false), cut = file;
    begin();
    for (cut.size = 1; cut.size < HEADER_BYTES; cut.size += 3)
        check_refused(&cut, cut.size < 4 ? ACL_ERROR_GE_EXEC_MODEL_DATA_SIZE_INVALID : ACL_ERROR_GE_PARAM_INVALID);
    for (size_t at = 0; at < 4; at++) {
        struct out wrong = with_byte(&file, at, '?');
        check_refused(&wrong, ACL_ERROR_GE_PARAM_INVALID);
    }
    struct out wrong = with_byte(&file, 184, (uint8_t)(file.bytes[184] + 1));
    check_refused(&wrong, ACL_ERROR_GE_PARAM_INVALID);
    wrong = with_byte(&file, 80, 1);
    check_refused(&wrong, ACL_ERROR_GE_EXEC_LOAD_MODEL_PARTITION_FAILED);
    wrong = with_byte(&file, 82, 5);
    check_refused(&wrong, ACL_ERROR_GE_FAILURE);
    wrong = with_byte(&file, 82, 3);
    check_refused(&wrong, ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    wrong = with_byte(&file, 0, 'P');
    memcpy(wrong.bytes, "PK\3\4", 4);
    check_refused(&wrong, ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    done();
}

static void test_bad_tables(void) {
    struct out file = make_model(true, 1, false), none = make_file(true, 1, 0, NULL);
    uint32_t id;
    begin();
    put(&none, "\0\0\0\0\0\0\0", 7);
    set_length(&none, true);
    check_refused(&none, ACL_ERROR_GE_PARAM_INVALID);
    none.size = HEADER_BYTES + 8;
    set_length(&none, true);
    check_refused(&none, ACL_ERROR_GE_EXEC_MODEL_DATA_SIZE_INVALID);
    struct out wrong = with_byte(&file, HEADER_BYTES, 9);
    check_refused(&wrong, ACL_ERROR_GE_PARAM_INVALID);
    wrong = with_byte(&file, HEADER_BYTES + 3, 0x80);
    check_refused(&wrong, ACL_ERROR_GE_PARAM_INVALID);
    for (size_t byte = 16; byte < 24; byte++) {
        wrong = with_byte(&file, HEADER_BYTES + 8 + byte, 0xff);
        check_refused(&wrong, ACL_ERROR_GE_EXEC_MODEL_DATA_SIZE_INVALID);
    }
    struct out cut = with_byte(&file, 4, 0);
    cut.size = HEADER_BYTES + 8 + 4 * 24;
    set_length(&cut, true);
    check_refused(&cut, ACL_ERROR_GE_EXEC_MODEL_DATA_SIZE_INVALID);
    put(&file, "more", 4);
    set_length(&file, true);
    CHECK_EQ(query(&file), ACL_ERROR_GE_FAILURE);
    OK(load(&file, &id));
    OK(aclmdlUnload(id));
    struct out several = make_model(true, 2, false);
    put(&several, "x", 1);
    set_length(&several, true);
    check_refused(&several, ACL_ERROR_GE_FAILURE);
    several = with_byte(&several, 159, 0xff);
    check_refused(&several, ACL_ERROR_GE_EXEC_MODEL_DATA_SIZE_INVALID);
    done();
}

static void test_bad_parts(void) {
    struct out good = make_definition(false), weights = make_weights(), tasks = make_tasks(), text = {0};
    uint32_t id;
    begin();
    put(&text, "no message at all", 17);
    struct out graph_only = make_file(true, 1, 1, (const struct part[]){{PART_DEFINITION, good}});
    CHECK_EQ(query(&graph_only), ACL_ERROR_GE_PARAM_INVALID);
    struct out without = make_file(true, 1, 2, (const struct part[]){{PART_WEIGHTS, weights}, {PART_TASKS, tasks}});
    CHECK_EQ(query(&without), ACL_SUCCESS);
    CHECK_EQ(load(&without, &id), ACL_ERROR_GE_EXEC_LOAD_MODEL_PARTITION_FAILED);
    struct out bad = make_file(true, 1, 2, (const struct part[]){{PART_DEFINITION, text}, {PART_TASKS, tasks}});
    CHECK_EQ(load(&bad, &id), ACL_ERROR_GE_EXEC_LOAD_MODEL_PARTITION_FAILED);
    bad = make_file(true, 1, 2, (const struct part[]){{PART_DEFINITION, good}, {PART_TASKS, text}});
    check_refused(&bad, ACL_ERROR_GE_EXEC_LOAD_TASK_PARTITION_FAILED);
    for (size_t at = 0; at < good.size; at++) {
        struct out cut = good;
        cut.size = at;
        struct out file = make_file(true, 1, 2, (const struct part[]){{PART_DEFINITION, cut}, {PART_TASKS, tasks}});
        int code = load(&file, &id);
        CHECK(!code || code == ACL_ERROR_GE_EXEC_LOAD_MODEL_PARTITION_FAILED);
        if (!code)
            OK(aclmdlUnload(id));
    }
    done();
}

static void test_external_weights(void) {
    struct out file = make_model(true, 1, true);
    static const uint8_t content[56];
    void *block = NULL;
    uint32_t id;
    begin();
    OK(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_EQ(load(&file, &id), ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID);
    aclmdlConfigHandle *config = aclmdlCreateConfigHandle();
    OK(aclmdlSetExternalWeightAddress(config, "far.bin", block, 32));
    CHECK_EQ(load_memory(config, &file, ACL_MDL_LOAD_FROM_MEM, &id), ACL_ERROR_GE_PARAM_INVALID);
    OK(aclmdlSetExternalWeightAddress(config, "far.bin", block, 96));
    CHECK_EQ(load_memory(config, &file, ACL_MDL_LOAD_FROM_MEM, &id), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    OK(aclmdlSetExternalWeightAddress(config, "far.bin", block, 64));
    OK(load_memory(config, &file, ACL_MDL_LOAD_FROM_MEM, &id));
    OK(aclmdlUnload(id));
    OK(aclmdlDestroyConfigHandle(config));
    OK(aclrtFree(block));
    save("far.bin", content, sizeof(content));
    const char *given = folder;
    config = aclmdlCreateConfigHandle();
    OK(aclmdlSetConfigOpt(config, ACL_MDL_WEIGHT_PATH_PTR, &given, sizeof(given)));
    OK(load_memory(config, &file, ACL_MDL_LOAD_FROM_MEM, &id));
    OK(aclmdlUnload(id));
    struct out plain = make_model(true, 1, false);
    CHECK_EQ(load_memory(config, &plain, ACL_MDL_LOAD_FROM_MEM, &id), ACL_ERROR_GE_PARAM_INVALID);
    const char *path = save("far.bin", content, sizeof(content) - 1);
    CHECK_EQ(load_memory(config, &file, ACL_MDL_LOAD_FROM_MEM, &id), ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID);
    unlink(path);
    CHECK_EQ(load_memory(config, &file, ACL_MDL_LOAD_FROM_MEM, &id), ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID);
    OK(aclmdlDestroyConfigHandle(config));
    done();
}

/* A file that becomes shorter than its table says is a refusal. */
static void test_from_file(void) {
    struct out file = make_model(true, 1, false);
    size_t type = ACL_MDL_LOAD_FROM_FILE;
    uint32_t id;
    begin();
    const char *path = save("model.om", file.bytes, file.size);
    aclmdlConfigHandle *config = aclmdlCreateConfigHandle();
    OK(aclmdlSetConfigOpt(config, ACL_MDL_LOAD_TYPE_SIZET, &type, sizeof(type)));
    OK(aclmdlSetConfigOpt(config, ACL_MDL_PATH_PTR, &path, sizeof(path)));
    OK(aclmdlLoadWithConfig(config, &id));
    OK(aclmdlUnload(id));
    CHECK(!truncate(path, 300));
    CHECK_EQ(aclmdlLoadWithConfig(config, &id), ACL_ERROR_GE_PARAM_INVALID);
    unlink(path);
    CHECK_EQ(aclmdlLoadWithConfig(config, &id), ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID);
    OK(aclmdlDestroyConfigHandle(config));
    done();
}

int main(void) {
    test_sizes();
    test_arguments();
    test_needs_init_and_device();
    test_own_memory();
    test_memory_of_the_caller();
    test_short_of_memory();
    test_failed_copy();
    test_bad_headers();
    test_bad_tables();
    test_bad_parts();
    test_external_weights();
    test_from_file();
    return check_done();
}
