/* Keeping the library loaded: for threads that run in it and for what it does at process exit. Thread safety: any
 * thread, any time. */
#include "library.h"

#include <dlfcn.h>
#include <stdint.h>

void library_keep(void) {
    Dl_info own;
    if (dladdr((void *)(uintptr_t)library_keep, &own))
        dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}
