/* The table lock: one mutex that guards every table of the runtime (options, devices, contexts, address space, pages,
 * blocks). It is held for look-ups and book-keeping only, never while bytes move or pages go back to the kernel. Who
 * must wait for memory (a copy to end, a device to close) waits on its one condition and looks again. Streams wait for
 * a certain object: whoever changes the object wakes those that wait for it and few others. */
#ifndef HOSTACL_TABLE_H
#define HOSTACL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* A moment of the clock of table_now, in nanoseconds; NEVER is later than all of them. */
typedef uint64_t moment;
#define NEVER UINT64_MAX

void table_lock(void);

/* The same, but gives up after some seconds; false then. */
bool table_lock_within(unsigned seconds);

void table_unlock(void);

/* Gives the lock up until somebody calls table_wake; the caller then checks its condition again. */
void table_wait(void);

/* Lets every waiter check again. */
void table_wake(void);

/* Gives the lock up until somebody calls table_wake_for of that object, or until the deadline; may return early. False
 * when the deadline has passed. */
bool table_wait_for(const void *object, moment deadline);

/* Lets everybody check again who waits for the object. */
void table_wake_for(const void *object);

/* The present moment; the clock runs evenly and never jumps. */
moment table_now(void);

/* The moment that many milliseconds from now. */
moment table_after_ms(uint64_t ms);

#endif
