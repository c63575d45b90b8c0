/* Checks that every message is one line, whatever its text is. */
#include "base/log.h"

#include "base/doc.h"
#include "base/testing/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char line[8192];

/* Reads what was written into the pipe since the last call. */
static void read_line(int fd)
{
    ssize_t count = read(fd, line, sizeof line - 1);
    assert_true(count > 0);
    line[count] = '\0';
}

static json_t *read_json(int fd)
{
    json_t *said;
    struct muster_err err = MUSTER_ERR_INIT;
    read_line(fd);
    size_t length = strlen(line);
    assert_true(strchr(line, '\n') == line + length - 1);
    assert_int_equal(doc_parse(line, length - 1, &said, &err), 0);
    return said;
}

static void logfmt(void **state)
{
    int *pipe_fds = *state;
    log_as(LOG_LOGFMT);
    log_about(LOG_WARN, "operator.retry", "default/a", "it said \"no\"\nand %d", 7);
    read_line(pipe_fds[0]);
    assert_non_null(strstr(line, "level=warn event=operator.retry job=default/a "
                                 "msg=\"it said \\\"no\\\" and 7\"\n"));
    log_event(LOG_ERROR, "operator.end", "bye");
    read_line(pipe_fds[0]);
    assert_non_null(strstr(line, "level=error event=operator.end msg=\"bye\"\n"));
}

static void json(void **state)
{
    int *pipe_fds = *state;
    log_as(LOG_JSON);
    log_about(LOG_INFO, "operator.create", "default/a", "\\ \"quoted\"\tund gr\xc3\xbc\xc3\x9f");
    json_t *said = read_json(pipe_fds[0]);
    assert_string_equal(doc_text(said, "level", ""), "info");
    assert_string_equal(doc_text(said, "job", ""), "default/a");
    assert_string_equal(doc_text(said, "message", ""), "\\ \"quoted\" und gr\xc3\xbc\xc3\x9f");
    assert_int_equal(strlen(doc_text(said, "time", "")), strlen("2026-01-02T03:04:05.678Z"));
    json_decref(said);
    log_about(LOG_INFO, "operator.create", "", "cut: \xc3");
    said = read_json(pipe_fds[0]);
    assert_null(doc_at(said, "job"));
    assert_string_equal(doc_text(said, "message", ""), "cut: ?");
    json_decref(said);
}

static void a_long_text_is_cut(void **state)
{
    int *pipe_fds = *state;
    char text[5000];
    log_as(LOG_JSON);
    memset(text, '"', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    log_about(LOG_INFO, "operator.create", text, "%s", text);
    json_t *said = read_json(pipe_fds[0]);
    assert_true(strlen(doc_text(said, "message", "")) > 500);
    json_decref(said);
}

static void levels(void **state)
{
    int *pipe_fds = *state;
    log_to(pipe_fds[1], LOG_WARN);
    log_as(LOG_LOGFMT);
    log_event(LOG_INFO, "dropped", "dropped");
    log_event(LOG_WARN, "kept", "kept");
    read_line(pipe_fds[0]);
    assert_non_null(strstr(line, "event=kept"));
    assert_null(strstr(line, "dropped"));
}

int main(void)
{
    static int pipe_fds[2];
    assert_int_equal(pipe(pipe_fds), 0);
    log_to(pipe_fds[1], LOG_INFO);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(logfmt, pipe_fds),
        cmocka_unit_test_prestate(json, pipe_fds),
        cmocka_unit_test_prestate(a_long_text_is_cut, pipe_fds),
        cmocka_unit_test_prestate(levels, pipe_fds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
