/* State of aclInit and aclFinalize.
 *
 * The count rises with every aclInit, also with the refused ones, because clients take "already initialised" for
 * success. aclFinalize ignores it; aclFinalizeReference lowers it and ends at 0. A finalise is refused only after a
 * finalise. Neither of them touches devices or memory. Of the configuration file two members matter, err_msg_mode and
 * defaultDevice.default_device; the rest is checked for being JSON.
 *
 * Thread safety: callers hold the table lock, unless the header says otherwise. */
#include "init_state.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acl/acl_mdl.h"
#include "config.h"
#include "errors.h"
#include "json.h"
#include "regular_file.h"
#include "runtime.h"
#include "table.h"

#define MAX_FILE (MIB)

struct settings {
    bool process_messages;  /* err_msg_mode "1" */
    int32_t default_device; /* -1: none */
    const char *bad;        /* what is wrong with a member, or null */
};

static uint64_t count;      /* aclInit calls not yet undone */
static bool finalised;      /* the last of init and finalise was a finalise */
static char *first_content; /* configuration of the aclInit in force, "" for none */
static struct settings state = {.default_device = -1};

int32_t init_state_default_device(void) {
    return state.default_device;
}

/* Reads a file into a string; null and a code when that fails. */
static char *read_file(const char *path, int *code) {
    struct stat status;
    int fd = regular_file_open(path, &status);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "rb");
    char *text = file ? calloc(1, MAX_FILE + 1) : NULL;
    size_t len = text ? fread(text, 1, MAX_FILE + 1, file) : 0;
    bool bad = !text || ferror(file) || len > MAX_FILE || strlen(text) != len;
    if (bad)
        *code = error_raise(ERROR_VALUE, file ? ACL_ERROR_PARSE_FILE : ACL_ERROR_INVALID_FILE,
                            "configuration file %.120s cannot be read: %s", path,
                            file ? "it is larger than 1 MiB, holds a zero byte or fails on reading" : strerror(errno));
    if (file)
        fclose(file);
    else if (fd >= 0)
        close(fd);
    if (!bad)
        return text;
    free(text);
    return NULL;
}

static void take_message_mode(struct settings *settings, const char *value, bool is_string) {
    if (!is_string || (strcmp(value, "0") && strcmp(value, "1")))
        settings->bad = "err_msg_mode must be \"0\" or \"1\"";
    settings->process_messages = !strcmp(value, "1");
}

static void take_default_device(struct settings *settings, const char *value, bool is_string) {
    char *end;
    errno = 0;
    long id = strtol(value, &end, 10);
    if (!is_string || !*value || *end || errno || id < 0 || id >= (long)runtime_config()->devices)
        settings->bad = "defaultDevice.default_device must be the number of a device, as a string";
    else
        settings->default_device = (int32_t)id;
}

static void take_member(void *user, const char *path, const char *value, bool is_string) {
    if (!strcmp(path, "err_msg_mode"))
        take_message_mode(user, value, is_string);
    else if (!strcmp(path, "defaultDevice.default_device"))
        take_default_device(user, value, is_string);
}

/* Settings of a configuration text; returns a code. */
static int parse(const char *path, const char *text, struct settings *settings) {
    *settings = (struct settings){.default_device = -1};
    if (!text[0])
        return ACL_SUCCESS;
    if (!json_read(text, take_member, settings))
        return error_raise(ERROR_VALUE, ACL_ERROR_PARSE_FILE, "configuration file %.120s is not well-formed JSON",
                           path);
    if (settings->bad)
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM, "configuration file %.100s: %s", path, settings->bad);
    return ACL_SUCCESS;
}

static int enter_again(const char *text) {
    if (strcmp(text, first_content))
        return error_raise(ERROR_VALUE, ACL_ERROR_INVALID_PARAM,
                           "aclInit was called before with another configuration; finalise first");
    count++;
    return error_raise(ERROR_VALUE, ACL_ERROR_REPEAT_INITIALIZE, "aclInit was called before; the count is now %llu",
                       (unsigned long long)count);
}

int init_state_enter(const char *config_path) {
    int code = ACL_SUCCESS;
    struct settings settings;
    bool given = config_path && config_path[0];
    char *text = given ? read_file(config_path, &code) : calloc(1, 1);
    if (!text)
        return code ? code : error_raise(ERROR_VALUE, ACL_ERROR_BAD_ALLOC, "the host is out of memory");
    if (count) {
        code = enter_again(text);
    } else if (!(code = parse(config_path, text, &settings))) {
        free(first_content);
        first_content = text;
        text = NULL;
        state = settings;
        error_share_messages(state.process_messages);
        count = 1;
        finalised = false;
    }
    free(text);
    return code;
}

int init_state_need(void) {
    table_lock();
    bool started = count > 0;
    table_unlock();
    return started ? ACL_SUCCESS
                   : error_raise(ERROR_MODEL, ACL_ERROR_GE_EXEC_NOT_INIT, "aclInit was not called, or was taken back");
}

static void end(void) {
    count = 0;
    finalised = true;
    state = (struct settings){.default_device = -1};
    error_share_messages(false);
}

static int already_finalised(void) {
    return error_raise(ERROR_VALUE, ACL_ERROR_REPEAT_FINALIZE, "finalised before; call aclInit first");
}

int init_state_leave_all(void) {
    if (finalised)
        return already_finalised();
    end();
    return ACL_SUCCESS;
}

int init_state_leave(uint64_t *left) {
    bool alive = count > 0;
    if (alive && --count == 0)
        end();
    if (left)
        *left = count;
    return alive ? ACL_SUCCESS : already_finalised();
}

void init_state_reset(void) {
    end();
    finalised = false;
    free(first_content);
    first_content = NULL;
}
