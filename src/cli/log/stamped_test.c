/* Checks that times are removed from lines that come in pieces of any size, and that a log that is
 * opened again is continued. */
#include "base/testing/test.h"
#include "cli/log/stamped.h"

#include <string.h>

enum { TEXT_BYTES = 512 };

struct heard {
    struct stamped stamped;
    char text[TEXT_BYTES];
    size_t used;
    int64_t first_ms;
};

static void take(void *context, uint64_t offset, int64_t unix_ms, const char *bytes, size_t count)
{
    struct heard *h = context;
    assert_int_equal(offset, h->used);
    h->first_ms = h->used ? h->first_ms : unix_ms;
    memcpy(h->text + h->used, bytes, count);
    h->used += count;
    h->text[h->used] = '\0';
}

static void feed(struct heard *h, const char *text, size_t piece)
{
    const struct frames_sink sink = {.data = take, .context = h};
    size_t left = strlen(text);
    for (; left > 0; text += piece < left ? piece : left, left -= piece < left ? piece : left) {
        stamped_feed(&h->stamped, text, piece < left ? piece : left, &sink);
    }
}

#define SECOND "1970-01-01T00:00:01"
#define LINES SECOND ".000000001Z a b\n" SECOND ".000000002Z \n" SECOND ".5Z cd\n"

static void times_are_taken_out(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < sizeof LINES; piece++) {
        struct heard h = {0};
        feed(&h, LINES, piece);
        assert_string_equal(h.text, "a b\n\ncd\n");
        assert_int_equal(h.first_ms, 1000);
        assert_int_equal(stamped_newest_ms(&h.stamped), 1500);
    }
}

/* Each byte is passed on once, wherever the connection breaks. */
static void opened_again_it_goes_on(void **state)
{
    (void)state;
    for (size_t cut = 0; cut < sizeof LINES; cut++) {
        struct heard h = {0};
        char begin[sizeof LINES] = "";
        memcpy(begin, LINES, cut);
        feed(&h, begin, cut + 1);
        stamped_resume(&h.stamped);
        feed(&h, LINES SECOND ".6Z e\n", 7);
        assert_string_equal(h.text, "a b\n\ncd\ne\n");
    }
}

/* The second break is within the lines that are only skipped, or after them. */
static void opened_twice_again_it_goes_on(void **state)
{
    (void)state;
    for (size_t first = 0; first < sizeof LINES; first++) {
        for (size_t second = 0; second < sizeof LINES; second++) {
            struct heard h = {0};
            const size_t cuts[] = {first, second};
            for (size_t i = 0; i < 2; i++) {
                char begin[sizeof LINES] = "";
                int64_t before_ms = stamped_newest_ms(&h.stamped);
                memcpy(begin, LINES, cuts[i]);
                feed(&h, begin, cuts[i] + 1);
                assert_true(stamped_newest_ms(&h.stamped) >= before_ms);
                stamped_resume(&h.stamped);
            }
            feed(&h, LINES SECOND ".6Z e\n", 7);
            assert_string_equal(h.text, "a b\n\ncd\ne\n");
        }
    }
}

static void a_line_without_a_time_is_text(void **state)
{
    (void)state;
    struct heard h = {0};
    feed(&h, "unable to retrieve logs\n\n" SECOND "Z x\n", 5);
    assert_string_equal(h.text, "unable to retrieve logs\n\nx\n");
}

static void a_long_word_is_no_time(void **state)
{
    (void)state;
    struct heard h = {0};
    char text[128];
    memset(text, 'x', sizeof text);
    memcpy(text + sizeof text - 2, "\n", 2);
    feed(&h, text, 3);
    assert_string_equal(h.text, text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_taken_out),
        cmocka_unit_test(opened_again_it_goes_on),
        cmocka_unit_test(opened_twice_again_it_goes_on),
        cmocka_unit_test(a_line_without_a_time_is_text),
        cmocka_unit_test(a_long_word_is_no_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
