/* The property struct of physical memory; see physical_property.c. */
#ifndef HOSTACL_PHYSICAL_PROPERTY_H
#define HOSTACL_PHYSICAL_PROPERTY_H

#include "acl/acl_rt.h"
#include "config.h"

/* What a property asks for. */
struct property_wishes {
    enum page_class cls; /* pages */
    aclrtMemAttr attr;   /* kind of memory, as it reads back from a handle */
    int32_t device;      /* device; -1: the host */
};

/* Reads a property; returns a code. The table lock is held. */
int physical_property_read(const aclrtPhysicalMemProp *prop, struct property_wishes *wishes);

#endif
