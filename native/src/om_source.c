/* Reading models. A file is read by pread, never mapped: one that becomes shorter meanwhile is a refusal and no signal.
 * What is read at a time is bounded by the size of the file. Thread safety: no state outside the caller's. */
#include "om_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acl/acl_mdl.h"
#include "errors.h"
#include "regular_file.h"

#define MAGIC_BYTES 4
#define OM2_MAGIC "PK\x03\x04"

/* Whether this is a model of the form that is read here, as far as its first bytes say. */
static int check_kind(const struct om_source *source) {
    char magic[MAGIC_BYTES];
    if (source->size < MAGIC_BYTES)
        return error_raise(ERROR_MODEL, ACL_ERROR_GE_EXEC_MODEL_DATA_SIZE_INVALID, "a model of %llu bytes is too short",
                           (unsigned long long)source->size);
    if (!om_source_read(source, 0, magic, MAGIC_BYTES))
        return error_raise(ERROR_MODEL, ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID, "the file cannot be read");
    if (!memcmp(magic, OM2_MAGIC, MAGIC_BYTES))
        return error_raise(ERROR_MODEL, ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "OM2 packages are not read here");
    return ACL_SUCCESS;
}

int om_source_open(struct om_source *source, const char *path) {
    struct stat status;
    int fd = regular_file_open(path, &status);
    if (fd < 0)
        return error_raise(ERROR_MODEL, ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID, "%.100s cannot be opened: %s", path,
                           errno == EINVAL ? "no file" : strerror(errno));
    *source = (struct om_source){.fd = fd, .size = (uint64_t)status.st_size};
    int code = check_kind(source);
    if (code)
        om_source_close(source);
    return code;
}

int om_source_of_memory(struct om_source *source, const void *model, size_t size) {
    *source = (struct om_source){.fd = -1, .memory = model, .size = size};
    return check_kind(source);
}

void om_source_close(struct om_source *source) {
    if (source->fd >= 0)
        close(source->fd);
    source->fd = -1;
}

bool om_source_read(const struct om_source *source, uint64_t offset, void *to, size_t size) {
    if (source->memory) {
        memcpy(to, source->memory + offset, size);
        return true;
    }
    for (size_t done = 0; done < size;) {
        ssize_t got = pread(source->fd, (char *)to + done, size - done, (off_t)(offset + done));
        if (got <= 0 && !(got < 0 && errno == EINTR))
            return false;
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

bool om_source_take(const struct om_source *source, uint64_t offset, uint64_t size, struct om_piece *piece) {
    *piece = (struct om_piece){.bytes = {source->memory ? source->memory + offset : NULL, (size_t)size}};
    if (source->memory || !size)
        return true;
    piece->owned = malloc((size_t)size);
    piece->bytes.at = piece->owned;
    if (piece->owned && om_source_read(source, offset, piece->owned, (size_t)size))
        return true;
    om_piece_end(piece);
    return false;
}

void om_piece_end(struct om_piece *piece) {
    free(piece->owned);
    *piece = (struct om_piece){.owned = NULL};
}
