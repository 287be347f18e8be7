/* Exported: aclAppLog, a program's own lines in the log of the runtime. On the host they go where the option app_log
 * says, as "LEVEL seconds thread file:line function: text", and nowhere by default.
 *
 * Thread safety: any thread, any time; lines are written whole. */
#include "app_log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "acl/acl.h"
#include "entry.h"
#include "sink.h"

#define LINE_BYTES 4096

static struct sink sink = SINK_START("app_log");
static atomic_bool on;

bool app_log_to(const char *place, struct complaint *complaint) {
    if (!sink_open(&sink, place, complaint))
        return false;
    atomic_store(&on, strcmp(place, "off") != 0);
    return true;
}

static const char *level_name(aclLogLevel level) {
    static const char *const names[] = {"DEBUG", "INFO", "WARNING", "ERROR"};
    return (unsigned)level <= ACL_ERROR ? names[level] : "LEVEL?";
}

/* Writes one line; text that is too long is cut. */
__attribute__((format(printf, 5, 0))) static void write_line(aclLogLevel level, const char *func, const char *file,
                                                             uint32_t line, const char *fmt, va_list args) {
    char text[LINE_BYTES];
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    int head = snprintf(text, LINE_BYTES / 2, "%s %lld.%06ld %ld %s:%u %s: ", level_name(level), (long long)time.tv_sec,
                        time.tv_nsec / 1000, syscall(SYS_gettid), file ? file : "", line, func ? func : "");
    size_t used = (size_t)head < LINE_BYTES / 2 ? (size_t)head : LINE_BYTES / 2 - 1;
    vsnprintf(text + used, sizeof(text) - used - 1, fmt ? fmt : "", args);
    used += strlen(text + used);
    text[used++] = '\n';
    sink_write(&sink, text, used);
}

void aclAppLog(aclLogLevel logLevel, const char *func, const char *file, uint32_t line, const char *fmt, ...) {
    const struct trace_value values[] = {TRACE_VALUES(logLevel, func, file, line, fmt)};
    struct trace_call call = {
        .function = "aclAppLog", .names = "logLevel, func, file, line, fmt", .values = values, .count = 5};
    bool traced = ENTER_IS_TRACED;
    if (traced)
        trace_begin(&call);
    if (!entry_begin(FUNCTION_aclAppLog) && atomic_load(&on)) {
        va_list args;
        va_start(args, fmt);
        write_line(logLevel, func, file, line, fmt, args);
        va_end(args);
    }
    if (traced)
        trace_end(&call, (struct trace_value){.kind = TRACE_NOTHING});
}
