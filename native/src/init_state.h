/* What aclInit and aclFinalize keep: reference count and configuration; see init_state.c. */
#ifndef HOSTACL_INIT_STATE_H
#define HOSTACL_INIT_STATE_H

#include <stdint.h>

/* Reads the configuration file (null or "": none) and raises the count. Returns a code. */
int init_state_enter(const char *config_path);

/* Ends everything, whatever the count. Returns a code. */
int init_state_leave_all(void);

/* Lowers the count by one; the real end comes at 0. The count goes to *left (may be null). Returns a code. */
int init_state_leave(uint64_t *left);

/* 0 between aclInit and its end, else the code of the calls that need it. Takes the table lock. */
int init_state_need(void);

/* Device that a call which needs a context sets by itself; -1: none. */
int32_t init_state_default_device(void);

/* Back to the start. */
void init_state_reset(void);

#endif
