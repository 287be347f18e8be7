/* A program loads the library by name, leaves streams at work and unloads it: the threads of the library go on. */
#include <dlfcn.h>
#include <time.h>

#include "check.h"

static void *library;

static void *symbol(const char *name) {
    void *found = dlsym(library, name);
    CHECK(found);
    return found;
}

static void test_unload_with_threads(void) {
    library = dlopen(getenv("LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    if (!CHECK(library))
        return;
    aclError (*set_device)(int32_t) = (aclError (*)(int32_t))symbol("aclrtSetDevice");
    aclError (*create)(aclrtEvent *) = (aclError (*)(aclrtEvent *))symbol("aclrtCreateEvent");
    aclError (*record)(aclrtEvent, aclrtStream) = (aclError (*)(aclrtEvent, aclrtStream))symbol("aclrtRecordEvent");
    aclError (*synchronize)(aclrtStream) = (aclError (*)(aclrtStream))symbol("aclrtSynchronizeStream");
    aclrtEvent event = NULL;
    OK(set_device(0));
    OK(create(&event));
    OK(record(event, NULL));
    OK(synchronize(NULL));
    OK(dlclose(library));
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    OK(record(event, NULL)); /* the code is still there */
    OK(synchronize(NULL));
}

int main(void) {
    test_unload_with_threads();
    return check_done();
}
