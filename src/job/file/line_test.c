/* Lines as a person reads them, whatever YAML says. */
#include "job/file/line.h"

#include "base/buf.h"
#include "base/testing/test.h"

static void expect_lines(const char *text, const char *expected)
{
    struct line_reader reader;
    struct line line;
    struct buf out;
    buf_init(&out, 65536);
    line_reader_init(&reader, text, strlen(text));
    while (line_next(&reader, &line)) {
        if (!line.key) {
            buf_format(&out, "%d ---\n", line.number);
            continue;
        }
        buf_format(&out, "%d", line.number);
        if (line.dash_column >= 0) {
            buf_format(&out, " -%d", line.dash_column);
        }
        buf_format(&out, " %d %.*s=%.*s\n", line.column, (int)line.key_length, line.key,
                   (int)line.value_length, line.value);
    }
    assert_string_equal(buf_str(&out), expected);
    buf_done(&out);
}

static void keys_have_columns_and_values(void **state)
{
    (void)state;
    expect_lines("a: 1\n  b:   two words  # comment\nc:\n\n# d: 1\n\"e f\": 'g # h'\r\n",
                 "1 0 a=1\n2 2 b=two words\n3 0 c=\n6 0 \"e f\"='g # h'\n");
    expect_lines("- a: 1\n  - - b: 2\n-   c:\n- d\n-\n", "1 -0 2 a=1\n2 -2 6 b=2\n3 -0 4 c=\n");
    expect_lines("a:b\nhttp://x\n{a: b}\n[c: d]\nx: http://y", "5 0 x=http://y\n");
    expect_lines("a: 1\n---\nb: 2\n...\n", "1 0 a=1\n2 ---\n3 0 b=2\n4 ---\n");
    expect_lines("", "");
}

static void what_stands_in_text_and_brackets_is_no_key(void **state)
{
    (void)state;
    expect_lines("a: |\n  b: 1\n\n   c: 2\nd: >-\n e: 3\nf: 4\n", "1 0 a=|\n5 0 d=>-\n7 0 f=4\n");
    expect_lines("a: [1,\n b: 2,\n]\nc: {\n d: {e: 1},\n f: '}'\n}\ng: 5\n",
                 "1 0 a=[1,\n4 0 c={\n8 0 g=5\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_have_columns_and_values),
        cmocka_unit_test(what_stands_in_text_and_brackets_is_no_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
