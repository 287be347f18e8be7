/* Opening files that are read; see regular_file.c. */
#ifndef HOSTACL_REGULAR_FILE_H
#define HOSTACL_REGULAR_FILE_H

#include <sys/stat.h>

/* Opens a regular file for reading, links followed, and says what it is; -1 and errno, EINVAL for one of another kind.
 */
int regular_file_open(const char *path, struct stat *status);

#endif
