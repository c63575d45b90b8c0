/* A container's log: it is written through a pipe, cut into bounded segments, and read back as a
 * whole or from a given place. */
#include "base/cleanup.h"
#include "base/file.h"
#include "base/testing/test.h"
#include "base/testing/test_folder.h"
#include "process/log/format.h"
#include "process/log/log.h"
#include "process/log/write.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

/* The folder of a container with one attempt, its writer and its reader. */
struct scene {
    uv_loop_t loop;
    char folder[TEST_FOLDER_BYTES];
    char attempt[80];
    struct log_writer writer;
    int pipe[2];
    bool told_more;
};

static void write_file(const struct scene *s, const char *name)
{
    muster_auto(free) char *path = file_join(s->attempt, name);
    assert_int_equal(file_write(path, "{}", 2, 0600, NULL), 0);
}

static void begin(struct scene *s, int attempt, int64_t segment_bytes, int64_t segments)
{
    (void)snprintf(s->attempt, sizeof s->attempt, "%s/%d", s->folder, attempt);
    assert_int_equal(file_mkdir(s->attempt, 0700, NULL), 0);
    write_file(s, "started.json");
    assert_int_equal(log_writer_init(&s->writer, s->attempt, segment_bytes, segments, 1000, NULL),
                     0);
}

static int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof *s);
    test_folder_make(s->folder);
    assert_int_equal(uv_loop_init(&s->loop), 0);
    assert_int_equal(pipe2(s->pipe, O_CLOEXEC | O_NONBLOCK), 0);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;
    log_writer_done(&s->writer);
    close(s->pipe[0]);
    close(s->pipe[1]);
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    test_folder_remove(s->folder);
    free(s);
    return 0;
}

static void say(struct scene *s, int64_t now_unix_ms, const char *text)
{
    assert_int_equal(write(s->pipe[1], text, strlen(text)), (ssize_t)strlen(text));
    while (log_writer_pump(&s->writer, s->pipe[0], 1 << 20, now_unix_ms) == LOG_PUMP_MOVED) {
    }
}

static void the_newest_attempts_are_told_first(void **state)
{
    struct scene *s = *state;
    begin(s, 0, 4096, 2);
    for (int attempt = 1; attempt < 12; attempt++) {
        (void)snprintf(s->attempt, sizeof s->attempt, "%s/%d", s->folder, attempt);
        assert_int_equal(file_mkdir(s->attempt, 0700, NULL), 0);
        write_file(s, "started.json");
    }
    int newest[3];
    assert_int_equal(process_log_attempts(s->folder, newest, 1), 1);
    assert_int_equal(newest[0], 11);
    assert_int_equal(process_log_attempts(s->folder, newest, 3), 3);
    assert_int_equal(newest[1], 10);
    assert_int_equal(newest[2], 9);
}

static void on_more(void *data)
{
    ((struct scene *)data)->told_more = true;
}

static struct process_log_options everything(const struct scene *s)
{
    return (struct process_log_options){.folder = s->folder, .tail_lines = -1, .limit_bytes = -1};
}

static struct process_log *open_log(struct scene *s, struct process_log_options options)
{
    struct process_log *log = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    if (process_log_open(&s->loop, &options, on_more, s, &log, &err) < 0) {
        fail_msg("%s", err.text);
    }
    return log;
}

/* Reads what can be read now, in pieces of `room` bytes. */
static enum process_log_state read_now(struct process_log *log, char *text, size_t room)
{
    enum process_log_state state = PROCESS_LOG_MORE;
    size_t used = 0;
    while (state == PROCESS_LOG_MORE) {
        size_t count = 0;
        assert_int_equal(process_log_read(log, text + used, room, &count, &state, NULL), 0);
        used += count;
    }
    text[used] = '\0';
    return state;
}

static void assert_reads(struct scene *s, struct process_log_options options, const char *expected)
{
    char text[4096];
    struct process_log *log = open_log(s, options);
    assert_int_equal(read_now(log, text, 64), PROCESS_LOG_END);
    assert_string_equal(text, expected);
    process_log_close(log);
}

static void lines_have_the_time_they_began(void **state)
{
    struct scene *s = *state;
    begin(s, 0, 1 << 20, 5);
    say(s, 1000, "one\n");
    say(s, 2500, "tw");
    say(s, 3000, "o\nthree\n");
    struct process_log_options options = everything(s);
    assert_reads(s, options, "one\ntwo\nthree\n");
    options.timestamps = true;
    assert_reads(s, options,
                 "1970-01-01T00:00:01Z one\n"
                 "1970-01-01T00:00:02.500Z two\n"
                 "1970-01-01T00:00:03Z three\n");
}

/* After a power cut the index may contain anything. */
static void a_damaged_index_ends_where_it_is_damaged(void **state)
{
    struct scene *s = *state;
    static const struct log_mark damage = {INT64_MAX, 0};
    begin(s, 0, 1 << 20, 5);
    say(s, 1000, "one\n");
    say(s, 3000, "two\n");
    assert_int_equal(pwrite(s->writer.index_fd, &damage, sizeof damage, sizeof damage),
                     sizeof damage);
    struct process_log_options options = everything(s);
    options.timestamps = true;
    assert_reads(s, options, "1970-01-01T00:00:01Z one\n1970-01-01T00:00:01Z two\n");
}

static void since_and_tail_begin_at_a_line(void **state)
{
    struct scene *s = *state;
    begin(s, 0, 1 << 20, 5);
    say(s, 1000, "one\ntwo\nthr");
    say(s, 2000, "ee\nfour\n");
    say(s, 3000, "five\n");
    struct process_log_options options = everything(s);
    options.since_unix_ms = 2000;
    assert_reads(s, options, "four\nfive\n");
    options.since_unix_ms = 9000;
    assert_reads(s, options, "");
    options.since_unix_ms = 0;
    options.tail_lines = 2;
    assert_reads(s, options, "four\nfive\n");
    options.tail_lines = 0;
    assert_reads(s, options, "");
    options.tail_lines = 100;
    assert_reads(s, options, "one\ntwo\nthree\nfour\nfive\n");
    options.tail_lines = 3;
    options.since_unix_ms = 3000;
    assert_reads(s, options, "five\n");
    options.since_unix_ms = 0;
    options.limit_bytes = 7;
    assert_reads(s, options, "three\nf");
}

/* Of 100 KiB only 4 KiB are kept; the text that is read begins with a whole line and ends with the
 * last line. */
static void the_oldest_segments_go(void **state)
{
    struct scene *s = *state;
    char text[16384], last[64];
    begin(s, 0, 4096, 2);
    for (int i = 0; i < 2000; i++) {
        char line[64];
        (void)snprintf(line, sizeof line, "line %d of a log that is bounded in bytes\n", i);
        say(s, 1000 + i, line);
    }
    struct process_log *log = open_log(s, everything(s));
    assert_int_equal(read_now(log, text, 512), PROCESS_LOG_END);
    process_log_close(log);
    (void)snprintf(last, sizeof last, "line 1999 of a log that is bounded in bytes\n");
    assert_true(strlen(text) > 2048 && strlen(text) <= 2 * 4096);
    assert_memory_equal(text, "line ", 5);
    assert_string_equal(text + strlen(text) - strlen(last), last);
    int attempts[4];
    assert_int_equal(process_log_attempts(s->folder, attempts, 4), 1);
    json_t *paths = process_log_paths(s->folder, 0);
    assert_int_equal(json_array_size(paths), 2);
    json_decref(paths);
}

/* A line without an end, as progress bars write it: the part that is kept is shown. */
static void a_line_longer_than_the_log_is_shown_from_its_middle(void **state)
{
    enum { PIECE = 50000, SEGMENT = 128 << 10 };
    static char piece[PIECE + 1], text[4 * SEGMENT];
    struct scene *s = *state;
    begin(s, 0, SEGMENT, 2);
    memset(piece, 'x', PIECE);
    for (int i = 0; i < 10; i++) {
        say(s, 1000, piece);
    }
    struct process_log *log = open_log(s, everything(s));
    assert_int_equal(read_now(log, text, SEGMENT), PROCESS_LOG_END);
    process_log_close(log);
    assert_true(strlen(text) > SEGMENT);
}

static void tail_looks_over_segments(void **state)
{
    struct scene *s = *state;
    begin(s, 0, 4096, 3);
    for (int i = 0; i < 500; i++) {
        char line[32];
        (void)snprintf(line, sizeof line, "%03d a line of 24 bytes\n", i);
        say(s, 1000, line);
    }
    char text[8192];
    struct process_log_options options = everything(s);
    options.tail_lines = 200;
    struct process_log *log = open_log(s, options);
    assert_int_equal(read_now(log, text, 256), PROCESS_LOG_END);
    assert_memory_equal(text, "300 a line", 10);
    process_log_close(log);
}

static void following_waits_until_the_attempt_ended(void **state)
{
    struct scene *s = *state;
    char text[4096];
    begin(s, 0, 4096, 3);
    say(s, 1000, "one\n");
    struct process_log_options options = everything(s);
    options.follow = true;
    struct process_log *log = open_log(s, options);
    assert_int_equal(read_now(log, text, 64), PROCESS_LOG_WAIT);
    assert_string_equal(text, "one\n");

    say(s, 2000, "two\n");
    while (!s->told_more) {
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    }
    assert_int_equal(read_now(log, text, 64), PROCESS_LOG_WAIT);
    assert_string_equal(text, "two\n");

    write_file(s, "exit.json");
    s->told_more = false;
    while (!s->told_more) {
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    }
    assert_int_equal(read_now(log, text, 64), PROCESS_LOG_END);
    assert_string_equal(text, "");
    process_log_close(log);
}

/* A reader that keeps up sees every byte, also those of segments that were deleted later. */
static void following_goes_over_rotation(void **state)
{
    struct scene *s = *state;
    char text[4096];
    begin(s, 0, 4096, 2);
    struct process_log_options options = everything(s);
    options.follow = true;
    struct process_log *log = open_log(s, options);
    size_t seen = 0;
    for (int i = 0; i < 1000; i++) {
        say(s, 1000 + i, "a line of thirty-two bytes, so!\n");
        assert_int_equal(read_now(log, text, 64), PROCESS_LOG_WAIT);
        seen += strlen(text);
    }
    assert_int_equal(seen, 32000);
    process_log_close(log);
}

static void frames_say_where_and_when(void **state)
{
    struct scene *s = *state;
    begin(s, 0, 1 << 20, 5);
    say(s, 1000, "one\ntw");
    say(s, 2500, "o\n");
    struct process_log_options options = everything(s);
    options.frames = true;
    char text[4096];
    struct process_log *log = open_log(s, options);
    assert_int_equal(read_now(log, text, 128), PROCESS_LOG_END);
    process_log_close(log);
    assert_string_equal(text, "d 0 1000 6\none\ntwd 6 2500 2\no\n");
    options.from = 5;
    log = open_log(s, options);
    assert_int_equal(read_now(log, text, 128), PROCESS_LOG_END);
    process_log_close(log);
    assert_string_equal(text, "d 5 1000 1\nwd 6 2500 2\no\n");
}

/* The gap reaches up to the first byte that is given out, and includes the rest of a line. */
static void frames_tell_what_was_rotated_away(void **state)
{
    struct scene *s = *state;
    char text[16384];
    begin(s, 0, 4096, 2);
    for (int i = 0; i < 2000; i++) {
        say(s, 1000, "a line of twenty-seven bytes\n" + 2);
    }
    struct process_log_options options = everything(s);
    options.frames = true;
    static const int64_t tails[] = {-1, 1000, 3};
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        uint64_t gap = 0, at = 0;
        options.tail_lines = tails[i];
        struct process_log *log = open_log(s, options);
        assert_int_equal(read_now(log, text, 512), PROCESS_LOG_END);
        process_log_close(log);
        int fields = sscanf(text, "g %lu\nd %lu ", &gap, &at);
        assert_int_equal(fields, tails[i] == 3 ? 0 : 2);
        assert_true(fields == 0 || (gap == at && gap % 27 == 0 && gap > 40000));
    }
    assert_true(process_log_rotated(s->folder, 0) > 40000);
}

static void watermarks_come_when_all_was_told(void **state)
{
    struct scene *s = *state;
    char text[4096];
    begin(s, 0, 1 << 20, 5);
    say(s, 1000, "one\n");
    struct process_log_options options = everything(s);
    options.frames = options.watermarks = options.follow = true;
    struct process_log *log = open_log(s, options);
    assert_int_equal(read_now(log, text, 128), PROCESS_LOG_WAIT);
    process_log_close(log);
    assert_memory_equal(text, "d 0 1000 4\none\nw 1", 16);
}

static void previous_is_the_attempt_before(void **state)
{
    struct scene *s = *state;
    begin(s, 9, 4096, 2);
    say(s, 1000, "nine\n");
    log_writer_done(&s->writer);
    begin(s, 10, 4096, 2);
    say(s, 1000, "ten\n");
    struct process_log_options options = everything(s);
    assert_reads(s, options, "ten\n");
    options.previous = true;
    assert_reads(s, options, "nine\n");
}

static void nothing_started_is_said(void **state)
{
    struct scene *s = *state;
    struct process_log *log = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    struct process_log_options options = everything(s);
    assert_int_equal(process_log_open(&s->loop, &options, NULL, NULL, &log, &err), MUSTER_ENOENT);
    assert_string_equal(err.text, "the container has not started yet");
    begin(s, 0, 4096, 2);
    options.previous = true;
    assert_int_equal(process_log_open(&s->loop, &options, NULL, NULL, &log, &err), MUSTER_ENOENT);
    assert_string_equal(err.text, "the container has no previous attempt");
    options.previous = false;
    options.by_number = true;
    options.attempt = 3;
    assert_int_equal(process_log_open(&s->loop, &options, NULL, NULL, &log, &err), MUSTER_ENOENT);
    assert_string_equal(err.text, "the container has no attempt 3: it was not made, or is gone");
}

/* A disk that accepts no bytes does not stop the container; lost bytes are counted. */
static void a_log_that_cannot_be_written_drains(void **state)
{
    struct scene *s = *state;
    begin(s, 0, 4096, 2);
    close(s->writer.log_fd);
    s->writer.log_fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    say(s, 1000, "gone\n");
    assert_int_equal(s->writer.lost_bytes, 5);
}

/* The disk was full, or descriptors had run out, at the moment of a rotation. */
static void a_segment_that_cannot_be_opened_is_tried_again(void **state)
{
    struct scene *s = *state;
    static const char *const names[] = {"1.log", "1.idx"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char text[8192];
        begin(s, (int)i, 4096, 2);
        muster_auto(free) char *in_the_way = file_join(s->attempt, names[i]);
        assert_int_equal(file_mkdir(in_the_way, 0700, NULL), 0);
        memset(text, 'x', 4096);
        text[4095] = '\n';
        text[4096] = '\0';
        say(s, 1000, text);
        say(s, 1001, "lost\n");
        assert_int_equal(s->writer.lost_bytes, 5);
        assert_int_equal(rmdir(in_the_way), 0);
        say(s, 1002, "back\n");
        log_writer_add(&s->writer, "said\n", 5, 1003);
        struct process_log *log = open_log(s, everything(s));
        assert_int_equal(read_now(log, text, sizeof text), PROCESS_LOG_END);
        process_log_close(log);
        assert_string_equal(text + 4095, "\nback\nsaid\n");
        log_writer_done(&s->writer);
    }
}

static void what_was_added_can_be_left_out(void **state)
{
    struct scene *s = *state;
    begin(s, 0, 1 << 20, 5);
    say(s, 1000, "one\ntwo");
    struct process_log_options options = everything(s);
    options.as_written = true;
    assert_reads(s, options, "one\ntwo");
    log_writer_add(&s->writer, "muster: x\nmuster: y\n", 20, 1001);
    assert_reads(s, everything(s), "one\ntwo\nmuster: x\nmuster: y\n");
    assert_reads(s, options, "one\ntwo");
    options.tail_lines = 1;
    assert_reads(s, options, "two");
    say(s, 1002, " three\nfour\n");
    assert_reads(s, options, "four\n");
    options.tail_lines = 2;
    assert_reads(s, options, "two three\nfour\n");
    options.tail_lines = 3;
    assert_reads(s, options, "one\ntwo three\nfour\n");
    options.frames = true;
    options.tail_lines = -1;
    struct process_log *log = open_log(s, options);
    char text[256];
    assert_int_equal(read_now(log, text, LOG_FRAME_BYTES_MIN), PROCESS_LOG_END);
    assert_string_equal(text, "d 0 1000 7\none\ntwod 28 1002 12\n three\nfour\n");
    process_log_close(log);
}

/* This holds also for a reader that was open before the text was added. */
static void what_is_added_to_a_log_that_is_followed_can_be_left_out(void **state)
{
    struct scene *s = *state;
    char text[256];
    begin(s, 0, 1 << 20, 5);
    struct process_log_options options = everything(s);
    options.as_written = options.follow = true;
    struct process_log *log = open_log(s, options);
    say(s, 1000, "one");
    assert_int_equal(read_now(log, text, sizeof text), PROCESS_LOG_WAIT);
    assert_string_equal(text, "one");
    log_writer_add(&s->writer, "muster: x\n", 10, 1001);
    assert_int_equal(read_now(log, text, sizeof text), PROCESS_LOG_WAIT);
    assert_string_equal(text, "");
    say(s, 1002, "two\n");
    assert_int_equal(read_now(log, text, sizeof text), PROCESS_LOG_WAIT);
    assert_string_equal(text, "two\n");
    process_log_close(log);
}

/* The text is on lines of its own even if the segment that it begins holds nothing else. */
static void what_is_added_after_a_rotation_can_be_left_out(void **state)
{
    struct scene *s = *state;
    char text[4096];
    begin(s, 0, 4096, 3);
    memset(text, 'x', 4090);
    memcpy(text + 4085, "\nlast", 6);
    say(s, 1000, text);
    log_writer_add(&s->writer, "muster: x\n", 10, 1001);
    assert_int_equal(s->writer.segment, 1);
    struct process_log_options options = everything(s);
    options.tail_lines = 2;
    assert_reads(s, options, "last\nmuster: x\n");
    options.as_written = true;
    options.tail_lines = 1;
    assert_reads(s, options, "last");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_segment_that_cannot_be_opened_is_tried_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(lines_have_the_time_they_began, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_damaged_index_ends_where_it_is_damaged, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(since_and_tail_begin_at_a_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_oldest_segments_go, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_line_longer_than_the_log_is_shown_from_its_middle, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(tail_looks_over_segments, set_up, tear_down),
        cmocka_unit_test_setup_teardown(following_waits_until_the_attempt_ended, set_up, tear_down),
        cmocka_unit_test_setup_teardown(following_goes_over_rotation, set_up, tear_down),
        cmocka_unit_test_setup_teardown(frames_say_where_and_when, set_up, tear_down),
        cmocka_unit_test_setup_teardown(frames_tell_what_was_rotated_away, set_up, tear_down),
        cmocka_unit_test_setup_teardown(watermarks_come_when_all_was_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(previous_is_the_attempt_before, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_added_can_be_left_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_added_to_a_log_that_is_followed_can_be_left_out,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_added_after_a_rotation_can_be_left_out, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_newest_attempts_are_told_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_started_is_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_log_that_cannot_be_written_drains, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
