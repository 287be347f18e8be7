/* aclAppLog and the option app_log. */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "check.h"

static char path[64];
static char text[1 << 20];

static const char *log_text(void) {
    int fd = open(path, O_RDONLY | O_CREAT, 0600);
    ssize_t got = read(fd, text, sizeof(text) - 1);
    text[got > 0 ? got : 0] = 0;
    CHECK(got >= 0 && !truncate(path, 0));
    close(fd);
    return text;
}

static void test_lines(void) {
    char pid[32];
    start("app_log", path, NULL);
    aclAppLog(ACL_ERROR, "load", "model.c", 42, "block %d of %s", 7, "weights");
    log_text();
    snprintf(pid, sizeof(pid), " %d model.c:42 load: ", getpid());
    CHECK(!strncmp(text, "ERROR ", 6) && strstr(text, pid));
    CHECK(strstr(text, ": block 7 of weights\n") && strchr(text, '\n') == text + strlen(text) - 1);
    aclAppLog(ACL_DEBUG, NULL, NULL, 0, "%s", "");
    aclAppLog((aclLogLevel)9, "f", "g", 1, "x");
    log_text();
    CHECK(!strncmp(text, "DEBUG ", 6) && strstr(text, "\nLEVEL? ") && strstr(text, " g:1 f: x\n"));
    CHECK_EQ(hostacl_calls("aclAppLog"), 3);
}

/* Lines of any length are cut, not lost, and end with one newline. */
static void test_long_lines(void) {
    static char longer[10000];
    memset(longer, 'w', sizeof(longer) - 1);
    start("app_log", path, NULL);
    aclAppLog(ACL_INFO, "f", "g", 1, "%s", longer);
    aclAppLog(ACL_INFO, longer, longer, 1, "tail");
    log_text();
    size_t first = strcspn(text, "\n");
    CHECK(first > 2000 && first < 5000);
    CHECK(strlen(text) > first + 1500 && text[strlen(text) - 1] == '\n' && strstr(text, "tail\n"));
}

static void test_off(void) {
    start(NULL);
    aclAppLog(ACL_ERROR, "f", "g", 1, "unseen");
    CHECK_EQ(log_text()[0], 0);
    OK(hostacl_configure("app_log", path));
    OK(hostacl_fail("aclAppLog", 1, 507000));
    aclAppLog(ACL_ERROR, "f", "g", 1, "lost");
    aclAppLog(ACL_ERROR, "f", "g", 1, "seen");
    CHECK(strstr(log_text(), "seen\n") && !strstr(text, "lost"));
    OK(hostacl_configure("app_log", "off"));
    aclAppLog(ACL_ERROR, "f", "g", 1, "unseen");
    CHECK_EQ(log_text()[0], 0);
    CHECK_EQ(hostacl_configure("app_log", "/nowhere/at/all"), ACL_ERROR_INVALID_PARAM);
}

static void test_traced(void) {
    char trace[80];
    start("app_log", path, NULL);
    snprintf(trace, sizeof(trace), "%s.trace", path);
    OK(hostacl_configure("trace", trace));
    aclAppLog(ACL_WARNING, "f", "g\"", 12, "%s", "seen");
    CHECK(strstr(log_text(), "seen\n"));
    OK(aclrtSetDevice(0));
    int fd = open(trace, O_RDONLY);
    ssize_t got = read(fd, text, sizeof(text) - 1);
    text[got > 0 ? got : 0] = 0;
    close(fd);
    unlink(trace);
    CHECK(strstr(text, "\"function\":\"aclAppLog\",\"arguments\":{\"logLevel\":2,\"func\":\"f\",\"file\":\"g\\u0022\","
                       "\"line\":12,\"fmt\":\"%s\"},\"out\":{},"));
    CHECK(strstr(text, "\"function\":\"aclrtSetDevice\""));
}

static void *work(void *unused) {
    for (int i = 0; i < 500; i++)
        aclAppLog(ACL_INFO, "work", "test.c", 1, "%s", "0123456789012345678901234567890123456789");
    return unused;
}

static void test_threads(void) {
    pthread_t threads[4];
    start("app_log", path, NULL);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    int lines = 0;
    for (char *line = strtok((char *)log_text(), "\n"); line; line = strtok(NULL, "\n"), lines++) {
        const char *tail = " test.c:1 work: 0123456789012345678901234567890123456789";
        size_t len = strlen(line);
        CHECK(!strncmp(line, "INFO ", 5) && len > strlen(tail) && !strcmp(line + len - strlen(tail), tail));
    }
    CHECK_EQ(lines, 2000);
}

int main(void) {
    snprintf(path, sizeof(path), "/tmp/hostacl-app-log-%d", getpid());
    test_lines();
    test_long_lines();
    test_off();
    test_traced();
    test_threads();
    start(NULL);
    unlink(path);
    return check_done();
}
