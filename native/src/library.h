/* The library as a file in the process; see library.c. */
#ifndef HOSTACL_LIBRARY_H
#define HOSTACL_LIBRARY_H

/* From now on the library stays in the process, whoever closes it. */
void library_keep(void);

#endif
