/* Physical memory handles: pages without an address; see physical.c. */
#ifndef HOSTACL_PHYSICAL_H
#define HOSTACL_PHYSICAL_H

#include <stdbool.h>
#include <stdint.h>

#include "acl/acl_rt.h"
#include "phys.h"

struct device;
struct mapping;
struct share;
struct import;

struct physical {
    void *handle;              /* what callers hold */
    struct device *device;     /* whose memory it is */
    struct phys *phys;         /* where its bytes are */
    struct pages pages;        /* its pages */
    aclrtMemAttr attr;         /* kind of memory, as it reads back */
    aclrtMemLocation location; /* where it was asked for */
    uint32_t references;       /* from creation, retaining and import; not from mappings */
    uint32_t maps;             /* mappings */
    struct mapping *mappings;  /* all of them */
    struct share *share;       /* offered to other processes, or null */
    struct import *import;     /* memory of another process, or null */
    struct physical *next;     /* list of those that other processes still use */
};

/* What a caller wants. */
struct physical_request {
    struct device *device;     /* open device, or the host's memory */
    enum page_class cls;       /* pages */
    uint64_t bytes;            /* whole pages */
    aclrtMemAttr attr;         /* as it reads back */
    aclrtMemLocation location; /* as asked for */
};

/* Makes a handle with one reference; null when memory is short. May give the table lock up. */
struct physical *physical_malloc(const struct physical_request *request);

/* Makes a handle over memory of another process, which belongs to the device from now on; null when the host is out of
 * memory. */
struct physical *physical_adopt(struct device *device, const aclrtMemLocation *location, struct import *import);

/* The live handle of that value, or null. Any value may be asked. */
struct physical *physical_at(const void *handle);

/* Gives up one reference; false when there is none left to give up. May give the table lock up. */
bool physical_free(struct physical *physical);

/* A mapping of it has ended. May give the table lock up. */
void physical_unmapped(struct physical *physical);

/* Ends handles that callers gave up and that no other process uses any more; true when there was one of the device. May
 * give the table lock up. */
bool physicals_sweep(const struct device *device);

/* Ends all handles of a device that is torn down, and their mappings. */
void physicals_drop_device(struct device *device);

/* Handles, those that only mappings keep alive included, and the bytes of their pages. */
uint64_t physicals_count(void);
uint64_t physicals_bytes(void);

/* The next handle in the table after *position, or null; *position starts at 0. */
const struct physical *physicals_next(size_t *position);

#endif
