/* A list of problems: printed in order of places, bounded, and safe to print whatever the file
 * contains. */
#include "job/problem.h"

#include "base/testing/test.h"

static void expect_print(const struct job_problems *p, const char *text)
{
    struct buf out;
    buf_init(&out, 65536);
    job_problems_print(p, "job.yaml", &out);
    assert_string_equal(buf_str(&out), text);
    buf_done(&out);
}

static void problems_are_printed_in_order_of_place(void **state)
{
    (void)state;
    struct job_problems p;
    job_problems_init(&p, 10);
    job_problem_add(&p, JOB_ERROR, "spec.b", "did you mean a?", "must be %d", 1);
    p.list[0].line = 7, p.list[0].column = 3;
    job_problem_add(&p, JOB_WARNING, "spec.a", NULL, "is odd");
    p.list[1].line = 2, p.list[1].column = 5;
    job_problem_add(&p, JOB_INFO, NULL, NULL, "is known");
    assert_int_equal(p.errors, 1);
    expect_print(&p, "job.yaml: note: is known\n"
                     "job.yaml:2:5: warning: spec.a: is odd\n"
                     "job.yaml:7:3: error: spec.b: must be 1 (did you mean a?)\n");
    job_problems_done(&p);
}

static void a_full_list_counts_the_rest(void **state)
{
    (void)state;
    struct job_problems p;
    job_problems_init(&p, 1);
    job_problem_add(&p, JOB_WARNING, "a", NULL, "one");
    job_problem_add(&p, JOB_ERROR, "b", NULL, "two");
    assert_int_equal(p.errors, 1);
    expect_print(&p, "job.yaml: warning: a: one\njob.yaml: 1 more\n");
    job_problems_done(&p);
}

static void control_bytes_and_long_texts_cannot_spoil_a_terminal(void **state)
{
    (void)state;
    struct job_problems p;
    char text[8192];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    job_problems_init(&p, 10);
    job_problem_add(&p, JOB_ERROR, "a\nb", "c\x1b[2J", "d\te");
    job_problem_add(&p, JOB_ERROR, "", NULL, "%s", text);
    assert_string_equal(p.list[0].path, "a?b");
    assert_string_equal(p.list[0].hint, "c?[2J");
    assert_string_equal(p.list[0].message, "d?e");
    assert_non_null(strstr(p.list[1].message, "too long"));
    job_problem_add(&p, JOB_ERROR,
                    "\xc2\x9b"
                    "2J",
                    "é", "%.3s", "aéé");
    job_problem_add(&p, JOB_ERROR, "", NULL, "%.2s", "aé");
    assert_string_equal(p.list[2].path, "??2J");
    assert_string_equal(p.list[2].hint, "é");
    assert_string_equal(p.list[2].message, "aé");
    assert_string_equal(p.list[3].message, "a?"); /* cut within a character */
    job_problems_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(problems_are_printed_in_order_of_place),
        cmocka_unit_test(a_full_list_counts_the_rest),
        cmocka_unit_test(control_bytes_and_long_texts_cannot_spoil_a_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
