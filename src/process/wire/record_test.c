/* Records on disk: they are made once and read as a whole, and attempts that a crash or a restart
 * has ended are reported as lost. */
#include "process/wire/record.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_folder.h"
#include "process/fixture.h"
#include "process/process.h"
#include "process/supervisor/recover.h"
#include "process/wire/identity.h"
#include "process/wire/spec.h"

#include <stdlib.h>
#include <unistd.h>

static void ids_are_three_plain_names(void **state)
{
    (void)state;
    assert_true(record_id_valid("3f2a/pytorch/0"));
    static const char *const bad[] = {"",        "p",      "p/c",  "p/c/x", "p//0",  "../c/0",
                                      "p/c/0/1", "/p/c/0", "p/c/", "p/./0", "p/c/-1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(record_id_valid(bad[i]));
    }
}

static int start(const char *job, const char *id, const char *supervisor)
{
    muster_auto(free) char *folder = record_folder(job, id);
    muster_auto(doc) json_t *spec = json_object();
    muster_auto(doc) json_t *started =
        json_pack("{s:s, s:i, s:s}", "id", id, "at", 5, "supervisor", supervisor);
    return record_start(folder, spec, started, NULL);
}

static void an_attempt_is_started_once(void **state)
{
    assert_int_equal(start(*state, "p/c/0", "1-2-boot"), 0);
    assert_int_equal(start(*state, "p/c/0", "1-2-boot"), MUSTER_EEXIST);
    assert_int_equal(start(*state, "p/c/1", "1-2-boot"), 0);
}

static json_t *end_of(const char *job, const char *id)
{
    muster_auto(free) char *folder = record_folder(job, id);
    return record_read(folder, "exit.json");
}

static void a_restarted_machine_has_lost_what_ran(void **state)
{
    char why[RECOVER_WHY_BYTES];
    assert_int_equal(start(*state, "p/c/0", "1-2-an-earlier-boot"), 0);
    assert_int_equal(recover(*state, why, NULL), 0);
    assert_string_equal(why, "the machine was restarted while the job ran");
    muster_auto(doc) json_t *end = end_of(*state, "p/c/0");
    assert_int_equal(doc_int(end, "code", 0), 137);
    assert_string_equal(doc_text(end, "reason", ""), "Lost");
    assert_string_equal(doc_text(end, "message", ""), "the machine was restarted while it ran");
    assert_int_equal(recover(*state, why, NULL), 0);
    assert_string_equal(why, "");
}

static void a_killed_supervisor_has_lost_what_ran(void **state)
{
    char why[RECOVER_WHY_BYTES], self[IDENTITY_BYTES_MAX];
    assert_true(identity_of(getpid(), self));
    assert_int_equal(start(*state, "p/c/0", self), 0);
    assert_int_equal(recover(*state, why, NULL), 0);
    assert_string_equal(why, "the job's supervisor was killed, and its processes with it");
}

static void an_identity_is_of_one_process_only(void **state)
{
    (void)state;
    muster_auto(free) char *self = identity_text(getpid());
    assert_true(identity_lives(self));
    self[strlen(self) - 1] ^= 1; /* another boot */
    assert_false(identity_lives(self));
    assert_false(identity_lives("1-999999999-x"));
    assert_false(identity_lives("rubbish"));
    assert_null(identity_text(1 << 30));
}

static void a_spec_names_the_field_that_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{}", "argv: from 1 to 524288 words are needed"},
        {"{\"argv\":[1]}", "argv[0] is not text"},
        {"{\"argv\":[\"a\"],\"cwd\":\"x\"}", "cwd: x is not absolute"},
        {"{\"argv\":[\"a\"],\"env\":{\"A\":1}}", "env.A: a name and text are needed"},
        {"{\"argv\":[\"a\"],\"mounts\":[{\"hostPath\":\"/a\",\"mountPath\":\"/\"}]}",
         "mounts[0]: nothing can be mounted on /"},
        {"{\"argv\":[\"a\"],\"mounts\":[{\"hostPath\":\"/a\"}]}",
         "mounts[0]: hostPath and mountPath must be absolute"},
        {"{\"argv\":[\"a\"],\"limits\":{\"memoryBytes\":-1}}",
         "limits.memoryBytes: -1 is out of range"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct muster_err err = MUSTER_ERR_INIT;
        struct process_spec spec;
        json_t *doc = NULL;
        assert_int_equal(doc_parse(cases[i].text, strlen(cases[i].text), &doc, NULL), 0);
        assert_true(process_spec_read(doc, &spec, &err) < 0);
        assert_string_equal(err.text, cases[i].message);
        json_decref(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_three_plain_names),
        cmocka_unit_test_setup_teardown(an_attempt_is_started_once, test_folder_set_up,
                                        test_folder_tear_down),
        cmocka_unit_test_setup_teardown(a_restarted_machine_has_lost_what_ran, test_folder_set_up,
                                        test_folder_tear_down),
        cmocka_unit_test_setup_teardown(a_killed_supervisor_has_lost_what_ran, test_folder_set_up,
                                        test_folder_tear_down),
        cmocka_unit_test(an_identity_is_of_one_process_only),
        cmocka_unit_test(a_spec_names_the_field_that_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
