/* What is left alive at process exit (option leaks).
 *
 * The report runs as the destructor of the library: after everything that atexit registered and after the destructors
 * of whoever links against the library, so objects freed there are no leaks. The library is held loaded, so the
 * destructor means exit and not dlclose. A device that is still set is no leak; the process exit resets it on a card
 * too.
 *
 * Nothing is reported by a forked child, by a process that ends through _exit or a signal, and by one that exits while
 * a call of another thread keeps the table lock for longer than a second. */
#include "leaks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hostacl.h"
#include "library.h"
#include "runtime.h"

#define EXIT_CODE 99
#define ROOM_FOR_MORE 65536

void leaks_prepare(void) {
    library_keep();
}

/* Number of objects in a live report: its lines but those of stacks and of devices that are set. */
static size_t count_objects(const char *report) {
    size_t count = 0;
    for (; *report; report += strcspn(report, "\n") + 1)
        count += strncmp(report, "    ", 4) && strncmp(report, "device ", 7);
    return count;
}

/* The live report on the heap, with room for what other threads make meanwhile; null when there is no memory. */
static char *live_report(void) {
    size_t room = (size_t)hostacl_live_report(NULL, 0) + ROOM_FOR_MORE;
    char *report = malloc(room);
    if (report)
        hostacl_live_report(report, room);
    return report;
}

__attribute__((destructor)) static void report_leaks(void) {
    enum leak_action action = runtime_leaks_at_exit();
    if (action == LEAKS_IGNORED)
        return;
    char *report = live_report();
    size_t count = report ? count_objects(report) : 0;
    if (count)
        fprintf(stderr, "hostacl: objects alive at exit: %zu\n%s", count, report);
    free(report);
    if (count && action == LEAKS_FAIL) {
        fflush(NULL);
        _exit(EXIT_CODE);
    }
}
