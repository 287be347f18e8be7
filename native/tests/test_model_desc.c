/* Descriptions of models, and configurations of loads. */
#include <pthread.h>

#include "om_writer.h"

static void begin(void) {
    start(NULL);
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
}

static aclmdlDesc *describe(const struct out *file, uint32_t *id) {
    aclmdlDesc *desc = aclmdlCreateDesc();
    OK(load(file, id));
    OK(aclmdlGetDesc(desc, *id));
    return desc;
}

static void check_dims(const aclmdlIODims *dims, const char *name, int64_t first, int64_t second) {
    CHECK(!strcmp(dims->name, name));
    CHECK_EQ(dims->dimCount, 2);
    CHECK_EQ(dims->dims[0], first);
    CHECK_EQ(dims->dims[1], second);
    CHECK_EQ(dims->dims[2], 0);
}

static void test_inputs_and_outputs(void) {
    struct out file = make_model(true, 1, false);
    aclmdlIODims dims;
    uint32_t id;
    begin();
    aclmdlDesc *desc = describe(&file, &id);
    CHECK_EQ(aclmdlGetNumInputs(desc), 2);
    CHECK_EQ(aclmdlGetNumOutputs(desc), 2);
    CHECK(!strcmp(aclmdlGetInputNameByIndex(desc, 0), "early"));
    CHECK(!strcmp(aclmdlGetInputNameByIndex(desc, 1), "late"));
    CHECK_EQ(aclmdlGetInputSizeByIndex(desc, 0), 64);
    CHECK_EQ(aclmdlGetInputSizeByIndex(desc, 1), 0);
    CHECK_EQ(aclmdlGetInputFormat(desc, 0), ACL_FORMAT_NCHW);
    CHECK_EQ(aclmdlGetInputFormat(desc, 1), ACL_FORMAT_NHWC);
    CHECK_EQ(aclmdlGetInputDataType(desc, 0), ACL_FLOAT);
    CHECK_EQ(aclmdlGetInputDataType(desc, 1), ACL_FLOAT16);
    OK(aclmdlGetInputDims(desc, 0, &dims));
    check_dims(&dims, "early", 2, 3);
    OK(aclmdlGetInputDims(desc, 1, &dims));
    check_dims(&dims, "late", -1, 8);
    CHECK(!strcmp(aclmdlGetOutputNameByIndex(desc, 0), "output_0_relu_0"));
    CHECK(!strcmp(aclmdlGetOutputNameByIndex(desc, 1), "output_1_sum_3"));
    CHECK_EQ(aclmdlGetOutputSizeByIndex(desc, 0), 2 * 3 * 2);
    CHECK_EQ(aclmdlGetOutputSizeByIndex(desc, 1), 3); /* six elements of four bits */
    CHECK_EQ(aclmdlGetOutputFormat(desc, 0), ACL_FORMAT_FRACTAL_Z);
    CHECK_EQ(aclmdlGetOutputFormat(desc, 1), ACL_FORMAT_ND);
    CHECK_EQ(aclmdlGetOutputDataType(desc, 0), ACL_FLOAT16);
    CHECK_EQ(aclmdlGetOutputDataType(desc, 1), ACL_INT4);
    OK(aclmdlGetOutputDims(desc, 1, &dims));
    check_dims(&dims, "output_1_sum_3", 2, 3);
    const char *name = aclmdlGetInputNameByIndex(desc, 0);
    OK(aclmdlUnload(id));
    CHECK(!strcmp(name, "early"));
    CHECK_EQ(aclmdlGetNumOutputs(desc), 2);
    OK(aclmdlDestroyDesc(desc));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

static void test_beyond_the_last(void) {
    struct out file = make_model(true, 1, false);
    aclmdlIODims dims;
    uint32_t id;
    int other;
    begin();
    aclmdlDesc *desc = describe(&file, &id), *fresh = aclmdlCreateDesc();
    const aclmdlDesc *wrong[] = {desc, fresh, NULL, (aclmdlDesc *)&other};
    for (size_t i = 0; i < 4; i++) {
        aclmdlDesc *one = (aclmdlDesc *)wrong[i];
        CHECK(!strcmp(aclmdlGetInputNameByIndex(one, 2), ""));
        CHECK(!strcmp(aclmdlGetOutputNameByIndex(one, SIZE_MAX), ""));
        CHECK_EQ(aclmdlGetInputSizeByIndex(one, 2), 0);
        CHECK_EQ(aclmdlGetOutputSizeByIndex(one, 2), 0);
        CHECK_EQ(aclmdlGetInputFormat(one, 2), ACL_FORMAT_UNDEFINED);
        CHECK_EQ(aclmdlGetOutputFormat(one, 2), ACL_FORMAT_UNDEFINED);
        CHECK_EQ(aclmdlGetInputDataType(one, 2), ACL_DT_UNDEFINED);
        CHECK_EQ(aclmdlGetOutputDataType(one, 2), ACL_DT_UNDEFINED);
        CHECK_EQ(aclmdlGetInputDims(one, 2, &dims), ACL_ERROR_INVALID_PARAM);
        CHECK_EQ(aclmdlGetOutputDims(one, 2, &dims), ACL_ERROR_INVALID_PARAM);
        CHECK_EQ(aclmdlGetNumInputs(one), i ? 0 : 2);
        CHECK_EQ(aclmdlGetDesc(one, 12345), i < 2 ? ACL_ERROR_GE_EXEC_MODEL_ID_INVALID : ACL_ERROR_INVALID_PARAM);
    }
    CHECK_EQ(aclmdlGetInputDims(desc, 0, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclmdlDestroyDesc(NULL), ACL_ERROR_INVALID_PARAM);
    OK(aclmdlDestroyDesc(fresh));
    CHECK_EQ(aclmdlDestroyDesc(fresh), ACL_ERROR_INVALID_PARAM);
    OK(aclmdlGetDesc(desc, id));
    OK(aclmdlDestroyDesc(desc));
    OK(aclmdlUnload(id));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

/* A model with what is put into its definition besides the ordinary. */
static struct out model_with(const struct out *more) {
    struct out definition = make_definition(false), tasks = make_tasks();
    put(&definition, more->bytes, more->size);
    return make_file(true, 1, 2, (const struct part[]){{PART_DEFINITION, definition}, {PART_TASKS, tasks}});
}

static void test_listed_names(void) {
    static const char *const names[] = {"first", "second:7:y"};
    struct out listed = {0}, one = {0};
    uint32_t id;
    begin();
    put_attr_texts(&listed, 11, "attr_model_out_nodes_name", 2, names);
    struct out file = model_with(&listed);
    aclmdlDesc *desc = describe(&file, &id);
    CHECK(!strcmp(aclmdlGetOutputNameByIndex(desc, 0), "first:0"));
    CHECK(!strcmp(aclmdlGetOutputNameByIndex(desc, 1), "second:7:y"));
    OK(aclmdlDestroyDesc(desc));
    put_attr_texts(&one, 11, "attr_model_out_nodes_name", 1, names);
    file = model_with(&one);
    desc = describe(&file, &id);
    CHECK(!strcmp(aclmdlGetOutputNameByIndex(desc, 0), "output_0_relu_0"));
    OK(aclmdlDestroyDesc(desc));
    OK(hostacl_reset());
}

/* A long name, and more dimensions than the structure has. */
static void test_large_tensors(void) {
    char name[300];
    int64_t dims[ACL_MAX_DIM_CNT + 1];
    struct out model = {0}, graph = {0}, tasks = make_tasks(), op;
    aclmdlIODims got;
    uint32_t id;
    begin();
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = 0;
    for (int i = 0; i <= ACL_MAX_DIM_CNT; i++)
        dims[i] = 1;
    for (int more = 0; more < 2; more++) {
        op = start_op(name, "Data");
        put_tensor(&op, 33, 1, "ND", (size_t)(ACL_MAX_DIM_CNT + more), dims, 4);
        put_inside(&graph, 6, &op);
    }
    put_inside(&model, 7, &graph);
    struct out file = make_file(true, 1, 2, (const struct part[]){{PART_DEFINITION, model}, {PART_TASKS, tasks}});
    aclmdlDesc *desc = describe(&file, &id);
    CHECK(!strcmp(aclmdlGetInputNameByIndex(desc, 0), name));
    OK(aclmdlGetInputDims(desc, 0, &got));
    CHECK_EQ(got.dimCount, ACL_MAX_DIM_CNT);
    snprintf(name, sizeof(name), "acl_modelId_%u_input_0", id);
    CHECK(!strcmp(got.name, name));
    CHECK_EQ(aclmdlGetInputDims(desc, 1, &got), ACL_ERROR_STORAGE_OVER_LIMIT);
    OK(hostacl_reset());
    CHECK_EQ(aclmdlGetNumInputs(desc), 0);
}

/* Names of attributes as numbers of a table: "index" is number 0, "location" number 1, whose values are texts. */
static void test_compressed_names(void) {
    static const char *const names[] = {"index", "location"};
    static const int64_t dims[] = {4};
    struct out flags = {0}, list = {0}, table = {0}, graph = {0}, op;
    uint32_t id;
    begin();
    put_attr_number(&table, 11, "om_compress_version", 1);
    put_attr_texts(&table, 11, "attr_name_enum", 2, names);
    put_attr_texts(&table, 11, "attr_value_enum", 1, (const char *const[]){"x/far.bin"});
    put_blob(&list, 5, "\0\1", 2);
    put_inside(&flags, 1, &list);
    struct out with_flags = {0};
    put(&with_flags, table.bytes, table.size);
    put_attr(&with_flags, 11, "attrs_use_string_value", &flags);
    for (int input = 1; input >= 0; input--) {
        struct out entry = {0}, value = {0};
        op = start_op(input ? "one" : "zero", "Data");
        put_number(&value, 3, (uint64_t)input);
        put_blob(&entry, 1, "\0\1", 2);
        put_inside(&entry, 2, &value);
        put_inside(&op, 10, &entry);
        put_tensor(&op, 33, 1, "ND", 1, dims, 16);
        put_inside(&graph, 6, &op);
    }
    put_inside(&with_flags, 7, &graph);
    struct out tasks = make_tasks();
    struct out file = make_file(true, 1, 2, (const struct part[]){{PART_DEFINITION, with_flags}, {PART_TASKS, tasks}});
    aclmdlDesc *desc = describe(&file, &id);
    CHECK(!strcmp(aclmdlGetInputNameByIndex(desc, 0), "zero"));
    CHECK(!strcmp(aclmdlGetInputNameByIndex(desc, 1), "one"));
    OK(aclmdlDestroyDesc(desc));
    for (int wrong = 0; wrong < 3; wrong++) {
        struct out model = {0}, entry = {0}, value = {0}, inner = {0};
        put(&model, with_flags.bytes, with_flags.size);
        op = start_op("odd", "FileConstant");
        put_number(&value, 3, wrong == 1); /* text 1 of 1 is not there */
        put_blob(&entry, 1, wrong == 0 ? "\0\5" : "\0\2", 2);
        put_inside(&entry, 2, &value);
        put_inside(&op, 10, &entry);
        put_inside(&inner, 6, &op);
        put_inside(&model, 7, &inner);
        file = make_file(true, 1, 2, (const struct part[]){{PART_DEFINITION, model}, {PART_TASKS, tasks}});
        CHECK_EQ(load(&file, &id), wrong == 2 ? ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID /* x/far.bin, as it says */
                                              : ACL_ERROR_GE_EXEC_LOAD_MODEL_PARTITION_FAILED);
    }
    file = make_file(true, 1, 2, (const struct part[]){{PART_DEFINITION, table}, {PART_TASKS, tasks}});
    CHECK_EQ(load(&file, &id), ACL_ERROR_GE_EXEC_LOAD_MODEL_PARTITION_FAILED);
    OK(hostacl_reset());
}

static void test_options(void) {
    static const char *const path = "/some/path";
    aclmdlConfigHandle *config = aclmdlCreateConfigHandle();
    int32_t small = 0;
    size_t number = 1;
    uint32_t id;
    start(NULL);
    config = aclmdlCreateConfigHandle();
    OK(aclInit(NULL));
    CHECK_EQ(aclmdlLoadWithConfig(config, &id), ACL_ERROR_INVALID_PARAM);
    for (int attr = ACL_MDL_PRIORITY_INT32; attr <= ACL_NPU_PERF_MODE; attr++) {
        bool is_small = attr == ACL_MDL_PRIORITY_INT32 || attr == ACL_MDL_WITHOUT_GRAPH_INT32;
        bool is_path = attr == ACL_MDL_PATH_PTR || attr == ACL_MDL_WEIGHT_PATH_PTR;
        const void *value = is_small ? (const void *)&small : is_path ? (const void *)&path : &number;
        OK(aclmdlSetConfigOpt(config, (aclmdlConfigAttr)attr, value, is_small ? 4 : 8));
        CHECK_EQ(aclmdlSetConfigOpt(config, (aclmdlConfigAttr)attr, value, is_small ? 8 : 7), ACL_ERROR_INVALID_PARAM);
        CHECK_EQ(aclmdlSetConfigOpt(config, (aclmdlConfigAttr)attr, NULL, 8), ACL_ERROR_INVALID_PARAM);
    }
    CHECK_EQ(aclmdlSetConfigOpt(config, (aclmdlConfigAttr)30, &number, 8), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclmdlSetConfigOpt(config, ACL_MDL_RESERVED, &number, 8), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclmdlSetConfigOpt(config, (aclmdlConfigAttr)-1, &number, 8), ACL_ERROR_INVALID_PARAM);
    for (number = 0; number < 8; number++)
        CHECK_EQ(aclmdlSetConfigOpt(config, ACL_MDL_LOAD_TYPE_SIZET, &number, 8),
                 number >= 1 && number <= 6 ? ACL_SUCCESS : ACL_ERROR_INVALID_PARAM);
    for (small = -1; small < 9; small++)
        CHECK_EQ(aclmdlSetConfigOpt(config, ACL_MDL_PRIORITY_INT32, &small, 4),
                 small >= 0 && small <= 7 ? ACL_SUCCESS : ACL_ERROR_INVALID_PARAM);
    small = 2;
    CHECK_EQ(aclmdlSetConfigOpt(config, ACL_MDL_WITHOUT_GRAPH_INT32, &small, 4), ACL_ERROR_INVALID_PARAM);
    const char *none = NULL, *empty = "";
    CHECK_EQ(aclmdlSetConfigOpt(config, ACL_MDL_PATH_PTR, &none, 8), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclmdlSetConfigOpt(config, ACL_MDL_PATH_PTR, &empty, 8), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclmdlSetConfigOpt(NULL, ACL_MDL_PATH_PTR, &path, 8), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclmdlLoadWithConfig(config, &id), ACL_ERROR_RT_FEATURE_NOT_SUPPORT); /* load type 6, queues given */
    OK(aclmdlDestroyConfigHandle(config));
    CHECK_EQ(aclmdlDestroyConfigHandle(config), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclmdlDestroyConfigHandle(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclmdlSetConfigOpt(config, ACL_MDL_PATH_PTR, &path, 8), ACL_ERROR_INVALID_PARAM);
    check_nothing_alive();
}

static void test_what_a_way_of_loading_needs(void) {
    uint32_t id;
    begin();
    for (size_t type = ACL_MDL_LOAD_FROM_FILE; type <= ACL_MDL_LOAD_FROM_MEM_WITH_Q; type++) {
        aclmdlConfigHandle *config = aclmdlCreateConfigHandle();
        OK(aclmdlSetConfigOpt(config, ACL_MDL_LOAD_TYPE_SIZET, &type, sizeof(type)));
        CHECK_EQ(aclmdlLoadWithConfig(config, &id), ACL_ERROR_INVALID_PARAM);
        OK(aclmdlDestroyConfigHandle(config));
    }
    struct out several = make_model(true, 2, false);
    aclmdlConfigHandle *config = aclmdlCreateConfigHandle();
    int32_t without = 1;
    OK(aclmdlSetConfigOpt(config, ACL_MDL_WITHOUT_GRAPH_INT32, &without, sizeof(without)));
    CHECK_EQ(load_memory(config, &several, ACL_MDL_LOAD_FROM_MEM, &id), ACL_ERROR_GE_PARAM_INVALID);
    OK(aclmdlDestroyConfigHandle(config));
    OK(aclrtResetDevice(0));
    check_nothing_alive();
}

static void test_external_weight_blocks(void) {
    int place;
    start(NULL);
    aclmdlConfigHandle *config = aclmdlCreateConfigHandle();
    OK(aclmdlSetExternalWeightAddress(config, "weights", &place, 32));
    OK(aclmdlSetExternalWeightAddress(config, "weights", &place, 64));
    const size_t wrong[] = {0, 1, 31, 33, SIZE_MAX};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        CHECK_EQ(aclmdlSetExternalWeightAddress(config, "weights", &place, wrong[i]), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclmdlSetExternalWeightAddress(config, "a/weights", &place, 32), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclmdlSetExternalWeightAddress(config, "", &place, 32), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclmdlSetExternalWeightAddress(config, NULL, &place, 32), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclmdlSetExternalWeightAddress(config, "weights", NULL, 32), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclmdlSetExternalWeightAddress(NULL, "weights", &place, 32), ACL_ERROR_INVALID_PARAM);
    OK(aclmdlDestroyConfigHandle(config));
    check_nothing_alive();
}

static void *work(void *file) {
    OK(aclrtSetDevice(0));
    for (int i = 0; i < 60; i++) {
        uint32_t id;
        aclmdlDesc *desc = describe(file, &id);
        CHECK_EQ(aclmdlGetNumInputs(desc), 2);
        OK(aclmdlUnload(id));
        CHECK(!strcmp(aclmdlGetInputNameByIndex(desc, 1), "late"));
        OK(aclmdlDestroyDesc(desc));
    }
    return NULL;
}

/* What is alive is counted and listed, and ends with the reset. */
static void test_live_objects(void) {
    struct out file = make_model(true, 1, false);
    hostacl_live_t live;
    char text[1024], line[128];
    uint32_t id;
    begin();
    aclmdlDesc *desc = describe(&file, &id);
    aclmdlConfigHandle *config = aclmdlCreateConfigHandle();
    OK(hostacl_live(&live));
    CHECK_EQ(live.models, 1);
    CHECK_EQ(live.model_descs, 1);
    CHECK_EQ(live.model_configs, 1);
    hostacl_live_report(text, sizeof(text));
    snprintf(line, sizeof(line), "model %u: device 0\n", id);
    CHECK(strstr(text, line));
    snprintf(line, sizeof(line), "model configuration %p\n", (void *)config);
    CHECK(strstr(text, line));
    snprintf(line, sizeof(line), "model description %p\n", (void *)desc);
    CHECK(strstr(text, line));
    OK(hostacl_reset());
    check_nothing_alive();
    CHECK_EQ(aclmdlDestroyDesc(desc), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclmdlDestroyConfigHandle(config), ACL_ERROR_INVALID_PARAM);
}

static void test_injected_failures(void) {
    struct out file = make_model(true, 1, false);
    uint32_t id;
    begin();
    aclmdlDesc *desc = describe(&file, &id);
    OK(hostacl_fail("aclmdlGetInputSizeByIndex", 1, ACL_ERROR_GE_INTERNAL_ERROR));
    OK(hostacl_fail("aclmdlGetInputNameByIndex", 1, ACL_ERROR_GE_INTERNAL_ERROR));
    OK(hostacl_fail("aclmdlGetInputFormat", 1, ACL_ERROR_GE_INTERNAL_ERROR));
    OK(hostacl_fail("aclmdlUnload", 1, ACL_ERROR_GE_UNLOAD_MODEL));
    OK(hostacl_fail("aclmdlCreateDesc", 1, ACL_ERROR_BAD_ALLOC));
    CHECK_EQ(aclmdlGetInputSizeByIndex(desc, 0), 0);
    CHECK(!strcmp(aclmdlGetInputNameByIndex(desc, 0), ""));
    CHECK_EQ(aclmdlGetInputFormat(desc, 0), ACL_FORMAT_UNDEFINED);
    CHECK_EQ(aclmdlUnload(id), ACL_ERROR_GE_UNLOAD_MODEL);
    CHECK(!aclmdlCreateDesc());
    CHECK_EQ(aclmdlGetInputSizeByIndex(desc, 0), 64);
    OK(aclmdlUnload(id));
    OK(hostacl_reset());
}

static void test_threads(void) {
    struct out file = make_model(false, 2, false);
    pthread_t threads[3];
    begin();
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, &file);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    OK(aclrtResetDeviceForce(0));
    check_nothing_alive();
}

int main(void) {
    test_inputs_and_outputs();
    test_beyond_the_last();
    test_listed_names();
    test_large_tensors();
    test_compressed_names();
    test_options();
    test_what_a_way_of_loading_needs();
    test_external_weight_blocks();
    test_live_objects();
    test_injected_failures();
    test_threads();
    return check_done();
}
