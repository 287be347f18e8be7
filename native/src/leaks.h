/* The report on objects left alive at process exit; see leaks.c. */
#ifndef HOSTACL_LEAKS_H
#define HOSTACL_LEAKS_H

/* Keeps the library loaded until the process exits; called when the option leaks comes on. */
void leaks_prepare(void);

#endif
