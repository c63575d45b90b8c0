/* Checks how the lines of several logs are ordered by time: which line waits for which, and that no
 * line is lost or torn. */
#include "cli/log/log_merge.h"

#include "base/buf.h"
#include "base/testing/test.h"

#include <inttypes.h>
#include <stdlib.h>

static struct buf out;
static struct log_merge *merge;
static struct log_merge_source *a, *b;

static void begin(int64_t hold_ms)
{
    buf_init(&out, 64 << 20);
    merge = log_merge_new(hold_ms);
    a = log_merge_add(merge, "a");
    b = log_merge_add(merge, "b");
    log_merge_begin(a);
    log_merge_begin(b);
}

static void done(void)
{
    log_merge_free(merge);
    buf_done(&out);
}

static void say(struct log_merge_source *source, int64_t unix_ms, const char *text, int64_t now_ms)
{
    assert_true(log_merge_feed(source, unix_ms, text, strlen(text), now_ms));
}

/* Takes all pieces that the merge gives out, and prints them: "a1:text", "+" before the rest of a
 * line, "$" at the end of a source. */
static void take_all(int64_t now_ms)
{
    struct log_merge_piece p;
    while (log_merge_take(merge, now_ms, &p)) {
        if (p.bytes) {
            buf_format(&out, "%s%s%" PRId64 ":", p.begins ? "" : "+", (const char *)p.owner,
                       p.unix_ms);
            buf_add(&out, p.bytes, p.count);
        }
        if (p.last) {
            buf_format(&out, "%s$", (const char *)p.owner);
        }
    }
}

static void expect(const char *text)
{
    assert_string_equal(buf_str(&out), text);
    buf_clear(&out);
}

static void lines_come_by_time_when_all_have_some(void **state)
{
    (void)state;
    begin(-1);
    say(a, 10, "one\nthr", 0);
    take_all(1000000);
    expect(""); /* b may have an earlier line */
    say(b, 20, "two\n", 0);
    take_all(0);
    expect("a10:one\n"); /* "thr" began at 10, too: it waits for its end */
    say(a, 30, "ee\nfive\n", 0);
    take_all(0);
    expect("a10:three\nb20:two\n");
    say(b, 25, "four\n", 0);
    log_merge_end(b);
    take_all(0);
    expect("b25:four\nb$a30:five\n");
    say(a, 40, "no newline", 0);
    log_merge_end(a);
    take_all(0);
    expect("a40:no newlinea$");
    done();
}

static void a_watermark_lets_the_others_pass(void **state)
{
    (void)state;
    begin(300);
    say(a, 10, "one\n", 0);
    say(a, 20, "two\n", 0);
    log_merge_watermark(b, 15);
    take_all(1);
    expect("a10:one\n");
    log_merge_watermark(b, 20);
    take_all(1);
    expect("a20:two\n");
    done();
}

/* A silent log delays the others only for a while, and so does a line that does not end. */
static void nothing_is_held_back_for_longer_than_asked(void **state)
{
    (void)state;
    begin(300);
    say(a, 10, "one\n", 1000);
    say(b, 5, "begun", 1100);
    take_all(1299);
    expect("");
    take_all(1400);
    expect("b5:beguna10:one\n");
    say(b, 50, " and ended\n", 1500);
    take_all(1800);
    expect("+b5: and ended\n");
    done();
}

static void a_source_that_has_not_begun_holds_nobody_back(void **state)
{
    (void)state;
    begin(-1);
    log_merge_end(b);
    take_all(0);
    expect("b$");
    say(a, 10, "one\n", 0);
    take_all(0);
    expect("a10:one\n");
    log_merge_begin(b);
    say(a, 20, "two\n", 0);
    take_all(0);
    expect("");
    done();
}

static void ties_keep_the_order_of_the_sources(void **state)
{
    (void)state;
    begin(-1);
    say(b, 10, "b1\nb2\n", 0);
    say(a, 10, "a1\na2\n", 0);
    log_merge_end(a);
    log_merge_end(b);
    take_all(0);
    expect("a10:a1\na10:a2\na$b10:b1\nb10:b2\nb$");
    done();
}

static void pieces_of_a_long_line_stay_together(void **state)
{
    (void)state;
    enum { LONG = 3 * LOG_MERGE_PIECE_BYTES + 5 };
    char *text = malloc(LONG + 1);
    memset(text, 'x', LONG);
    text[LONG] = '\0';
    begin(-1);
    say(b, 7, "same time\n", 0);
    say(a, 7, text, 0);
    assert_false(log_merge_is_full(b));
    say(a, 9, "end\n", 0);
    log_merge_end(a);
    log_merge_end(b);
    take_all(0);
    assert_memory_equal(buf_str(&out), "a7:xxx", 6);
    assert_non_null(strstr(buf_str(&out), "xend\na$b7:same time\nb$"));
    size_t count = 0;
    for (const char *at = buf_str(&out); *at; at++) {
        count += *at == 'x';
    }
    assert_int_equal(count, LONG);
    done();
    free(text);
}

static void a_source_says_when_it_holds_enough(void **state)
{
    (void)state;
    begin(-1);
    for (int i = 0; !log_merge_is_full(a); i++) {
        assert_in_range(i, 0, LOG_MERGE_FULL_BYTES);
        say(a, i, "\n", 0);
    }
    log_merge_end(b);
    take_all(0);
    assert_false(log_merge_is_full(a));
    done();
}

/* Random lines in random pieces: each log's bytes come in their order, and all lines by time. */
static void random_logs_are_merged_whole(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 200; seed++) {
        char sent[2][8192] = {"", ""}, got[2][8192] = {"", ""};
        size_t sent_bytes[2] = {0}, got_bytes[2] = {0};
        int64_t time[2] = {0}, last = 0;
        unsigned next = seed;
        begin(-1);
        for (int i = 0; i < 300; i++) {
            next = next * 1103515245 + 12345;
            int who = (int)(next >> 16) % 2;
            char text[4] = {(char)('a' + (next >> 20) % 20), (next >> 25) % 3 ? 'x' : '\n', 0, 0};
            time[who] += (next >> 27) % 5;
            say(who ? b : a, time[who], text, 0);
            memcpy(sent[who] + sent_bytes[who], text, 2);
            sent_bytes[who] += 2;
        }
        log_merge_end(a);
        log_merge_end(b);
        struct log_merge_piece p;
        while (log_merge_take(merge, 0, &p)) {
            int who = *(const char *)p.owner == 'b';
            assert_true(!p.bytes || p.unix_ms >= last);
            last = p.bytes ? p.unix_ms : last;
            memcpy(got[who] + got_bytes[who], p.bytes ? p.bytes : "", p.count);
            got_bytes[who] += p.count;
        }
        assert_memory_equal(sent, got, sizeof sent);
        done();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_by_time_when_all_have_some),
        cmocka_unit_test(a_watermark_lets_the_others_pass),
        cmocka_unit_test(nothing_is_held_back_for_longer_than_asked),
        cmocka_unit_test(a_source_that_has_not_begun_holds_nobody_back),
        cmocka_unit_test(ties_keep_the_order_of_the_sources),
        cmocka_unit_test(pieces_of_a_long_line_stay_together),
        cmocka_unit_test(a_source_says_when_it_holds_enough),
        cmocka_unit_test(random_logs_are_merged_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
