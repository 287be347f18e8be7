/* Writing and awaiting 64-bit words of device memory in stream order; see value_task.c. */
#ifndef HOSTACL_VALUE_TASK_H
#define HOSTACL_VALUE_TASK_H

#include <stdint.h>

struct stream;

/* Tasks of a stream: write the word; wait until it compares with value as ACL_STREAM_WAIT_VALUE_... says. Return a
 * code.
 */
int value_write(struct stream *stream, uint64_t addr, uint64_t value);
int value_wait(struct stream *stream, uint64_t addr, uint64_t value, uint32_t compare);

/* An access has ended or memory was taken away: waiting words are looked at again. */
void value_memory_changed(void);

#endif
