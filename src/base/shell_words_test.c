/* Checks that words are split as a POSIX shell splits them. */
#include "base/cleanup.h"
#include "base/shell_words.h"
#include "base/testing/test.h"

static void splits_as_a_shell_does(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *words[4];
    } table[] = {
        {"", {NULL}},
        {"  python3   train.py ", {"python3", "train.py"}},
        {"a 'b c' \"d e\"", {"a", "b c", "d e"}},
        {"'' x", {"", "x"}},
        {"a\\ b \"\\\"\\n\"", {"a b", "\"\\n"}},
        {"pre'fix 'post", {"prefix post"}},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char **words = NULL;
        assert_int_equal(shell_split(table[i].text, &words, NULL), 0);
        size_t n = 0;
        for (; words[n]; n++) {
            assert_string_equal(words[n], table[i].words[n]);
        }
        assert_null(table[i].words[n]);
        shell_free(words);
    }
}

static void an_open_quote_is_an_error(void **state)
{
    (void)state;
    char **words = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    assert_int_equal(shell_split("a 'b", &words, &err), MUSTER_EDATA);
    assert_string_equal(err.text, "a ' quote is never closed");
    assert_null(words);
}

static void what_is_quoted_comes_back(void **state)
{
    (void)state;
    static const char *const table[][2] = {
        {"plain-1_2./+:@%=,", "plain-1_2./+:@%=,"},
        {"", "''"},
        {"two words", "'two words'"},
        {"it's", "'it'\\''s'"},
        {"$HOME \\ \"x\"\n", "'$HOME \\ \"x\"\n'"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct buf out;
        char **words;
        buf_init(&out, 100);
        shell_quote(table[i][0], &out);
        assert_string_equal(buf_str(&out), table[i][1]);
        assert_int_equal(shell_split(buf_str(&out), &words, NULL), 0);
        assert_string_equal(words[0], table[i][0]);
        assert_null(words[1]);
        shell_free(words);
        buf_done(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_as_a_shell_does),
        cmocka_unit_test(what_is_quoted_comes_back),
        cmocka_unit_test(an_open_quote_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
