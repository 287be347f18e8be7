/* Options of the runtime: which product, how many devices, how much memory, which profile; see config.c. */
#ifndef HOSTACL_CONFIG_H
#define HOSTACL_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define TIB ((uint64_t)1 << 40)

/* Page classes of device memory. */
enum page_class { PAGE_4K, PAGE_2M, PAGE_1G, PAGE_CLASSES };

/* Bytes of a page of the class. */
uint64_t page_class_bytes(enum page_class cls);

/* Text such as "2 MiB". */
const char *page_class_name(enum page_class cls);

/* What a product decides. */
struct product {
    const char *family; /* the soc name starts with this */
    const char *arch;   /* operators made for one product of an architecture run on all */
    uint32_t padding;   /* bytes aclrtMalloc adds to a size */
    bool giant_pages;   /* the chip has 1 GiB pages */
    bool driver_v3;     /* newer generation of the driver: other codes for unaligned sizes and addresses */
    bool pools;         /* stream-ordered memory pools exist */
    bool fabric;        /* handles can be shared across machines */
    bool hbm;           /* device memory is HBM, else DDR */
    bool bf16;          /* numbers of type bfloat16, infinities and NaN */
    uint64_t capacity;  /* bytes of memory per device */
};

/* A named set of settings: how forgiving the runtime is. */
struct profile {
    const char *name;                    /* value of the option */
    bool whole_pages;                    /* ranges are checked by page, else by the size asked for */
    bool driver_heap;                    /* freed blocks stay with the driver and answer for a while */
    bool free_takes_host;                /* aclrtFree accepts pinned host memory */
    bool default_stream_ends;            /* a program may destroy a default stream */
    bool front_maps;                     /* aclrtMapMem maps the front of a handle that is larger than asked for */
    bool open_peers;                     /* copies between devices need no peer access */
    uint64_t driver_bytes[PAGE_CLASSES]; /* memory the driver keeps for itself on an open device */
};

/* What happens at the exit of a process that leaves objects alive. */
enum leak_action { LEAKS_IGNORED, LEAKS_REPORTED, LEAKS_FAIL };

#define CONFIG_PLACE_BYTES 256

struct config {
    uint32_t devices;                  /* number of devices */
    char soc_name[32];                 /* full product name */
    const struct product *product;     /* row of the product table */
    const struct profile *profile;     /* row of the profile table */
    uint64_t capacity;                 /* bytes per device; 0: the product's */
    uint64_t pool_bytes[PAGE_CLASSES]; /* pools as given */
    bool pool_given[PAGE_CLASSES];     /* which of them were given */
    bool giant_pages_off;              /* pages_1g is "none": the driver lacks 1 GiB pages */
    char cann_version[12];             /* of the installation that is played, such as "9.1.0" */
    uint32_t cann_parts[3];            /* its numbers */
    uint32_t cube_cores;               /* what the device says it has; nothing runs on them */
    uint32_t vector_cores;             /* the same */
    uint64_t l2_cache;                 /* bytes the device says it has */
    uint64_t first_address;            /* lowest device address when given */
    bool first_address_given;          /* a test chose the addresses */
    bool hugetlb;                      /* 2 MiB and 1 GiB pools consist of huge pages of the host where it has them */
    bool unified;                      /* memory is also mapped at its device address */
    bool virtual_memory_off;           /* the driver lacks reserved ranges and what goes with them */
    bool poison_given;                 /* new memory is filled with a byte */
    bool poison_free_given;            /* memory is filled with a byte when it is freed */
    uint8_t poison;                    /* that byte for new memory */
    uint8_t poison_free;               /* and for freed memory */
    bool hold;                         /* streams are made held */
    bool stacks;                       /* live objects keep the calls that made them */
    enum leak_action leaks;            /* at process exit */
    char trace[CONFIG_PLACE_BYTES];    /* where traced calls go, "off" for none */
    char app_log[CONFIG_PLACE_BYTES];  /* where aclAppLog writes, "off" for nowhere */
};

/* Pages of one device as the options make them. */
struct pool_sizes {
    uint64_t pages[PAGE_CLASSES]; /* pages per class */
};

/* Text that says what is wrong with an option. */
struct complaint {
    char text[320]; /* one line, "" when all is well */
};

/* The options without any setting. */
void config_defaults(struct config *config);

/* Whether an option may change while devices are open. */
bool config_any_time(const char *key);

/* Reads a decimal or 0x number with an optional K, M, G or T behind it. */
bool config_number(const char *text, uint64_t *number);

/* Sets one option; on refusal nothing changes and the complaint names key and value. */
bool config_set(struct config *config, const char *key, const char *value, struct complaint *complaint);

/* Sets what HOSTACL_<KEY> variables say; the complaint names the first bad variable. */
bool config_from_environment(struct config *config, struct complaint *complaint);

/* The product of that name, or null. */
const struct product *config_product(const char *soc_name);

/* The pools that follow from the options. */
struct pool_sizes config_pools(const struct config *config);

/* Whether 1 GiB pages exist as a feature: the chip and the driver have them. */
bool config_has_giant_pages(const struct config *config);

#endif
