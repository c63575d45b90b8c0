/* Checks the error table: each row is complete, and texts never overflow. */
#include "base/testing/test.h"

#include <muster/err.h>

static const int codes[] = {
#define MUSTER_ERROR(name, code, exit, python, text) code,
#include <muster/err.def>
#undef MUSTER_ERROR
};

static void codes_are_negative_and_unique(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        assert_true(codes[i] < 0);
        for (size_t j = 0; j < i; j++) {
            assert_int_not_equal(codes[i], codes[j]);
        }
    }
}

static void exit_codes_are_sysexits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (codes[i] != MUSTER_EINTERRUPTED) { /* Ctrl-C gives 128 + SIGINT, as in a shell */
            assert_in_range(muster_code_exit(codes[i]), 64, 78);
        }
    }
    assert_string_equal(muster_code_text(-9999), "unknown error");
}

static void context_goes_before_the_sentence(void **state)
{
    (void)state;
    struct muster_err err = MUSTER_ERR_INIT;
    assert_int_equal(muster_fail(&err, MUSTER_EDATA, "line %d", 3), MUSTER_EDATA);
    assert_int_equal(muster_wrap(&err, "loading %s", "a.yaml"), MUSTER_EDATA);
    assert_string_equal(err.text, "loading a.yaml: line 3");
    assert_int_equal(muster_fail(NULL, MUSTER_EIO, "no one listens"), MUSTER_EIO);
}

static void long_sentences_are_cut(void **state)
{
    (void)state;
    char text[2 * MUSTER_ERR_TEXT_BYTES];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    struct muster_err err = MUSTER_ERR_INIT;
    muster_fail(&err, MUSTER_EIO, "%s", text);
    muster_wrap(&err, "%s", text);
    assert_int_equal(strlen(err.text), MUSTER_ERR_TEXT_BYTES - 1);
}

/* The struct of a program may have another size: the text then has as much room as struct_size
 * says. */
static void text_keeps_to_the_struct_size(void **state)
{
    (void)state;
    size_t before = offsetof(struct muster_err, text);
    struct muster_err err = MUSTER_ERR_INIT;
    memset(err.text, '#', sizeof err.text);
    err.struct_size = before + 8;
    muster_fail(&err, MUSTER_EIO, "a sentence that is too long");
    assert_string_equal(err.text, "a sente");
    muster_wrap(&err, "so");
    assert_string_equal(err.text, "so: a s");
    assert_int_equal(err.text[8], '#');
    err.struct_size = before;
    muster_fail(&err, MUSTER_EDATA, "nothing");
    muster_wrap(&err, "nothing");
    assert_string_equal(err.text, "so: a s");
    assert_int_equal(err.code, MUSTER_EDATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_are_negative_and_unique),
        cmocka_unit_test(exit_codes_are_sysexits),
        cmocka_unit_test(context_goes_before_the_sentence),
        cmocka_unit_test(long_sentences_are_cut),
        cmocka_unit_test(text_keeps_to_the_struct_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
