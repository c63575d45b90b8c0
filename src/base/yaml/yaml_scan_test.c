/* Checks what the scan finds in a YAML text: values, quotes, comments, and what is not closed. */
#include "base/yaml/scan.h"

#include "base/testing/test.h"

/* Compares the characters that the scan returns: a quoted one is 'q', and the first one of a value
 * is '^'. */
static void expect(const char *text, const char *seen)
{
    struct yaml_scan scan;
    struct yaml_scan_char c;
    char out[256] = "";
    size_t used = 0;
    yaml_scan_init(&scan, text, strlen(text));
    while (yaml_scan_next(&scan, &c) && used + 1 < sizeof out) {
        assert_true(c.at >= text && c.at < text + strlen(text));
        out[used++] = c.quoted ? 'q' : c.start ? '^' : *c.at;
    }
    out[used] = '\0';
    assert_string_equal(out, seen);
}

static void values_begin_where_they_do(void **state)
{
    (void)state;
    expect("a: b c # d\n", "^:^c");
    expect("- - a: 'x' #y\n", "^^^:^qq");
    expect("a: [b, {c: d}]\n", "^:^^,^^:^}]");
    expect("a: &x b\nc: !t \"d\\\"#\"\n", "^:^^:^qqqq");
    expect("a: |\n  b: 'c\n\n  d\ne: f[0]\n", "^:^^:^[0]");
    expect("- |\n  b\n- >-\n x\nc\n", "^^^^^");
    expect("- a: |\n   b\n  c: d\n", "^^:^^:^");
    expect("a: it's 5 | 6\n", "^:^t's5|6");
    expect("url: http://x#y\n", "^rl:^ttp://x#y");
    expect("\xef\xbb\xbf"
           "a: 'it''s'\n",
           "^:^qqqqq");
    expect("a: \"x\n  y\"\n", "^:^qqq");
}

static void expect_unclosed(const char *text, char what, int line, int column)
{
    struct yaml_scan scan;
    struct yaml_scan_char c;
    yaml_scan_init(&scan, text, strlen(text));
    while (yaml_scan_next(&scan, &c)) {
    }
    assert_int_equal(scan.unclosed.what, what);
    assert_int_equal(scan.unclosed.place.line, line);
    assert_int_equal(scan.unclosed.place.column, column);
}

static void what_is_left_open_is_found(void **state)
{
    (void)state;
    expect_unclosed("a: [b, c\nd: e\n", '[', 1, 4);
    expect_unclosed("a: [b,\n  c]\nd: e\n", 0, 0, 0);
    expect_unclosed("a: [\nb, 'c',\n]\nd: e\n", 0, 0, 0);
    expect_unclosed("- a: [b\n  c: d\n", '[', 1, 6);
    expect_unclosed("- {a: b\n- {c: d}\n", '{', 1, 3);
    expect_unclosed("a: [x, {b: c]\nd: e\n", '[', 1, 4);
    expect_unclosed("é: ['x\ny: z'\n", '\'', 1, 5);
    expect_unclosed("a: \"x\nb: \"y\"\n", '"', 1, 4);
    expect_unclosed("{\"a\": {\"b\": 1,\n\"c\": [2\n", '[', 2, 6);
    expect_unclosed("a: [b\n---\nc: d\n", '[', 1, 4);
    expect_unclosed("a: b]\n", 0, 0, 0);
    expect_unclosed("", 0, 0, 0);
}

static void levels_past_the_limit_do_no_harm(void **state)
{
    (void)state;
    char text[1000];
    memset(text, '[', sizeof text);
    struct yaml_scan scan;
    struct yaml_scan_char c;
    size_t count = 0;
    yaml_scan_init(&scan, text, sizeof text);
    while (yaml_scan_next(&scan, &c)) {
        count++;
    }
    assert_int_equal(count, sizeof text);
    assert_int_equal(scan.unclosed.place.column, YAML_SCAN_OPEN_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_begin_where_they_do),
        cmocka_unit_test(what_is_left_open_is_found),
        cmocka_unit_test(levels_past_the_limit_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
