/* Start, options in force and reset of the whole runtime; see runtime.c. */
#ifndef HOSTACL_RUNTIME_H
#define HOSTACL_RUNTIME_H

#include <stdbool.h>

#include "config.h"

/* Makes the runtime ready at the first call of the library; later calls cost one comparison. */
void runtime_start(void);

/* Why the runtime cannot serve this process (bad environment, forked child), or null. */
const char *runtime_blocked(void);

/* Whether this process was forked from one that used the runtime; nothing can help it. */
bool runtime_forked(void);

/* What is to be done about leaks when the process exits: nothing where the runtime was not used, where it is blocked,
 * and where another thread keeps the table lock for longer than a second. */
enum leak_action runtime_leaks_at_exit(void);

/* The options in force. The table lock is held. */
const struct config *runtime_config(void);

/* Sets one option; code and complaint as hostacl_configure. Takes the table lock. */
int runtime_configure(const char *key, const char *value, struct complaint *complaint);

/* Frees everything and reads the environment again. Takes the table lock; waits for copies that run. */
int runtime_reset(struct complaint *complaint);

#endif
