/* Random damage to models: fuzz_models COUNT SEED PROFILE [THREADS [FILE...]].
 *
 * Each of COUNT times a good model, one made here or a FILE, is damaged: bits, numbers, lengths, parts of it cut out,
 * doubled or moved. Asking for its sizes and loading it must answer one of the documented codes, agree with each other,
 * describe what they loaded, and leave nothing behind. */
#include <pthread.h>
#include <unistd.h>

#include "om_writer.h"

enum { MAX_SEEDS = 64, MAX_EDITS = 5, MAX_THREADS = 16 };

static struct out seeds[MAX_SEEDS];
static size_t seed_count;
static _Thread_local uint64_t state;
static uint64_t count, first_seed;
static int threads = 1;

static uint64_t random_below(uint64_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) % below;
}

static uint64_t odd_number(void) {
    static const uint64_t numbers[] = {0,          1,          2,          7,          8,          9,
                                       24,         0xff,       0x100,      0x7fffffff, 0x80000000, 0xffffffff,
                                       UINT64_MAX, 1ull << 63, 0x20000000, 0x10000000};
    size_t all = sizeof(numbers) / sizeof(numbers[0]);
    uint64_t choice = random_below(all + 2);
    return choice < all ? numbers[choice] : random_below(1 << 20);
}

/* A place that means something more often than not: a field of the header or of the first table. */
static size_t place(const struct out *file) {
    static const size_t fields[] = {0, 4, 8, 76, 80, 82, 156, 184, 193, 256, 260, 264, 268, 272, 280, 288, 304};
    size_t all = sizeof(fields) / sizeof(fields[0]);
    size_t at = random_below(2) ? fields[random_below(all)] : random_below(file->size);
    return at < file->size ? at : file->size - 1;
}

static void edit(struct out *file) {
    size_t at = place(file), left = file->size - at;
    uint64_t number = odd_number();
    size_t width = (size_t)1 << random_below(4), length = 1 + random_below(left < 64 ? left : 64);
    switch (random_below(6)) {
    case 0:
        file->bytes[at] ^= (uint8_t)(1u << random_below(8));
        break;
    case 1:
        memcpy(file->bytes + at, &number, width < left ? width : left);
        break;
    case 2: /* cut the end off */
        file->size = at ? at : 1;
        break;
    case 3: /* take bytes out */
        memmove(file->bytes + at, file->bytes + at + length, left - length);
        file->size -= file->size > length ? length : 0;
        break;
    case 4: /* double bytes */
        if (file->size + length > file->room)
            break;
        memmove(file->bytes + at + length, file->bytes + at, left);
        file->size += length;
        break;
    default: /* move bytes */
        memmove(file->bytes + at, file->bytes + random_below(file->size - length + 1), length);
    }
}

static struct out damaged(void) {
    const struct out *good = &seeds[random_below(seed_count)];
    struct out file = {.size = good->size, .room = good->size + MAX_EDITS * 64};
    file.bytes = malloc(file.room);
    if (!file.bytes)
        abort();
    memcpy(file.bytes, good->bytes, good->size);
    for (uint64_t edits = random_below(MAX_EDITS); edits-- > 0;)
        edit(&file);
    if (file.size > HEADER_BYTES && random_below(3))
        set_length(&file, file.bytes[184] || file.bytes[185] || file.bytes[186]);
    return file;
}

/* Codes that a model may be refused with. */
static bool is_documented(int code) {
    static const int codes[] = {
        ACL_SUCCESS,
        ACL_ERROR_INVALID_PARAM,
        ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
        ACL_ERROR_RT_DRV_INTERNAL_ERROR,
        ACL_ERROR_GE_FAILURE,
        ACL_ERROR_GE_PARAM_INVALID,
        ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID,
        ACL_ERROR_GE_EXEC_MODEL_DATA_SIZE_INVALID,
        ACL_ERROR_GE_MEMORY_ALLOCATION,
        ACL_ERROR_GE_EXEC_LOAD_MODEL_PARTITION_FAILED,
        ACL_ERROR_GE_EXEC_LOAD_WEIGHT_PARTITION_FAILED,
        ACL_ERROR_GE_EXEC_LOAD_TASK_PARTITION_FAILED,
    };
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (code == codes[i])
            return true;
    }
    return false;
}

/* Reads all that a description of a loaded model says. */
static void describe(uint32_t id) {
    aclmdlDesc *desc = aclmdlCreateDesc();
    aclmdlIODims dims;
    OK(aclmdlGetDesc(desc, id));
    for (size_t i = 0; i < aclmdlGetNumInputs(desc); i++) {
        int code = aclmdlGetInputDims(desc, i, &dims);
        CHECK(code == ACL_SUCCESS || code == ACL_ERROR_STORAGE_OVER_LIMIT);
        CHECK(aclmdlGetInputNameByIndex(desc, i) && aclmdlGetInputSizeByIndex(desc, i) <= INT64_MAX);
        CHECK(aclmdlGetInputDataType(desc, i) >= ACL_DT_UNDEFINED && aclmdlGetInputFormat(desc, i) <= 0xff);
    }
    for (size_t i = 0; i < aclmdlGetNumOutputs(desc); i++) {
        int code = aclmdlGetOutputDims(desc, i, &dims);
        CHECK(code == ACL_SUCCESS || code == ACL_ERROR_STORAGE_OVER_LIMIT);
        CHECK(aclmdlGetOutputNameByIndex(desc, i) && aclmdlGetOutputSizeByIndex(desc, i) <= INT64_MAX);
        CHECK(aclmdlGetOutputDataType(desc, i) >= ACL_DT_UNDEFINED && aclmdlGetOutputFormat(desc, i) <= 0xff);
    }
    OK(aclmdlDestroyDesc(desc));
}

static int load_file(aclmdlConfigHandle *config, const struct out *file, uint32_t *id) {
    char name[64];
    size_t type = ACL_MDL_LOAD_FROM_FILE;
    snprintf(name, sizeof(name), "/tmp/hostacl-fuzz-%d-%lu.om", getpid(), (unsigned long)pthread_self());
    const char *path = name;
    FILE *stream = fopen(name, "wb");
    CHECK(stream && fwrite(file->bytes, 1, file->size, stream) == file->size && !fclose(stream));
    OK(aclmdlSetConfigOpt(config, ACL_MDL_LOAD_TYPE_SIZET, &type, sizeof(type)));
    OK(aclmdlSetConfigOpt(config, ACL_MDL_PATH_PTR, &path, sizeof(path)));
    int code = aclmdlLoadWithConfig(config, id);
    unlink(name);
    return code;
}

static void try_one(void *block) {
    struct out file = damaged();
    size_t work = 0, weight = 0;
    uint32_t id = 0;
    int asked = aclmdlQuerySizeFromMem(file.bytes, file.size, &work, &weight);
    aclmdlConfigHandle *config = aclmdlCreateConfigHandle();
    OK(aclmdlSetExternalWeightAddress(config, "far.bin", block, 64));
    int code = random_below(8) ? load_memory(config, &file, ACL_MDL_LOAD_FROM_MEM, &id) : load_file(config, &file, &id);
    OK(aclmdlDestroyConfigHandle(config));
    bool good = is_documented(asked) && is_documented(code);
    if (!asked)
        good = good && weight <= file.size;
    if (!code) {
        /* a size is not told of a model that only has a graph, or has something behind it */
        good = good && (!asked || asked == ACL_ERROR_GE_PARAM_INVALID || asked == ACL_ERROR_GE_FAILURE);
        describe(id);
        OK(aclmdlUnload(id));
    }
    if (!CHECK(good))
        printf("    sizes %d, load %d: seed %llu\n", asked, code, (unsigned long long)first_seed);
    free(file.bytes);
}

static void *run(void *number) {
    void *block = NULL;
    hostacl_live_t live;
    state = first_seed * 0x9e3779b97f4a7c15u + (uintptr_t)number + 1;
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    for (uint64_t i = 0; i < count; i++) {
        try_one(block);
        if (threads > 1)
            continue;
        OK(hostacl_live(&live));
        CHECK(live.models == 0 && live.blocks == 1 && live.model_configs == 0 && live.model_descs == 0);
    }
    OK(aclrtFree(block));
    return NULL;
}

static void add_file(const char *path) {
    struct out file = {0};
    char buffer[4096];
    FILE *stream = fopen(path, "rb");
    if (!CHECK(stream && seed_count < MAX_SEEDS))
        return;
    for (size_t got; (got = fread(buffer, 1, sizeof(buffer), stream)) > 0;)
        put(&file, buffer, got);
    fclose(stream);
    seeds[seed_count++] = file;
}

int main(int argc, char **argv) {
    pthread_t started[MAX_THREADS];
    count = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000;
    first_seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    threads = argc > 4 ? atoi(argv[4]) : 1;
    if (threads < 1 || threads > MAX_THREADS)
        return 2;
    start("profile", argc > 3 ? argv[3] : "strict", NULL);
    for (int kind = 0; kind < 6; kind++)
        seeds[seed_count++] = make_model(kind % 2, kind < 4 ? 1 : 2, kind % 4 > 1);
    for (int i = 5; i < argc; i++)
        add_file(argv[i]);
    OK(aclInit(NULL));
    for (int i = 0; i < threads; i++)
        pthread_create(&started[i], NULL, run, (void *)(uintptr_t)i);
    for (int i = 0; i < threads; i++)
        pthread_join(started[i], NULL);
    OK(aclrtResetDeviceForce(0));
    check_nothing_alive();
    printf("fuzz_models: %llu models, seed %llu\n", (unsigned long long)(count * (uint64_t)threads),
           (unsigned long long)first_seed);
    return check_done();
}
