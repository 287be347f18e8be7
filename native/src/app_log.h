/* Where aclAppLog writes; see app_log.c. */
#ifndef HOSTACL_APP_LOG_H
#define HOSTACL_APP_LOG_H

#include <stdbool.h>

struct complaint;

/* off, stderr, fd:N or a path. False with a complaint when it cannot be opened; then nothing changes. */
bool app_log_to(const char *place, struct complaint *complaint);

#endif
