/* A reader for the small JSON files aclInit takes; see json.c. */
#ifndef HOSTACL_JSON_H
#define HOSTACL_JSON_H

#include <stdbool.h>

/* Called for every value that is a string or a number, with its dotted path ("a.b"); elements of arrays have none and
 * are not reported. is_string tells "1" from 1. */
typedef void json_value_fn(void *user, const char *path, const char *value, bool is_string);

/* Reads a whole document; false when it is not well-formed. */
bool json_read(const char *text, json_value_fn *report, void *user);

#endif
