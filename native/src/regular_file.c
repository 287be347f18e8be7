/* Opening files that are read. Nothing waits for a pipe, and no device is opened: it might do something then. One that
 * takes the place of a file between the look and the opening is closed again.
 *
 * Thread safety: no state. */
#include "regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int regular_file_open(const char *path, struct stat *status) {
    if (stat(path, status))
        return -1;
    int fd = S_ISREG(status->st_mode) ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
    if (fd >= 0 && (fstat(fd, status) || !S_ISREG(status->st_mode))) {
        close(fd);
        fd = -1;
    }
    if (fd < 0 && !S_ISREG(status->st_mode))
        errno = EINVAL;
    return fd;
}
