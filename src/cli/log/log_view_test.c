/* Checks how logs of several ranks share one output: lines, progress bars, terminals. */
#include "cli/log/log_view.h"

#include "base/testing/test.h"

#include <stdio.h>
#include <stdlib.h>

static struct buf out;
static struct log_view view;
static struct log_view_stream *zero, *one;

static void open_view(bool terminal, bool colour)
{
    buf_init(&out, 1 << 20);
    log_view_init(&view, &out, terminal, colour);
    log_view_resize(&view, 40, 24);
    zero = log_view_add(&view, "rank 0");
    one = log_view_add(&view, "rank 1");
}

static void close_view(void)
{
    log_view_done(&view);
    buf_done(&out);
}

static void feed(struct log_view_stream *stream, const char *text, int64_t now_ms)
{
    log_view_feed(stream, text, strlen(text), now_ms);
}

static void lines_are_whole_and_prefixed(void **state)
{
    (void)state;
    open_view(false, false);
    feed(zero, "epoch ", 0);
    feed(one, "loss=1\nloss", 0);
    feed(zero, "1\n\nend", 0);
    log_view_end(zero);
    log_view_end(one);
    assert_string_equal(buf_str(&out), "[rank 1] loss=1\n"
                                       "[rank 0] epoch 1\n"
                                       "[rank 0] \n"
                                       "[rank 0] end\n"
                                       "[rank 1] loss\n");
    close_view();
}

static void carriage_return_before_newline_is_a_plain_line(void **state)
{
    (void)state;
    open_view(false, false);
    feed(zero, "dos\r", 0);
    feed(zero, "\nnext\r\n", 0);
    /* The half line was printed as a bar's state, because nothing showed yet that it is not a bar.
     */
    assert_string_equal(buf_str(&out), "[rank 0] dos\n[rank 0] dos\n[rank 0] next\n");
    close_view();
}

/* A bar that is redrawn a hundred times in 3 seconds is printed once a second, and in its last
 * state. */
static void bars_elsewhere_are_a_line_a_second(void **state)
{
    (void)state;
    open_view(false, false);
    for (int i = 0; i <= 100; i++) {
        char text[32];
        snprintf(text, sizeof text, "\r%3d%%", i);
        feed(zero, text, i * 30);
    }
    feed(zero, "\n", 3001);
    assert_string_equal(buf_str(&out), "[rank 0]   0%\n"
                                       "[rank 0]  34%\n"
                                       "[rank 0]  68%\n"
                                       "[rank 0] 100%\n");
    close_view();
}

static void waiting_bar_comes_with_the_tick(void **state)
{
    (void)state;
    open_view(false, false);
    feed(zero, "\r10%", 0);
    feed(zero, "\r20%", 10);
    log_view_tick(&view, 500);
    assert_string_equal(buf_str(&out), "[rank 0] 10%\n");
    log_view_tick(&view, 1000);
    assert_string_equal(buf_str(&out), "[rank 0] 10%\n[rank 0] 20%\n");
    close_view();
}

/* Returns what the terminal shows at the end; it knows only the few sequences that the view
 * uses. */
static char *screen_of(const char *bytes)
{
    struct buf lines;
    buf_init(&lines, 1 << 20);
    for (const char *at = bytes; *at; at++) {
        if (at[0] != '\033') {
            buf_add(&lines, at, 1);
            continue;
        }
        char *end;
        long up = strtol(at + 2, &end, 10);
        assert_int_equal(*end, 'A');
        assert_memory_equal(end + 1, "\033[J", 3);
        size_t used = lines.used;
        for (; up >= 0 && used > 0; used--) {
            up -= lines.data[used - 1] == '\n';
            if (up < 0) {
                break;
            }
        }
        lines.used = used;
        at = end + 3;
    }
    buf_add(&lines, "", 1);
    return buf_steal(&lines);
}

static void bars_on_a_terminal_stay_below_the_lines(void **state)
{
    (void)state;
    open_view(true, false);
    feed(zero, "\r10%", 0);
    feed(one, "\r30%", 0);
    feed(one, "\r40%", 1);
    feed(zero, "\r20%", 2);
    log_view_note(&view, "muster: rank 2 started");
    feed(zero, "\r99%\ndone\n", 3);
    char *screen = screen_of(buf_str(&out));
    assert_string_equal(screen, "muster: rank 2 started\n"
                                "[rank 0] 99%\n"
                                "[rank 0] done\n"
                                "[rank 1] 40%\n");
    free(screen);
    close_view();
}

static void bar_is_cut_to_the_terminal(void **state)
{
    (void)state;
    open_view(true, false);
    feed(zero, "\r\033[A\u2588\u2588\u2588 of 0123456789012345678901234567890123456789", 0);
    assert_string_equal(buf_str(&out), "[rank 0] \u2588\u2588\u2588 of 01234567890123456789012\n");
    close_view();
}

static void bars_follow_the_size_of_the_terminal(void **state)
{
    (void)state;
    open_view(true, false);
    log_view_resize(&view, 24, 5);
    feed(zero, "\r0123456789012345678901234567890123456789", 0);
    assert_string_equal(buf_str(&out), "[rank 0] 01234567890123\n");
    for (int rank = 2; rank < 9; rank++) {
        log_view_feed(log_view_add(&view, "more"), "\rbar", 4, rank);
    }
    assert_int_equal(view.bars_drawn, 3); /* of 5 lines, 1 is the cursor's, 1 for logs */
    close_view();
}

static void colours_differ_by_rank(void **state)
{
    (void)state;
    open_view(true, true);
    feed(zero, "a\n", 0);
    feed(one, "b\n", 0);
    assert_string_equal(buf_str(&out), "\033[36m[rank 0]\033[0m a\n\033[33m[rank 1]\033[0m b\n");
    close_view();
}

static void last_lines_are_kept(void **state)
{
    (void)state;
    open_view(false, false);
    feed(zero, "1\n2\n3\n4\n5\n6\n\n7\n", 0);
    assert_string_equal(log_view_last_line(zero, 0), "3");
    assert_string_equal(log_view_last_line(zero, 4), "7");
    assert_null(log_view_last_line(zero, 5));
    assert_null(log_view_last_line(one, 0));
    close_view();
}

#define BREAK LOG_VIEW_BREAK

/* An unfinished line is printed after a while, and is continued at once, as long as no other log
 * prints.
 */
static void a_line_that_was_begun_goes_on_where_it_stands(void **state)
{
    (void)state;
    open_view(false, false);
    feed(zero, "epoch 1 .", 1000);
    log_view_tick(&view, 1000 + LOG_VIEW_PARTIAL_MS - 1);
    assert_string_equal(buf_str(&out), "");
    log_view_tick(&view, 1000 + LOG_VIEW_PARTIAL_MS);
    assert_string_equal(buf_str(&out), "[rank 0] epoch 1 .");
    feed(zero, ".", 1600);
    feed(zero, ".\nnext\n", 1400);
    assert_string_equal(buf_str(&out), "[rank 0] epoch 1 ...\n[rank 0] next\n");
    assert_string_equal(log_view_last_line(zero, 0), "epoch 1 ...");
    close_view();
}

static void a_line_that_another_interrupts_is_marked(void **state)
{
    (void)state;
    open_view(false, false);
    feed(zero, "..", 0);
    log_view_tick(&view, 1000);
    feed(one, "hello\n,,", 1000);
    log_view_tick(&view, 2000);
    feed(zero, ".", 2000);
    log_view_tick(&view, 3000);
    feed(one, ",\n", 3000);
    feed(zero, ".\n", 3000);
    assert_string_equal(buf_str(&out), "[rank 0] .." BREAK "\n"
                                       "[rank 1] hello\n"
                                       "[rank 1] ,," BREAK "\n"
                                       "[rank 0] " BREAK "." BREAK "\n"
                                       "[rank 1] " BREAK ",\n"
                                       "[rank 0] " BREAK ".\n");
    assert_string_equal(log_view_last_line(zero, 0), "....");
    close_view();
}

static void a_note_does_not_land_within_a_line(void **state)
{
    (void)state;
    open_view(false, false);
    feed(zero, "begun", 0);
    log_view_tick(&view, 1000);
    log_view_break(&view);
    log_view_break(&view);
    feed(zero, "\n", 1000);
    assert_string_equal(buf_str(&out), "[rank 0] begun" BREAK "\n");
    feed(zero, "next\n", 1000);
    assert_string_equal(buf_str(&out), "[rank 0] begun" BREAK "\n[rank 0] next\n");
    close_view();
}

static void a_bar_may_follow_a_line_that_was_begun(void **state)
{
    (void)state;
    open_view(false, false);
    feed(zero, "10%", 0);
    log_view_tick(&view, 1000);
    feed(zero, "\r20%", 1000);
    feed(zero, "\r30%\n", 1001);
    assert_string_equal(buf_str(&out), "[rank 0] 10%" BREAK "\n[rank 0] 20%\n[rank 0] 30%\n");
    close_view();
}

/* On a terminal an unfinished line is shown below the other lines until it is whole, with its end
 * visible. */
static void a_line_that_was_begun_is_below_the_lines_of_a_terminal(void **state)
{
    (void)state;
    open_view(true, false);
    feed(zero, "0123456789012345678901234567890123456789", 0);
    feed(one, "\xc3\xa9", 0);
    log_view_tick(&view, LOG_VIEW_TERMINAL_PARTIAL_MS);
    feed(one, "\xc3", LOG_VIEW_TERMINAL_PARTIAL_MS);
    char *screen = screen_of(buf_str(&out));
    assert_string_equal(screen, "[rank 0] " BREAK "12345678901234567890123456789\n"
                                "[rank 1] \xc3\xa9\n");
    free(screen);
    feed(one, "\xa9\n", 300);
    feed(zero, "!\n", 300);
    screen = screen_of(buf_str(&out));
    assert_string_equal(screen, "[rank 1] \xc3\xa9\xc3\xa9\n"
                                "[rank 0] 0123456789012345678901234567890123456789!\n");
    free(screen);
    close_view();
}

static void times_stand_before_lines_and_bars(void **state)
{
    (void)state;
    open_view(false, false);
    log_view_stamp(zero, "12:00");
    feed(zero, "\r10%", 0);
    feed(zero, "\r20%\n", 10);
    log_view_stamp(zero, "12:01");
    feed(zero, "done\n", 10);
    assert_string_equal(buf_str(&out), "[rank 0] 12:00 10%\n[rank 0] 12:00 20%\n"
                                       "[rank 0] 12:01 done\n");
    close_view();
}

static void a_long_line_is_broken_between_characters(void **state)
{
    (void)state;
    enum { PIECE = 64 << 10 };
    open_view(false, false);
    char *text = malloc(PIECE + 16);
    memset(text, 'x', PIECE);
    memcpy(text + PIECE - 2, "\u20acend\n", 8);
    feed(zero, text, 0);
    const char *end = strstr(buf_str(&out), "x" BREAK "\n[rank 0] " BREAK "\u20acend\n");
    assert_non_null(end);
    free(text);
    close_view();
}

static void kept_lines_are_one_line_of_text(void **state)
{
    (void)state;
    open_view(false, false);
    feed(zero, "\033[31mred\ttab\n", 0);
    assert_string_equal(log_view_last_line(zero, 0), " [31mred tab");
    close_view();
}

static void endless_line_is_cut_in_pieces(void **state)
{
    (void)state;
    open_view(false, false);
    char *text = malloc(200001);
    memset(text, 'x', 200000);
    text[200000] = '\0';
    feed(zero, text, 0);
    log_view_end(zero);
    size_t count = 0;
    for (const char *at = buf_str(&out); *at; at++) {
        count += *at == 'x';
    }
    assert_int_equal(count, 200000);
    free(text);
    close_view();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_whole_and_prefixed),
        cmocka_unit_test(carriage_return_before_newline_is_a_plain_line),
        cmocka_unit_test(bars_elsewhere_are_a_line_a_second),
        cmocka_unit_test(waiting_bar_comes_with_the_tick),
        cmocka_unit_test(bars_on_a_terminal_stay_below_the_lines),
        cmocka_unit_test(bar_is_cut_to_the_terminal),
        cmocka_unit_test(bars_follow_the_size_of_the_terminal),
        cmocka_unit_test(colours_differ_by_rank),
        cmocka_unit_test(last_lines_are_kept),
        cmocka_unit_test(a_line_that_was_begun_goes_on_where_it_stands),
        cmocka_unit_test(a_line_that_another_interrupts_is_marked),
        cmocka_unit_test(a_note_does_not_land_within_a_line),
        cmocka_unit_test(a_bar_may_follow_a_line_that_was_begun),
        cmocka_unit_test(a_line_that_was_begun_is_below_the_lines_of_a_terminal),
        cmocka_unit_test(times_stand_before_lines_and_bars),
        cmocka_unit_test(a_long_line_is_broken_between_characters),
        cmocka_unit_test(kept_lines_are_one_line_of_text),
        cmocka_unit_test(endless_line_is_cut_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
