/* The table lock: one mutex that guards every table of the runtime (options, devices, contexts, address space, pages,
 * blocks). It is held for look-ups and book-keeping only, never while bytes move or pages go back to the kernel. Who
 * must wait for something (a copy to end, a device to close) waits on its one condition and looks again. */
#ifndef HOSTACL_TABLE_H
#define HOSTACL_TABLE_H

#include <stdbool.h>

void table_lock(void);

/* The same, but gives up after some seconds; false then. */
bool table_lock_within(unsigned seconds);

void table_unlock(void);

/* Gives the lock up until somebody calls table_wake; the caller then checks its condition again. */
void table_wait(void);

/* Lets every waiter check again. */
void table_wake(void);

#endif
