/* Tasks that name memory and leave its bytes alone; see range_task.c. */
#ifndef HOSTACL_RANGE_TASK_H
#define HOSTACL_RANGE_TASK_H

#include <stdint.h>

#include "entry.h"

/* Puts a task into a stream that fails unless the whole range is live device memory when it runs; without bytes it
 * names no memory. Returns a code. Takes the table lock. */
int range_task_give(const void *stream, uint64_t addr, uint64_t bytes, enum function_id function);

/* 0, or with the refusal recorded the code for a range that is not all live device memory. The table lock is held. */
int range_check(uint64_t addr, uint64_t bytes);

#endif
