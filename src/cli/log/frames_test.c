/* Checks that a framed log is read, as a whole and in pieces of every size. */
#include "cli/log/frames.h"

#include "base/buf.h"
#include "base/testing/test.h"

#include <inttypes.h>

static void on_data(void *context, uint64_t offset, int64_t unix_ms, const char *bytes,
                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buf_format(context, "%" PRIu64 "@%" PRId64 "=%02x ", offset + i, unix_ms,
                   (unsigned char)bytes[i]);
    }
}

static void on_gap(void *context, uint64_t bytes)
{
    buf_format(context, "gap %" PRIu64 " ", bytes);
}

static void on_watermark(void *context, int64_t unix_ms)
{
    buf_format(context, "mark %" PRId64 " ", unix_ms);
}

static bool read_in_steps(const char *bytes, size_t count, size_t step, struct buf *out)
{
    struct frames frames = {0};
    const struct frames_sink sink = {on_data, on_gap, on_watermark, out};
    for (size_t at = 0; at < count; at += step) {
        frames_feed(&frames, bytes + at, count - at < step ? count - at : step, &sink);
    }
    return !frames.broken;
}

static void pieces_of_any_size_are_the_same(void **state)
{
    (void)state;
    static const char log[] = "g 70\nd 70 5 3\na\n\0d 73 6 4\n\xff"
                              "d 7w 9\nd 77 10 1\nz";
    for (size_t step = 1; step < sizeof log; step++) {
        struct buf out;
        buf_init(&out, 4096);
        assert_true(read_in_steps(log, sizeof log - 1, step, &out));
        assert_string_equal(buf_str(&out),
                            "gap 70 70@5=61 71@5=0a 72@5=00 73@6=ff 74@6=64 75@6=20 76@6=37 "
                            "mark 9 77@10=7a ");
        buf_done(&out);
    }
}

static void what_is_no_framed_log_is_told(void **state)
{
    (void)state;
    static const char *const texts[] = {"epoch 1\n", "d 1 2\n", "\n",
                                        "a line that is longer than any head of a frame, without "
                                        "a newline for a hundred bytes and more"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct buf out;
        buf_init(&out, 4096);
        assert_false(read_in_steps(texts[i], strlen(texts[i]), 7, &out));
        assert_int_equal(out.used, 0);
        buf_done(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_any_size_are_the_same),
        cmocka_unit_test(what_is_no_framed_log_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
