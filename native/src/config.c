/* Options: the tables of products and profiles, and the reading of keys and environment.
 *
 * A key is set on a copy of the options which replaces them only when the whole makes sense, so a refused value leaves
 * everything as it was. Pools that are not given follow from the capacity: an eighth of it in 4 KiB pages, four 1 GiB
 * pages where the product has them and 16 GiB stand behind each, the rest in 2 MiB pages; what is left below one of
 * these, in 4 KiB pages again.
 *
 * Thread safety: works on the struct it is given; the runtime's own struct is guarded by the table lock. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hostacl.h"

/* Longer family names come before their prefixes. Sources: platform configuration of the products. */
static const struct product products[] = {
    {.family = "Ascend910_9363",
     .arch = "910B",
     .padding = 32,
     .giant_pages = true,
     .fabric = true,
     .hbm = true,
     .bf16 = true,
     .capacity = 32 * GIB},
    {.family = "Ascend910_93",
     .arch = "910B",
     .padding = 32,
     .giant_pages = true,
     .fabric = true,
     .hbm = true,
     .bf16 = true,
     .capacity = 64 * GIB},
    {.family = "Ascend910B4",
     .arch = "910B",
     .padding = 32,
     .giant_pages = true,
     .pools = true,
     .hbm = true,
     .bf16 = true,
     .capacity = 32 * GIB},
    {.family = "Ascend910B",
     .arch = "910B",
     .padding = 32,
     .giant_pages = true,
     .pools = true,
     .hbm = true,
     .bf16 = true,
     .capacity = 64 * GIB},
    {.family = "Ascend910", .arch = "910", .padding = 32, .hbm = true, .capacity = 32 * GIB},
    {.family = "Ascend950",
     .arch = "950",
     .giant_pages = true,
     .driver_v3 = true,
     .fabric = true,
     .hbm = true,
     .bf16 = true,
     .capacity = 128 * GIB},
    {.family = "Ascend310P", .arch = "310P", .padding = 32, .capacity = 24000000000},
    {.family = "Ascend310B", .arch = "310B", .padding = 32, .capacity = 32 * GIB},
};

static const struct profile profiles[] = {
    {.name = "strict"},
    {.name = "card",
     .whole_pages = true,
     .driver_heap = true,
     .free_takes_host = true,
     .default_stream_ends = true,
     .front_maps = true,
     .open_peers = true,
     .driver_bytes = {[PAGE_4K] = 4 * MIB, [PAGE_2M] = 28 * MIB}},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MAX_CAPACITY (4 * TIB)
#define MIN_ADDRESSES GIB
#define MAX_CORES 1024

uint64_t page_class_bytes(enum page_class cls) {
    static const uint64_t bytes[PAGE_CLASSES] = {4 * KIB, 2 * MIB, GIB};
    return bytes[cls];
}

const char *page_class_name(enum page_class cls) {
    static const char *const names[PAGE_CLASSES] = {"4 KiB", "2 MiB", "1 GiB"};
    return names[cls];
}

__attribute__((format(printf, 2, 3))) static bool complain(struct complaint *complaint, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(complaint->text, sizeof(complaint->text), format, args);
    va_end(args);
    return false;
}

bool config_number(const char *text, uint64_t *number) {
    if (!isdigit((unsigned char)text[0]))
        return false;
    char *end;
    errno = 0;
    bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    unsigned long long value = strtoull(text, &end, hex ? 16 : 10);
    if (errno || end == text)
        return false;
    const char *units = "KMGT";
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    uint64_t factor = unit ? KIB << (10 * (unit - units)) : 1;
    if (*end && (!unit || end[1]))
        return false;
    return !__builtin_mul_overflow((uint64_t)value, factor, number);
}

static bool set_devices(struct config *config, const char *value, struct complaint *complaint) {
    uint64_t number;
    if (!config_number(value, &number) || number < 1 || number > HOSTACL_MAX_DEVICES)
        return complain(complaint, "devices: \"%s\" is not a number from 1 to %d", value, HOSTACL_MAX_DEVICES);
    config->devices = (uint32_t)number;
    return true;
}

const struct product *config_product(const char *soc_name) {
    for (size_t i = 0; i < COUNT(products); i++) {
        if (!strncmp(soc_name, products[i].family, strlen(products[i].family)))
            return &products[i];
    }
    return NULL;
}

static bool set_soc_name(struct config *config, const char *value, struct complaint *complaint) {
    const struct product *product = config_product(value);
    if (!product || strlen(value) >= sizeof(config->soc_name))
        return complain(complaint,
                        "soc_name: \"%s\" is no known product; known are Ascend910*, Ascend950*, Ascend310P* "
                        "and Ascend310B*",
                        value);
    config->product = product;
    strcpy(config->soc_name, value);
    return true;
}

static bool set_capacity(struct config *config, const char *value, struct complaint *complaint) {
    uint64_t number;
    if (!config_number(value, &number) || number < 2 * MIB || number > MAX_CAPACITY)
        return complain(complaint, "capacity: \"%s\" is not a number of bytes from 2M to 4T", value);
    config->capacity = number;
    return true;
}

static bool set_pool(struct config *config, enum page_class cls, uint64_t unit, const char *key, const char *value,
                     struct complaint *complaint) {
    uint64_t number;
    uint64_t bytes;
    if (!config_number(value, &number) || __builtin_mul_overflow(number, unit, &bytes) || bytes > MAX_CAPACITY ||
        bytes % page_class_bytes(cls))
        return complain(complaint, "%s: \"%s\" is not %s up to 4 TiB", key, value,
                        unit == 1 ? "a number of bytes that makes whole pages," : "a number of pages");
    config->pool_bytes[cls] = bytes;
    config->pool_given[cls] = true;
    return true;
}

static bool set_pages_4k(struct config *config, const char *value, struct complaint *complaint) {
    return set_pool(config, PAGE_4K, 1, "pages_4k", value, complaint);
}

static bool set_pages_2m(struct config *config, const char *value, struct complaint *complaint) {
    return set_pool(config, PAGE_2M, 1, "pages_2m", value, complaint);
}

static bool set_pages_1g(struct config *config, const char *value, struct complaint *complaint) {
    config->giant_pages_off = !strcmp(value, "none");
    return set_pool(config, PAGE_1G, GIB, "pages_1g", config->giant_pages_off ? "0" : value, complaint);
}

static bool set_profile(struct config *config, const char *value, struct complaint *complaint) {
    for (size_t i = 0; i < COUNT(profiles); i++) {
        if (!strcmp(value, profiles[i].name)) {
            config->profile = &profiles[i];
            return true;
        }
    }
    return complain(complaint, "profile: \"%s\" is neither strict nor card", value);
}

static bool set_first_address(struct config *config, const char *value, struct complaint *complaint) {
    uint64_t number;
    if (!config_number(value, &number) || number < 4 * KIB || number > UINT64_MAX - MIN_ADDRESSES)
        return complain(complaint, "first_address: \"%s\" is not an address from 0x1000 to 1 GiB below 2^64", value);
    config->first_address = (number + 4 * KIB - 1) & ~(4 * KIB - 1);
    config->first_address_given = true;
    return true;
}

static bool set_hugetlb(struct config *config, const char *value, struct complaint *complaint) {
    if (strcmp(value, "0") && strcmp(value, "1"))
        return complain(complaint, "hugetlb: \"%s\" is neither 0 nor 1", value);
    config->hugetlb = !strcmp(value, "1");
    return true;
}

static bool set_mode(struct config *config, const char *value, struct complaint *complaint) {
    if (strcmp(value, "isolated") && strcmp(value, "unified"))
        return complain(complaint, "mode: \"%s\" is neither isolated nor unified", value);
    config->unified = !strcmp(value, "unified");
    return true;
}

/* Reads a choice of words; *chosen is the number of the word. */
static bool choose(const char *key, const char *value, const char *const *words, int count, int *chosen,
                   struct complaint *complaint) {
    for (*chosen = 0; *chosen < count; ++*chosen) {
        if (!strcmp(value, words[*chosen]))
            return true;
    }
    return complain(complaint, "%s: \"%.60s\" is neither %s nor %s%s%s", key, value, words[0], words[1],
                    count > 2 ? " nor " : "", count > 2 ? words[2] : "");
}

static bool set_cann_version(struct config *config, const char *value, struct complaint *complaint) {
    unsigned parts[3];
    int end = 0;
    if (sscanf(value, "%2u.%2u.%2u%n", &parts[0], &parts[1], &parts[2], &end) != 3 || value[end] ||
        strspn(value, "0123456789.") != strlen(value) || strlen(value) >= sizeof(config->cann_version))
        return complain(complaint, "cann_version: \"%.40s\" is not three numbers of up to two digits, such as 9.1.0",
                        value);
    for (size_t i = 0; i < COUNT(parts); i++)
        config->cann_parts[i] = parts[i];
    strcpy(config->cann_version, value);
    return true;
}

static bool set_cores(uint32_t *cores, const char *key, const char *value, struct complaint *complaint) {
    uint64_t number;
    if (!config_number(value, &number) || number < 1 || number > MAX_CORES)
        return complain(complaint, "%s: \"%.40s\" is not a number from 1 to %d", key, value, MAX_CORES);
    *cores = (uint32_t)number;
    return true;
}

static bool set_cube_cores(struct config *config, const char *value, struct complaint *complaint) {
    return set_cores(&config->cube_cores, "cube_cores", value, complaint);
}

static bool set_vector_cores(struct config *config, const char *value, struct complaint *complaint) {
    return set_cores(&config->vector_cores, "vector_cores", value, complaint);
}

static bool set_l2_cache(struct config *config, const char *value, struct complaint *complaint) {
    uint64_t number;
    if (!config_number(value, &number) || number > MAX_CAPACITY)
        return complain(complaint, "l2_cache: \"%.40s\" is not a number of bytes up to 4T", value);
    config->l2_cache = number;
    return true;
}

static const char *const off_on[] = {"off", "on"};

static bool set_virtual_memory(struct config *config, const char *value, struct complaint *complaint) {
    int chosen;
    bool good = choose("virtual_memory", value, off_on, 2, &chosen, complaint);
    config->virtual_memory_off = good && !chosen;
    return good;
}

static bool set_fill(bool *given, uint8_t *byte, const char *key, const char *value, struct complaint *complaint) {
    uint64_t number = 0;
    *given = strcmp(value, "off") != 0;
    if (*given && (!config_number(value, &number) || number > UINT8_MAX))
        return complain(complaint, "%s: \"%s\" is neither off nor a byte from 0 to 255", key, value);
    *byte = (uint8_t)number;
    return true;
}

static bool set_poison(struct config *config, const char *value, struct complaint *complaint) {
    return set_fill(&config->poison_given, &config->poison, "poison", value, complaint);
}

static bool set_poison_free(struct config *config, const char *value, struct complaint *complaint) {
    return set_fill(&config->poison_free_given, &config->poison_free, "poison_free", value, complaint);
}

static bool set_stacks(struct config *config, const char *value, struct complaint *complaint) {
    int chosen;
    bool good = choose("stacks", value, off_on, 2, &chosen, complaint);
    config->stacks = good && chosen;
    return good;
}

static bool set_hold(struct config *config, const char *value, struct complaint *complaint) {
    int chosen;
    bool good = choose("hold", value, off_on, 2, &chosen, complaint);
    config->hold = good && chosen;
    return good;
}

static bool set_leaks(struct config *config, const char *value, struct complaint *complaint) {
    static const char *const words[] = {"off", "report", "fail"};
    int chosen;
    bool good = choose("leaks", value, words, 3, &chosen, complaint);
    config->leaks = good ? (enum leak_action)chosen : LEAKS_IGNORED;
    return good;
}

static bool set_place(char *place, const char *key, const char *value, struct complaint *complaint) {
    if (!value[0] || strlen(value) >= CONFIG_PLACE_BYTES)
        return complain(complaint, "%s: \"%.40s\" is no off, stderr, fd:N or path of less than %d bytes", key, value,
                        CONFIG_PLACE_BYTES);
    strcpy(place, value);
    return true;
}

static bool set_trace(struct config *config, const char *value, struct complaint *complaint) {
    return set_place(config->trace, "trace", value, complaint);
}

static bool set_app_log(struct config *config, const char *value, struct complaint *complaint) {
    return set_place(config->app_log, "app_log", value, complaint);
}

static const struct option {
    const char *key;                                                     /* as hostacl_configure takes it */
    const char *variable;                                                /* the same in the environment */
    bool (*set)(struct config *, const char *value, struct complaint *); /* reads the value */
    bool any_time;                                                       /* also while devices are open */
} options[] = {
    {"devices", "HOSTACL_DEVICES", set_devices, false},
    {"soc_name", "HOSTACL_SOC_NAME", set_soc_name, false},
    {"capacity", "HOSTACL_CAPACITY", set_capacity, false},
    {"pages_4k", "HOSTACL_PAGES_4K", set_pages_4k, false},
    {"pages_2m", "HOSTACL_PAGES_2M", set_pages_2m, false},
    {"pages_1g", "HOSTACL_PAGES_1G", set_pages_1g, false},
    {"profile", "HOSTACL_PROFILE", set_profile, false},
    {"first_address", "HOSTACL_FIRST_ADDRESS", set_first_address, false},
    {"hugetlb", "HOSTACL_HUGETLB", set_hugetlb, false},
    {"mode", "HOSTACL_MODE", set_mode, false},
    {"virtual_memory", "HOSTACL_VIRTUAL_MEMORY", set_virtual_memory, false},
    {"cann_version", "HOSTACL_CANN_VERSION", set_cann_version, false},
    {"cube_cores", "HOSTACL_CUBE_CORES", set_cube_cores, false},
    {"vector_cores", "HOSTACL_VECTOR_CORES", set_vector_cores, false},
    {"l2_cache", "HOSTACL_L2_CACHE", set_l2_cache, false},
    {"poison", "HOSTACL_POISON", set_poison, true},
    {"poison_free", "HOSTACL_POISON_FREE", set_poison_free, true},
    {"hold", "HOSTACL_HOLD", set_hold, true},
    {"stacks", "HOSTACL_STACKS", set_stacks, true},
    {"leaks", "HOSTACL_LEAKS", set_leaks, true},
    {"trace", "HOSTACL_TRACE", set_trace, true},
    {"app_log", "HOSTACL_APP_LOG", set_app_log, true},
};

void config_defaults(struct config *config) {
    struct complaint complaint;
    *config = (struct config){.devices = 2,
                              .profile = &profiles[0],
                              .cube_cores = 24,
                              .vector_cores = 48,
                              .l2_cache = 192 * MIB,
                              .trace = "off",
                              .app_log = "off"};
    set_soc_name(config, "Ascend910B1", &complaint);
    set_cann_version(config, "9.1.0", &complaint);
}

bool config_has_giant_pages(const struct config *config) {
    return config->product->giant_pages && !config->giant_pages_off;
}

static uint64_t capacity_of(const struct config *config) {
    return config->capacity ? config->capacity : config->product->capacity;
}

/* Bytes of each pool, those given and those that follow from the capacity. */
static void pool_bytes(const struct config *config, uint64_t bytes[PAGE_CLASSES]) {
    uint64_t capacity = capacity_of(config);
    uint64_t giants = capacity / (16 * GIB) < 4 ? capacity / (16 * GIB) : 4;
    uint64_t left = capacity;
    bytes[PAGE_4K] = capacity / 8 & ~(4 * KIB - 1);
    bytes[PAGE_1G] = config_has_giant_pages(config) ? giants * GIB : 0;
    for (enum page_class cls = 0; cls < PAGE_CLASSES; cls++) {
        if (config->pool_given[cls])
            bytes[cls] = config->pool_bytes[cls];
        if (cls != PAGE_2M)
            left -= bytes[cls] < left ? bytes[cls] : left;
    }
    if (config->pool_given[PAGE_2M])
        return;
    bytes[PAGE_2M] = left & ~(2 * MIB - 1);
    if (!config->pool_given[PAGE_4K])
        bytes[PAGE_4K] += (left - bytes[PAGE_2M]) & ~(4 * KIB - 1);
}

struct pool_sizes config_pools(const struct config *config) {
    uint64_t bytes[PAGE_CLASSES];
    struct pool_sizes sizes;
    pool_bytes(config, bytes);
    for (enum page_class cls = 0; cls < PAGE_CLASSES; cls++)
        sizes.pages[cls] = bytes[cls] / page_class_bytes(cls);
    return sizes;
}

/* Whether the options make sense together. */
static bool check(const struct config *config, struct complaint *complaint) {
    uint64_t bytes[PAGE_CLASSES];
    pool_bytes(config, bytes);
    uint64_t sum = bytes[PAGE_4K] + bytes[PAGE_2M] + bytes[PAGE_1G];
    if (bytes[PAGE_1G] && !config->product->giant_pages)
        return complain(complaint, "pages_1g: %s has no 1 GiB pages", config->soc_name);
    if (sum > (config->capacity ? config->capacity : MAX_CAPACITY))
        return complain(complaint, "the pools need %llu bytes, the capacity is %llu bytes", (unsigned long long)sum,
                        (unsigned long long)(config->capacity ? config->capacity : MAX_CAPACITY));
    if (config->unified && config->first_address_given)
        return complain(complaint, "mode: unified maps memory at its device address and cannot go with first_address");
    if (!sum)
        return complain(complaint, "all pools are empty; give at least one page");
    return true;
}

static const struct option *find_option(const char *key) {
    for (size_t i = 0; i < COUNT(options); i++) {
        if (!strcmp(key, options[i].key))
            return &options[i];
    }
    return NULL;
}

bool config_any_time(const char *key) {
    const struct option *option = find_option(key);
    return option && option->any_time;
}

static bool unknown_option(const char *key, struct complaint *complaint) {
    char known[280] = "";
    for (size_t i = 0; i < COUNT(options); i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof(known) - used, "%s%s", used ? ", " : "", options[i].key);
    }
    return complain(complaint, "\"%.30s\" is no option; options are %s", key, known);
}

bool config_set(struct config *config, const char *key, const char *value, struct complaint *complaint) {
    struct config next = *config;
    const struct option *option = find_option(key);
    if (!option)
        return unknown_option(key, complaint);
    if (!option->set(&next, value, complaint) || !check(&next, complaint))
        return false;
    *config = next;
    return true;
}

bool config_from_environment(struct config *config, struct complaint *complaint) {
    struct config next = *config;
    struct complaint detail;
    for (size_t i = 0; i < COUNT(options); i++) {
        const char *value = getenv(options[i].variable);
        if (value && !options[i].set(&next, value, &detail))
            return complain(complaint, "%s: %.200s", options[i].variable, detail.text);
    }
    if (!check(&next, &detail))
        return complain(complaint, "HOSTACL_*: %.200s", detail.text);
    *config = next;
    return true;
}
