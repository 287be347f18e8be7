/* Faults a test asks for beside failing calls: refused sizes, short copies, tasks that fail or wait; see faults.c. */
#ifndef HOSTACL_FAULTS_H
#define HOSTACL_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "entry.h"

struct complaint;

/* Plans what the variables of hostacl.h say; false with a complaint that names the first bad one. */
bool faults_from_environment(struct complaint *complaint);

/* Allocations above bytes fail with code; code 0 ends that. */
void faults_fail_above(uint64_t bytes, int code);

/* The nth copy from now (1 is the next) moves only bytes and returns code, which may be 0; nth 0 ends that. */
void faults_short_copy(uint64_t nth, uint64_t bytes, int code);

/* The nth task from now (1 is the next) fails with code; nth 0 ends that. */
void faults_fail_task(uint64_t nth, int code);

/* Tasks made by calls of the function wait so long before they run; 0 ends that. */
void faults_delay_task(enum function_id function, uint64_t microseconds);

/* 0, or with the refusal recorded the code an allocation of that size fails with. */
int fault_of_allocation(uint64_t bytes);

/* Bytes that a copy of count bytes which starts now moves, and what it returns when that goes well. */
uint64_t fault_of_copy(uint64_t count, int *code);

/* 0, or with the refusal recorded the code a task that starts now fails with. */
int fault_of_task(void);

/* Microseconds that a task made by the function waits. */
uint64_t fault_of_task_delay(enum function_id function);

/* Nothing is planned any more. */
void faults_reset(void);

#endif
