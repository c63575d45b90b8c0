/* Names, the correction of bad names, and quantities. */
#include "job/text.h"

#include "base/testing/test.h"

static void forms_accept_and_refuse(void **state)
{
    (void)state;
    char long_name[300];
    memset(long_name, 'a', sizeof long_name);
    long_name[64] = '\0';
    static const struct {
        enum schema_form form;
        const char *text;
        bool good;
    } cases[] = {
        {SCHEMA_LABEL, "a-1", true},
        {SCHEMA_LABEL, "1a", true},
        {SCHEMA_LABEL, "", false},
        {SCHEMA_LABEL, "-a", false},
        {SCHEMA_LABEL, "a-", false},
        {SCHEMA_LABEL, "a.b", false},
        {SCHEMA_LABEL, "A", false},
        {SCHEMA_LABEL_1035, "a1", true},
        {SCHEMA_LABEL_1035, "1a", false},
        {SCHEMA_SUBDOMAIN, "a.b-c.1", true},
        {SCHEMA_SUBDOMAIN, "a..b", false},
        {SCHEMA_SUBDOMAIN, "a-.b", false},
        {SCHEMA_SUBDOMAIN, ".a", false},
        {SCHEMA_ENV_NAME, "A.b-c 1", true},
        {SCHEMA_ENV_NAME, "A=B", false},
        {SCHEMA_ENV_NAME, "", false},
        {SCHEMA_ENV_NAME, "é", false},
        {SCHEMA_PORT_NAME, "pytorchjob-port", true},
        {SCHEMA_PORT_NAME, "pytorchjob-ports", false},
        {SCHEMA_PORT_NAME, "80", false},
        {SCHEMA_PORT_NAME, "a--b", false},
        {SCHEMA_ABSOLUTE, "/", true},
        {SCHEMA_ABSOLUTE, "data", false},
        {SCHEMA_INSIDE, "a/b..c", true},
        {SCHEMA_INSIDE, "", true},
        {SCHEMA_INSIDE, "/a", false},
        {SCHEMA_INSIDE, "a/..", false},
        {SCHEMA_INSIDE, "../a", false},
        {SCHEMA_PROCESSES, "auto", true},
        {SCHEMA_PROCESSES, "8", true},
        {SCHEMA_PROCESSES, "0", false},
        {SCHEMA_PROCESSES, "-1", false},
        {SCHEMA_PROCESSES, "2x", false},
        {SCHEMA_PROCESSES, "99999999", false},
        {SCHEMA_NOT_EMPTY, "", false},
        {SCHEMA_QUALIFIED, "a", true},
        {SCHEMA_QUALIFIED, "example.com/A_b", true},
        {SCHEMA_QUALIFIED, "", false},
        {SCHEMA_QUALIFIED, "a b", false},
        {SCHEMA_QUALIFIED, "/a", false},
        {SCHEMA_QUALIFIED, "a/", false},
        {SCHEMA_QUALIFIED, "A.com/a", false},
        {SCHEMA_QUALIFIED, "a/b/c", false},
        {SCHEMA_LABEL_VALUE, "", true},
        {SCHEMA_LABEL_VALUE, "A_b.c-1", true},
        {SCHEMA_LABEL_VALUE, "a b", false},
        {SCHEMA_LABEL_VALUE, "-a", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if ((job_text_fault(cases[i].form, cases[i].text) == NULL) != cases[i].good) {
            fail_msg("\"%s\" should be %s", cases[i].text, cases[i].good ? "good" : "refused");
        }
    }
    assert_non_null(job_text_fault(SCHEMA_LABEL, long_name));
    long_name[63] = '\0';
    assert_null(job_text_fault(SCHEMA_LABEL, long_name));
}

static void bad_names_are_mended(void **state)
{
    (void)state;
    static const struct {
        enum schema_form form;
        const char *text;
        const char *mended;
    } cases[] = {
        {SCHEMA_LABEL, "My_Job.v2", "my-job-v2"},
        {SCHEMA_LABEL_1035, "0-test", "test"},
        {SCHEMA_SUBDOMAIN, "A.B_c", "a.b-c"},
        {SCHEMA_LABEL, "___", ""},
        {SCHEMA_LABEL, "ends-", "ends"},
        {SCHEMA_LABEL, "é", ""},
        {SCHEMA_PORT_NAME, "a-name-that-is-long", "a-name-that-is"},
        {SCHEMA_PORT_NAME, "1234", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char mended[64];
        job_text_mend(cases[i].form, cases[i].text, sizeof mended, mended, sizeof mended);
        assert_string_equal(mended, cases[i].mended);
    }
}

/* This is so for bad names of every length, from letters that names may have and others. */
static void what_is_proposed_is_good(void **state)
{
    (void)state;
    static const char letters[] = "aZ09-_. /é@";
    static const enum schema_form forms[] = {SCHEMA_LABEL, SCHEMA_LABEL_1035, SCHEMA_SUBDOMAIN,
                                             SCHEMA_PORT_NAME};
    unsigned seed = 1;
    int proposed = 0;
    for (int round = 0; round < 20000; round++) {
        char name[128] = "", mended[256];
        for (size_t i = 0; i < (size_t)round % sizeof name; i++) {
            seed = seed * 1103515245 + 12345;
            name[i] = letters[(seed >> 16) % (sizeof letters - 1)];
        }
        name[(size_t)round % sizeof name] = '\0';
        enum schema_form form = forms[(size_t)round % 4];
        size_t max = 1 + (size_t)round % 70;
        job_text_mend(form, name, max, mended, sizeof mended);
        if (*mended && (job_text_fault(form, mended) || strlen(mended) > max)) {
            fail_msg("\"%s\" became \"%s\", at most %zu", name, mended, max);
        }
        proposed += *mended != '\0';
    }
    assert_true(proposed > 15000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_accept_and_refuse),
        cmocka_unit_test(bad_names_are_mended),
        cmocka_unit_test(what_is_proposed_is_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
