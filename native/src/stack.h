/* The calls that made an object; see stack.c. */
#ifndef HOSTACL_STACK_H
#define HOSTACL_STACK_H

#include <stdbool.h>
#include <stddef.h>

struct stack;

/* Makes ready what taking a stack needs; called when the option stacks comes on. */
void stack_prepare(void);

/* The calls that lead here, to be kept with a new object and freed with it; null while the option stacks is off or the
 * host has no memory. The table lock is held. */
struct stack *stack_take(void);

void stack_free(struct stack *stack);

/* Exported function that made the object. */
const char *stack_function(const struct stack *stack);

/* Return addresses, the innermost first. */
size_t stack_frames(const struct stack *stack, void *const **frames);

/* Writes "function+0x1a (file)" for a return address, or "file+0x2b3c" where no symbol is known. False when the address
 * is inside this library; nothing is written then. Must not be called with the table lock held: the dynamic loader
 * takes a lock of its own. */
bool stack_describe(void *frame, char *text, size_t len);

#endif
