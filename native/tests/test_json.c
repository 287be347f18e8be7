/* The JSON reader: what it reports, what it refuses. */
#include "check.h"
#include "json.h"

static char reported[512];

static void report(void *user, const char *path, const char *value, bool is_string) {
    CHECK(user == reported);
    size_t used = strlen(reported);
    snprintf(reported + used, sizeof(reported) - used, "%s=%s%s%s;", path, is_string ? "'" : "", value,
             is_string ? "'" : "");
}

static void check_good(const char *text, const char *wanted) {
    reported[0] = 0;
    if (!CHECK(json_read(text, report, reported)) || !CHECK(!strcmp(reported, wanted)))
        printf("    %s gave %s\n", text, reported);
}

static const char *const bad[] = {
    "",           " ",      "{",    "}",       "[1,]",        "{\"a\"}", "{\"a\":}", "{a:1}",
    "{\"a\":1,}", "[1 2]",  "01",   "1.",      "-",           "1e",      "1e+",      "+1",
    "yes",        "nul",    "\"",   "\"\\x\"", "\"\\u12g4\"", "\"\n\"",  "[1]]",     "1 2",
    "{\"a\":1",   "[\"a\"", "\"\\", "\"\\u1",  "'a'",         "{1:2}",   ".5",       "{\"a\":1 \"b\":2}",
};

static void test_depth(void) {
    char text[200];
    memset(text, '[', 32);
    strcpy(text + 32, "]");
    memset(text + 32, ']', 32);
    text[64] = 0;
    check_good(text, "");
    memset(text, '[', 33);
    memset(text + 33, ']', 33);
    text[66] = 0;
    CHECK(!json_read(text, report, reported));
}

/* Long names and values are cut or refused, never written past their room. */
static void test_length(void) {
    char text[4000];
    char *end = text + sprintf(text, "{\"");
    memset(end, 'n', 1000);
    strcpy(end + 1000, "\": \"");
    memset(end + 1004, 'v', 1000);
    strcpy(end + 2004, "\"}");
    reported[0] = 0;
    CHECK(json_read(text, report, reported));
    CHECK_EQ(strlen(reported), 127 + 1 + 1 + 127 + 1 + 1);
    end = text;
    for (int i = 0; i < 3; i++) {
        end += sprintf(end, "{\"");
        memset(end, 'n', 120);
        end += 120 + sprintf(end + 120, "\":");
    }
    sprintf(end, "1}}}");
    CHECK(!json_read(text, report, reported));
}

int main(void) {
    check_good("{}", "");
    check_good(" [ ] ", "");
    check_good("\"text\"", "='text';");
    check_good("-1.5e+10", "=-1.5e+10;");
    check_good("{\"a\": 1, \"b\": {\"c\": \"x\", \"d\": {}}, \"e\": true}", "a=1;b.c='x';");
    check_good("{\"a\": [1, {\"b\": \"hidden\"}, null, false], \"c\": \"\"}", "c='';");
    check_good("{\"a\": \"q\\\"\\u00e4\\n\", \"z\": 0}", "a='q\\\"\\u00e4\\n';z=0;");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (!CHECK(!json_read(bad[i], report, reported)))
            printf("    accepted: %s\n", bad[i]);
    }
    test_depth();
    test_length();
    return check_done();
}
