/* Faults a test asks for beside failing calls: refused sizes and short copies; see faults.c. */
#ifndef HOSTACL_FAULTS_H
#define HOSTACL_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

struct complaint;

/* Plans what HOSTACL_FAIL, HOSTACL_DELAY, HOSTACL_FAIL_ABOVE and HOSTACL_SHORT_COPY say; false with a complaint that
 * names the first bad variable. */
bool faults_from_environment(struct complaint *complaint);

/* Allocations above bytes fail with code; code 0 ends that. */
void faults_fail_above(uint64_t bytes, int code);

/* The nth copy from now (1 is the next) moves only bytes and returns code, which may be 0; nth 0 ends that. */
void faults_short_copy(uint64_t nth, uint64_t bytes, int code);

/* 0, or with the refusal recorded the code an allocation of that size fails with. */
int fault_of_allocation(uint64_t bytes);

/* Bytes that a copy of count bytes which starts now moves, and what it returns when that goes well. */
uint64_t fault_of_copy(uint64_t count, int *code);

/* Nothing is planned any more. */
void faults_reset(void);

#endif
