/* Faults a test asks for.
 *
 * Texts in the environment are lists with commas between the entries and colons between the fields of one:
 *
 *   HOSTACL_FAIL=aclrtMalloc:3:207001,aclrtMemcpy:1:507899   call 3 of one function fails, call 1 of another
 *   HOSTACL_DELAY=aclrtMemcpy:200                            every call of it waits 200 microseconds first
 *   HOSTACL_FAIL_ABOVE=1G or 1G:207005                       allocations above 1 GiB fail, with 207001 or that code
 *   HOSTACL_SHORT_COPY=2:4096:507899                         the second copy moves 4096 bytes and returns that code
 *   HOSTACL_FAIL_TASK=3:507899                               the third task of a stream fails with that code
 *   HOSTACL_DELAY_TASK=aclrtMemcpyAsync:200                  every task it makes waits 200 microseconds
 *
 * Thread safety: callers hold the table lock, or nobody else runs yet. */
#include "faults.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl_base.h"
#include "config.h"
#include "entry.h"

#define FIELDS 3
#define FIELD_BYTES 64

/* One entry of a list. */
struct entry {
    char fields[FIELDS][FIELD_BYTES]; /* texts between the colons */
    int count;                        /* of the fields */
};

static uint64_t limit;                       /* largest allocation that passes */
static int limit_code;                       /* what larger ones return; 0: all pass */
static uint64_t copies_to_go;                /* copies until the short one, itself included; 0: none */
static uint64_t short_bytes;                 /* bytes it moves */
static int short_code;                       /* what it returns */
static uint64_t tasks_to_go;                 /* tasks until the failing one, itself included; 0: none */
static int task_code;                        /* what it fails with */
static uint64_t task_delays[FUNCTION_COUNT]; /* microseconds, by the function that made the task */

void faults_fail_above(uint64_t bytes, int code) {
    limit = bytes;
    limit_code = code;
}

void faults_short_copy(uint64_t nth, uint64_t bytes, int code) {
    copies_to_go = nth;
    short_bytes = bytes;
    short_code = code;
}

void faults_fail_task(uint64_t nth, int code) {
    tasks_to_go = nth;
    task_code = code;
}

void faults_delay_task(enum function_id function, uint64_t microseconds) {
    task_delays[function] = microseconds;
}

void faults_reset(void) {
    faults_fail_above(0, 0);
    faults_short_copy(0, 0, 0);
    faults_fail_task(0, 0);
    memset(task_delays, 0, sizeof(task_delays));
}

int fault_of_allocation(uint64_t bytes) {
    if (!limit_code || bytes <= limit)
        return ACL_SUCCESS;
    return error_raise(entry_error_kind(limit_code), limit_code, "%llu bytes are above the %llu bytes that may be had",
                       (unsigned long long)bytes, (unsigned long long)limit);
}

uint64_t fault_of_copy(uint64_t count, int *code) {
    bool is_short = copies_to_go && !--copies_to_go;
    *code = is_short ? short_code : ACL_SUCCESS;
    return is_short && short_bytes < count ? short_bytes : count;
}

int fault_of_task(void) {
    if (!tasks_to_go || --tasks_to_go)
        return ACL_SUCCESS;
    return error_raise(entry_error_kind(task_code), task_code, "failure injected into the task");
}

uint64_t fault_of_task_delay(enum function_id function) {
    return task_delays[function];
}

/* Splits the next entry off a list; null when a field is too long or there are too many. */
static const char *split(const char *list, struct entry *entry) {
    entry->count = 0;
    for (;;) {
        size_t len = strcspn(list, ":,");
        if (entry->count == FIELDS || len >= FIELD_BYTES)
            return NULL;
        memcpy(entry->fields[entry->count], list, len);
        entry->fields[entry->count++][len] = 0;
        list += len;
        if (*list != ':')
            return list + (*list == ',');
        list++;
    }
}

/* A number in a field of an entry. */
static bool number(const struct entry *entry, int field, uint64_t least, uint64_t most, uint64_t *value) {
    return field < entry->count && config_number(entry->fields[field], value) && *value >= least && *value <= most;
}

static bool plan_failure(const struct entry *entry) {
    uint64_t nth, code;
    enum function_id function = entry_find(entry->fields[0]);
    if (entry->count != 3 || function == FUNCTION_COUNT || !number(entry, 1, 1, UINT64_MAX, &nth) ||
        !number(entry, 2, 1, INT_MAX, &code) || entry_fails(function))
        return false;
    entry_fail(function, nth, (int)code);
    return true;
}

static bool plan_delay(const struct entry *entry) {
    uint64_t microseconds;
    enum function_id function = entry_find(entry->fields[0]);
    if (entry->count != 2 || function == FUNCTION_COUNT || !number(entry, 1, 0, UINT64_MAX, &microseconds))
        return false;
    entry_delay(function, microseconds);
    return true;
}

static bool plan_task_delay(const struct entry *entry) {
    uint64_t microseconds;
    enum function_id function = entry_find(entry->fields[0]);
    if (entry->count != 2 || function == FUNCTION_COUNT || !number(entry, 1, 0, UINT64_MAX, &microseconds))
        return false;
    faults_delay_task(function, microseconds);
    return true;
}

static bool plan_task_failure(const struct entry *entry) {
    uint64_t nth, code;
    if (entry->count != 2 || !number(entry, 0, 1, UINT64_MAX, &nth) || !number(entry, 1, 1, INT_MAX, &code))
        return false;
    faults_fail_task(nth, (int)code);
    return true;
}

static bool plan_limit(const struct entry *entry) {
    uint64_t bytes, code = ACL_ERROR_RT_MEMORY_ALLOCATION;
    if (!number(entry, 0, 0, UINT64_MAX, &bytes) || entry->count > 2 ||
        (entry->count == 2 && !number(entry, 1, 1, INT_MAX, &code)))
        return false;
    faults_fail_above(bytes, (int)code);
    return true;
}

static bool plan_short_copy(const struct entry *entry) {
    uint64_t nth, bytes, code;
    if (!number(entry, 0, 1, UINT64_MAX, &nth) || !number(entry, 1, 0, UINT64_MAX, &bytes) ||
        !number(entry, 2, 0, INT_MAX, &code))
        return false;
    faults_short_copy(nth, bytes, (int)code);
    return true;
}

static const struct {
    const char *variable;               /* of the environment */
    bool many;                          /* a list, else one entry */
    bool (*plan)(const struct entry *); /* false when the entry makes no sense */
    const char *form;                   /* what an entry looks like */
} variables[] = {
    {"HOSTACL_FAIL", true, plan_failure, "FUNCTION:NTH:CODE, one for each function, with commas between several"},
    {"HOSTACL_DELAY", true, plan_delay, "FUNCTION:MICROSECONDS, with commas between several"},
    {"HOSTACL_FAIL_ABOVE", false, plan_limit, "BYTES or BYTES:CODE"},
    {"HOSTACL_DELAY_TASK", true, plan_task_delay, "FUNCTION:MICROSECONDS, with commas between several"},
    {"HOSTACL_FAIL_TASK", false, plan_task_failure, "NTH:CODE"},
    {"HOSTACL_SHORT_COPY", false, plan_short_copy, "NTH:BYTES:CODE"},
};

bool faults_from_environment(struct complaint *complaint) {
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *list = getenv(variables[i].variable);
        const char *whole = list;
        struct entry entry;
        bool more = list;
        while (more) {
            list = split(list, &entry);
            more = list && *list;
            if (list && variables[i].plan(&entry) && (!more || variables[i].many))
                continue;
            snprintf(complaint->text, sizeof(complaint->text), "%s: \"%.100s\" is not %s", variables[i].variable, whole,
                     variables[i].form);
            return false;
        }
    }
    return true;
}
