/* What a template looks like; the marks in whole files are in test/data/lint. */
#include "job/paste.h"

#include "base/testing/test.h"

#include <stdlib.h>
#include <string.h>

static void templates_are_told_from_text(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *hint; /* a word of it; NULL: not a template */
    } cases[] = {
        {"${NAME}", "envsubst"},
        {"$NAME", "envsubst"},
        {"a-${NAME:-b}", "envsubst"},
        {"{{ .Values.name }}", "helm"},
        {"x{% if y %}", "helm"},
        {"$(NAME)", "command, args"},
        {"<your image>", "your own value"},
        {"<no value>", "your own value"},
        {"$", NULL},
        {"$5 and ${", NULL},
        {"a < b > c", "your own value"},
        {"<>", NULL},
        {"{x}", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *hint = paste_template_hint(cases[i].text);
        if (!cases[i].hint != !hint || (hint && !strstr(hint, cases[i].hint))) {
            fail_msg("\"%s\": %s", cases[i].text, hint ? hint : "no template");
        }
    }
}

static enum paste_verdict verdict(const char *text)
{
    struct job_problems problems;
    size_t bytes = strlen(text);
    char *exact = malloc(bytes + !bytes); /* nothing after it may be read */
    assert_non_null(exact);
    memcpy(exact, text, bytes);
    job_problems_init(&problems, 10);
    enum paste_verdict found = paste_check(exact, bytes, &problems);
    free(exact);
    assert_int_equal(problems.count > 0, found != PASTE_CLEAN);
    job_problems_done(&problems);
    return found;
}

static void what_may_stand_in_a_file_is_left_alone(void **state)
{
    (void)state;
    assert_int_equal(verdict("a: 'it is “so”'\n# ‘so’ {{ x }}\nb: say “so”\n"), PASTE_CLEAN);
    assert_int_equal(verdict("a: [\"--format={{.Id}}\"]\nb: --format={{.Id}}\n"), PASTE_CLEAN);
    assert_int_equal(verdict("a: |\n  “x”\n  {{ .Values.x }}\n  <<<<<<< y\n"), PASTE_CLEAN);
    assert_int_equal(verdict("a: {b: {c: d}}\n"), PASTE_CLEAN);
    assert_int_equal(verdict("a: echo $HOME ${X} $(date)\n"), PASTE_CLEAN);
    assert_int_equal(verdict("- $ \n"), PASTE_CLEAN);
    assert_int_equal(verdict(" "), PASTE_CLEAN);
    assert_int_equal(verdict(""), PASTE_CLEAN);
    assert_int_equal(verdict("a: “x”\n"), PASTE_MARKS);
    assert_int_equal(verdict("a:\u00a0x\n"), PASTE_MARKS);
    assert_int_equal(verdict("a: '{{ .Values.x }}'\n"), PASTE_MARKS);
    assert_int_equal(verdict("\n    $ cat x\n    a: b\n"), PASTE_FOREIGN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(templates_are_told_from_text),
        cmocka_unit_test(what_may_stand_in_a_file_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
