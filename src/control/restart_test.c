/* Checks that all ranks of a job restart together, and that a restart is counted once, even if a
 * view is repeated or an effect is lost. */
#include "control/scene.h"
#include "control/status/attempt.h"
#include "job/annotations.h"

static void set_note(struct scene *s, const char *key, const char *value)
{
    json_object_set_new(doc_at(s->job, "metadata.annotations"), key, json_string(value));
}

static void set_restarts(struct scene *s, const char *number, const char *first, const char *last)
{
    set_note(s, JOB_ANNOTATION_JOB_RESTARTS, number);
    set_note(s, JOB_ANNOTATION_FIRST_RESTART, first);
    set_note(s, JOB_ANNOTATION_LAST_RESTART, last);
}

static void open_restarting(struct scene *s, const char *restart, const char *max)
{
    open_scene(s, make_job(true, 2, restart, "{'cleanPodPolicy': 'None'}"));
    set_note(s, JOB_ANNOTATION_MAX_RESTARTS, max);
    set_note(s, JOB_ANNOTATION_SUCCESS_POLICY, "AllRanks");
    doc_set_text(s->job, "status.startTime", "2026-01-01T00:00:00Z");
    doc_set(s->job, "status.conditions",
            json_pack("[{s:s, s:s, s:s}]", "type", "Running", "status", "True", "reason", "Any"));
}

static json_t *add_failed(struct scene *s, const char *role, int index, int code, const char *at)
{
    json_t *pod = add_pod(s, role, index, "Failed");
    set_ended(pod, code, "Error", at);
    return pod;
}

static struct control_attempt attempt_of(const struct scene *s)
{
    struct job job;
    assert_int_equal(job_read(s->job, &job, NULL), 0);
    struct control_attempt attempt = control_attempt_read(&job);
    job_done(&job); /* the attempt's texts are in the object */
    return attempt;
}

static const char *variable(const json_t *pod, const char *name)
{
    return doc_text(doc_find(doc_at(pod, "spec.containers.0.env"), "name", name), "value", NULL);
}

static void all_ranks_end_when_one_fails(void **state)
{
    (void)state;
    struct scene s;
    open_restarting(&s, "Never", "3");
    add_pod(&s, "Master", 0, "Succeeded");
    add_pod(&s, "Worker", 0, "Running");
    add_failed(&s, "Worker", 1, 3, "2026-01-01T00:00:01Z");
    s.now_s = 2;
    step(&s);
    assert_int_equal(count(&s, "delete pod"), 3);
    assert_int_equal(count(&s, "delete service"), 0);
    assert_int_equal(count(&s, "create pod"), 0);
    assert_int_equal(count(&s, "event Warning JobRestarting: restart 1 of 3: mnist-worker-1 (rank "
                               "2) exited with code 3"),
                     1);
    assert_int_equal(attempt_of(&s).number, 1);
    assert_string_equal(doc_text(s.status, "conditions.0.type", ""), "Restarting");
    close_scene(&s);
}

/* The cause of the first restart is kept, for the message if the job fails in the end. */
static void a_later_restart_keeps_the_first_cause(void **state)
{
    (void)state;
    struct scene s;
    open_restarting(&s, "Never", "3");
    set_restarts(&s, "1 job-1", "the very first", "x");
    add_pod(&s, "Master", 0, "Running");
    add_pod(&s, "Worker", 0, "Running");
    add_failed(&s, "Worker", 1, 137, "2026-01-01T00:00:01Z");
    step(&s);
    struct control_attempt attempt = attempt_of(&s);
    assert_int_equal(attempt.number, 2);
    assert_string_equal(attempt.first, "the very first");
    assert_non_null(strstr(attempt.last, "mnist-worker-1 (rank 2)"));
    close_scene(&s);
}

/* Two pods fail in one view, a third one while it is being ended, and then the old view is seen
 * again: this is one restart. */
static void several_failures_are_one_restart(void **state)
{
    (void)state;
    struct scene s;
    open_restarting(&s, "Never", "3");
    add_pod(&s, "Master", 0, "Running");
    add_failed(&s, "Worker", 0, 1, "2026-01-01T00:00:02Z");
    add_failed(&s, "Worker", 1, 3, "2026-01-01T00:00:01Z");
    step(&s);
    assert_string_equal(attempt_of(&s).last, "mnist-worker-1 (rank 2) exited with code 3");
    for (int again = 0; again < 3; again++) {
        doc_set_text(json_array_get(s.pods, 0), "status.phase", again ? "Failed" : "Running");
        step(&s);
        assert_int_equal(attempt_of(&s).number, 1);
        assert_int_equal(count(&s, "JobRestarting"), 0);
        assert_int_equal(count(&s, "delete pod"), 3);
        assert_int_equal(count(&s, "create pod"), 0);
    }
    close_scene(&s);
}

/* If the number is the only effect that was written, the next step continues from there. */
static void the_number_alone_is_enough(void **state)
{
    (void)state;
    struct scene s;
    open_restarting(&s, "Never", "3");
    add_pod(&s, "Master", 0, "Running");
    add_pod(&s, "Worker", 0, "Running");
    add_failed(&s, "Worker", 1, 3, "2026-01-01T00:00:01Z");
    set_restarts(&s, "1 job-1", "it", "it");
    step(&s);
    assert_int_equal(attempt_of(&s).number, 1);
    assert_int_equal(count(&s, "delete pod"), 3);
    assert_non_null(strstr(doc_text(s.status, "conditions.0.message", ""), "restart 1 of 3: it"));
    close_scene(&s);
}

static void none_begins_before_the_last_has_gone(void **state)
{
    (void)state;
    struct scene s;
    open_restarting(&s, "Never", "3");
    set_note(&s, JOB_ANNOTATION_MAX_RESTARTS, "3");
    json_t *pod = add_pod(&s, "Worker", 1, "Running");
    doc_set_text(pod, "metadata.deletionTimestamp", "2026-01-01T00:00:00Z");
    set_restarts(&s, "2 job-1", "it", "it");
    step(&s);
    assert_int_equal(count(&s, "create pod"), 0);
    assert_int_equal(count(&s, "delete pod"), 0);
    json_array_clear(s.pods);
    step(&s);
    assert_int_equal(count(&s, "create pod"), 3);
    pod = add_pod(&s, "Worker", 1, "Running");
    assert_int_equal(control_attempt_of_pod(pod), 2);
    assert_string_equal(variable(pod, "TORCHELASTIC_RESTART_COUNT"), "2");
    assert_string_equal(variable(pod, "TORCHELASTIC_MAX_RESTARTS"), "3");
    assert_string_equal(variable(pod, "MUSTER_RESTART_COUNT"), "2");
    close_scene(&s);
}

/* With an old view, a rank of the next attempt may have been started too early. */
static void ranks_of_two_attempts_are_not_running(void **state)
{
    (void)state;
    struct scene s;
    open_restarting(&s, "Never", "3");
    add_pod(&s, "Worker", 0, "Running");
    set_restarts(&s, "1 job-1", "", "");
    add_pod(&s, "Master", 0, "Running");
    step(&s);
    assert_string_equal(doc_text(s.status, "conditions.0.type", ""), "Restarting");
    assert_int_equal(count(&s, "delete pod"), 1);
    assert_int_equal(count(&s, "create pod"), 0);
    close_scene(&s);
}

static void the_last_attempt_fails_the_job(void **state)
{
    (void)state;
    static const char *const policies[] = {"Never", "ExitCode"};
    for (size_t i = 0; i < 2; i++) {
        struct scene s;
        open_restarting(&s, policies[i], "1");
        set_restarts(&s, "1 job-1", "the very first", "x");
        add_pod(&s, "Master", 0, "Running");
        add_pod(&s, "Worker", 0, "Running");
        add_failed(&s, "Worker", 1, 137, "2026-01-01T00:00:01Z");
        step(&s);
        assert_int_equal(count(&s, "PyTorchJobFailed"), 1);
        assert_int_equal(count(&s, "First failure: mnist-worker-1 (rank 2)"), 1);
        assert_int_equal(count(&s, "Before the first restart: the very first"), 1);
        assert_int_equal(attempt_of(&s).number, 1);
        close_scene(&s);
    }
}

/* Success, suspension, the deadline and an end from outside take precedence over a restart. */
static void what_ends_a_job_comes_first(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        const char *note;
        int64_t now_s;
        const char *master;
        const char *reason;
    } table[] = {
        {"{}", NULL, 0, "Succeeded", "PyTorchJobSucceeded"},
        {"{'suspend': true}", NULL, 0, "Running", "PyTorchJobSuspended"},
        {"{'activeDeadlineSeconds': 5}", NULL, 9, "Running", "active longer"},
        {"{'backoffLimit': 0}", NULL, 0, "Running", "backoff limit"},
        {"{}", JOB_ANNOTATION_STOP, 0, "Running", "PyTorchJobStopped"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct scene s;
        open_restarting(&s, "Never", "3");
        doc_set(s.job, "spec.runPolicy", parse(table[i].policy));
        set_note(&s, JOB_ANNOTATION_SUCCESS_POLICY, "Default");
        if (table[i].note) {
            set_note(&s, table[i].note, "enough");
        }
        s.now_s = table[i].now_s;
        add_pod(&s, "Master", 0, table[i].master);
        add_failed(&s, "Worker", 0, 3, "2026-01-01T00:00:00Z");
        step(&s);
        assert_true(count(&s, table[i].reason) > 0);
        assert_int_equal(attempt_of(&s).number, 0);
        close_scene(&s);
    }
}

/* An exported job is created again with its annotations, whose number belongs to the job before
 * it. */
static void anothers_number_does_not_count(void **state)
{
    (void)state;
    static const char *const notes[] = {
        "3 other", "3", "3 ", "", "-3 job-1", "x job-1", "3  job-1", "99999999999999999999 job-1"};
    for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++) {
        struct scene s;
        open_restarting(&s, "Never", "3");
        set_note(&s, JOB_ANNOTATION_JOB_RESTARTS, notes[i]);
        assert_int_equal(attempt_of(&s).number, 0);
        step(&s);
        assert_int_equal(count(&s, "create pod"), 3);
        close_scene(&s);
    }
}

static void without_the_annotation_nothing_is_new(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, make_job(true, 1, "Never", "{}"));
    json_t *pod = add_pod(&s, "Master", 0, "Running");
    assert_null(doc_at(pod, "metadata.annotations"));
    assert_null(variable(pod, "TORCHELASTIC_RESTART_COUNT"));
    add_failed(&s, "Worker", 0, 3, "2026-01-01T00:00:00Z");
    set_restarts(&s, "1 job-1", "", "");
    step(&s);
    assert_int_equal(count(&s, "PyTorchJobFailed"), 1);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ranks_end_when_one_fails),
        cmocka_unit_test(several_failures_are_one_restart),
        cmocka_unit_test(the_number_alone_is_enough),
        cmocka_unit_test(none_begins_before_the_last_has_gone),
        cmocka_unit_test(ranks_of_two_attempts_are_not_running),
        cmocka_unit_test(a_later_restart_keeps_the_first_cause),
        cmocka_unit_test(the_last_attempt_fails_the_job),
        cmocka_unit_test(what_ends_a_job_comes_first),
        cmocka_unit_test(anothers_number_does_not_count),
        cmocka_unit_test(without_the_annotation_nothing_is_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
