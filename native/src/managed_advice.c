/* What a program said about managed memory. Pages do not move here, so it is kept, unit by unit, and read back; a
 * question about several units has an answer where they agree.
 *
 * A place is read as the number of a device, as -1 for the host, and as -2 where there is none or the units differ.
 *
 * Thread safety: callers hold the table lock. */
#include "managed_advice.h"

#include <string.h>

#include "hostacl.h"
#include "managed.h"

#define HOST (-1)
#define NO_PLACE (-2)

static void note_user(struct managed_unit *unit, const aclrtMemManagedLocation *location, bool uses) {
    uint64_t bit = (uint64_t)1 << location->id;
    if (location->type != ACL_MEM_LOCATIONTYPE_DEVICE)
        unit->used_by_host = uses;
    else
        unit->used_by = uses ? unit->used_by | bit : unit->used_by & ~bit;
}

void advice_note(uint64_t addr, uint64_t len, aclrtMemManagedAdviseType advise,
                 const aclrtMemManagedLocation *location) {
    size_t count;
    struct managed_unit *units = managed_units(addr, len, &count);
    for (size_t i = 0; i < count; i++) {
        switch (advise) {
        case ACL_MEM_ADVISE_SET_READ_MOSTLY:
        case ACL_MEM_ADVISE_UNSET_READ_MOSTLY:
            units[i].read_mostly = advise == ACL_MEM_ADVISE_SET_READ_MOSTLY;
            break;
        case ACL_MEM_ADVISE_SET_PREFERRED_LOCATION:
            units[i].preferred = *location;
            break;
        case ACL_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
            units[i].preferred = (aclrtMemManagedLocation){.type = ACL_MEM_LOCATIONTYPE_INVALID};
            break;
        default:
            note_user(&units[i], location, advise == ACL_MEM_ADVISE_SET_ACCESSED_BY);
        }
    }
}

void advice_prefetched(uint64_t addr, uint64_t len, const aclrtMemManagedLocation *location) {
    size_t count;
    struct managed_unit *units = managed_units(addr, len, &count);
    for (size_t i = 0; i < count; i++)
        units[i].prefetched = *location;
}

/* What all units say. */
static struct managed_unit common(const struct managed_unit *units, size_t count) {
    struct managed_unit all = units[0];
    for (size_t i = 1; i < count; i++) {
        all.read_mostly = all.read_mostly && units[i].read_mostly;
        all.used_by_host = all.used_by_host && units[i].used_by_host;
        all.used_by &= units[i].used_by;
        if (memcmp(&all.preferred, &units[i].preferred, sizeof(all.preferred)))
            all.preferred.type = ACL_MEM_LOCATIONTYPE_INVALID;
        if (memcmp(&all.prefetched, &units[i].prefetched, sizeof(all.prefetched)))
            all.prefetched.type = ACL_MEM_LOCATIONTYPE_INVALID;
    }
    return all;
}

static int32_t place_number(const aclrtMemManagedLocation *location) {
    if (location->type == ACL_MEM_LOCATIONTYPE_INVALID)
        return NO_PLACE;
    return location->type == ACL_MEM_LOCATIONTYPE_DEVICE ? location->id : HOST;
}

static int32_t place_id(const aclrtMemManagedLocation *location) {
    return location->type == ACL_MEM_LOCATIONTYPE_INVALID ? NO_PLACE : location->id;
}

static void list_users(const struct managed_unit *unit, int32_t *data, size_t count) {
    size_t used = 0;
    if (unit->used_by_host)
        data[used++] = HOST;
    for (int32_t id = 0; id < HOSTACL_MAX_DEVICES && used < count; id++) {
        if (unit->used_by >> id & 1)
            data[used++] = id;
    }
    while (used < count)
        data[used++] = NO_PLACE;
}

void advice_read(uint64_t addr, uint64_t len, aclrtMemManagedRangeAttribute attribute, int32_t *data, size_t count) {
    size_t unit_count;
    const struct managed_unit *units = managed_units(addr, len, &unit_count);
    struct managed_unit all = common(units, unit_count);
    switch (attribute) {
    case ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
        *data = all.read_mostly;
        break;
    case ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
        *data = place_number(&all.preferred);
        break;
    case ACL_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
        list_users(&all, data, count);
        break;
    case ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
        *data = (int32_t)all.preferred.type;
        break;
    case ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
        *data = place_id(&all.preferred);
        break;
    case ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
        *data = place_number(&all.prefetched);
        break;
    case ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
        *data = (int32_t)all.prefetched.type;
        break;
    default:
        *data = place_id(&all.prefetched);
    }
}
