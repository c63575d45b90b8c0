/* The driver over a cluster that misbehaves: whatever happens, the job comes to its end, and then
 * nothing is sent any more.
 *
 * A failure prints its seed; MUSTER_SEED=n runs that one alone, MUSTER_SIMULATIONS=n that many. */
#include "fake.h"

#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "job/job.h"

#include <stdio.h>
#include <stdlib.h>

enum { RUNS = 300, STEPS = 400, HORIZON_MS = 24 * 3600000, QUIET_MS = 300000, TURNS_MAX = 200000 };

static json_t *make_job(int master, int workers, const char *restart, const char *policy)
{
    json_t *job = parse("{'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': "
                        "{'name': 'case', 'namespace': 'default', 'annotations': {}}, 'spec': "
                        "{'pytorchReplicaSpecs': {}}}");
    json_t *specs = doc_at(job, "spec.pytorchReplicaSpecs");
    const struct {
        const char *role;
        int replicas;
    } roles[] = {{"Master", master}, {"Worker", workers}};
    for (int i = 0; i < 2; i++) {
        if (roles[i].replicas > 0) {
            json_object_set_new(specs, roles[i].role,
                                json_pack("{s:i, s:s, s:{s:{s:[{s:s, s:s}]}}}", "replicas",
                                          roles[i].replicas, "restartPolicy", restart, "template",
                                          "spec", "containers", "name", "pytorch", "image", "i"));
        }
    }
    doc_set(job, "spec.runPolicy", parse(policy));
    return job;
}

static void settle(struct fake *f, int64_t until_ms)
{
    for (int i = 0; fake_step(f, until_ms) && !f->broken; i++) {
        if (i > TURNS_MAX) {
            f->broken = "never comes to rest";
        }
    }
}

static bool has_ended(const struct fake *f)
{
    const json_t *job = fake_get(f, "pytorchjobs", "case");
    return !job || job_is_finished(job);
}

/* ---- one way each ---- */

static void a_job_takes_no_more_requests_than_it_must(void **state)
{
    (void)state;
    struct fake f;
    fake_init(&f, 1);
    fake_start(&f, 0);
    fake_create_job(&f, make_job(1, 3, "Never", "{}"));
    settle(&f, f.now_ms);
    assert_int_equal(fake_count(&f, "pods"), 4);
    assert_int_equal(fake_count(&f, "services"), 4);
    assert_int_equal(f.sent, 9); /* the status, and a pod and a Service each */
    assert_int_equal(f.events, 8);
    settle(&f, HORIZON_MS);
    assert_null(f.broken);
    assert_true(fake_job_is(&f, "Succeeded"));
    size_t sent = f.sent;
    settle(&f, 2 * HORIZON_MS);
    assert_int_equal(f.sent, sent);
    fake_done(&f);
}

/* The job's watch is late, that of the pods is not: its pods are not made anew. */
static void a_job_that_was_just_suspended_gets_no_pods(void **state)
{
    (void)state;
    struct fake f;
    fake_init(&f, 1);
    fake_start(&f, 0);
    fake_create_job(&f, make_job(0, 2, "OnFailure", "{}"));
    settle(&f, f.now_ms);
    size_t made = f.pods_made;
    assert_int_equal(made, 2);
    for (int i = 0; i < FAKE_WATCHES; i++) {
        struct fake_watch *w = &f.watches[i];
        if (w->open && strcmp(w->scope.resource->plural, "pytorchjobs") == 0) {
            w->due_ms = f.now_ms + 5000;
        }
    }
    fake_patch_job(&f, "spec.runPolicy.suspend", json_true());
    fake_delete(&f, "pods", "case-worker-0");
    fake_delete(&f, "pods", "case-worker-1");
    settle(&f, f.now_ms + 20000);
    assert_int_equal(f.pods_made, made);
    assert_true(fake_job_is(&f, "Suspended"));
    fake_done(&f);
}

/* Created and not answered: it is found, and taken. */
static void an_answer_that_was_lost_makes_nothing_twice(void **state)
{
    (void)state;
    struct fake f;
    fake_init(&f, 1);
    f.faults.unanswered = 100;
    fake_start(&f, 0);
    fake_create_job(&f, make_job(0, 2, "Never", "{}"));
    settle(&f, f.now_ms + 5);
    f.faults.unanswered = 0;
    settle(&f, HORIZON_MS);
    assert_null(f.broken);
    assert_int_equal(f.pods_made, 2);
    assert_true(fake_job_is(&f, "Succeeded"));
    fake_done(&f);
}

static size_t count_events(const struct fake *f, const char *reason)
{
    size_t count = 0;
    const char *name;
    json_t *event;
    json_object_foreach (json_object_get(f->objects, "events"), name, event) {
        count += strcmp(doc_text(event, "reason", ""), reason) == 0;
    }
    return count;
}

/* A stranger's pod has a replica's name. */
static void a_name_that_is_taken_is_told_and_waited_for(void **state)
{
    (void)state;
    struct fake f;
    fake_init(&f, 1);
    json_t *stranger =
        parse("{'metadata': {'name': 'case-worker-1', 'namespace': 'default', 'uid': "
              "'theirs', 'ownerReferences': [{'uid': 'other', 'controller': true}]},"
              " 'status': {'phase': 'Succeeded'}}");
    doc_set(stranger, "metadata.deletionTimestamp", NULL);
    fake_put(&f, "pods", stranger);
    json_object_set_new(fake_get(&f, "pods", "case-worker-1"), "due", json_integer(600000));
    fake_start(&f, 0);
    fake_create_job(&f, make_job(0, 2, "Never", "{}"));
    settle(&f, f.now_ms + 300000);
    assert_int_equal(count_events(&f, "FailedCreatePod"), 1);
    assert_true(f.sent < 100); /* later and later */
    assert_string_equal(doc_text(fake_get(&f, "pods", "case-worker-1"), "metadata.uid", ""),
                        "theirs");
    settle(&f, HORIZON_MS); /* its owner is nobody: it is collected in the end */
    assert_true(fake_job_is(&f, "Succeeded"));
    fake_done(&f);
}

static void a_job_that_cannot_be_read_is_said_once(void **state)
{
    (void)state;
    struct fake f;
    fake_init(&f, 1);
    json_t *job = make_job(0, 1, "Never", "{}");
    doc_set(job, "spec.pytorchReplicaSpecs", json_string("broken"));
    fake_start(&f, 0);
    fake_create_job(&f, job);
    settle(&f, f.now_ms + 3600000);
    assert_true(fake_job_is(&f, "Stalled"));
    assert_int_equal(count_events(&f, "PyTorchJobInvalid"), 1);
    assert_true(f.sent <= 2);
    json_t *good = make_job(0, 1, "Never", "{}");
    fake_patch_job(&f, "spec", json_incref(doc_at(good, "spec")));
    json_decref(good);
    settle(&f, HORIZON_MS);
    assert_false(fake_job_is(&f, "Stalled"));
    assert_true(fake_job_is(&f, "Succeeded"));
    fake_done(&f);
}

/* ---- at random ---- */

static void meddle(struct fake *f)
{
    char name[32];
    switch (fake_draw(f, 8)) {
    case 0: fake_patch_job(f, "spec.runPolicy.suspend", json_boolean(fake_draw(f, 2))); break;
    case 1:
        if (doc_at(fake_get(f, "pytorchjobs", "case"), "spec.pytorchReplicaSpecs.Worker")) {
            fake_patch_job(f, "spec.pytorchReplicaSpecs.Worker.replicas",
                           json_integer(1 + fake_draw(f, 4)));
        }
        break;
    case 2:
    case 3:
        snprintf(name, sizeof name, "case-worker-%u", fake_draw(f, 4));
        fake_delete(f, "pods", name);
        break;
    case 4:
        fake_stop(f, 0);
        fake_start(f, 0);
        break;
    default: break;
    }
}

static void draw_faults(struct fake *f)
{
    f->faults = (struct fake_faults){.lost = fake_draw(f, 15),
                                     .unanswered = fake_draw(f, 15),
                                     .refused = fake_draw(f, 10),
                                     .throttled = fake_draw(f, 10),
                                     .repeated = fake_draw(f, 20),
                                     .relisted = fake_draw(f, 10),
                                     .skipped = fake_draw(f, 40),
                                     .lag_ms = 1 + fake_draw(f, 2000)};
}

static json_t *draw_job(struct fake *f)
{
    static const char *const restarts[] = {"Always", "OnFailure", "ExitCode", "Never"};
    static const char *const policies[] = {
        "{}", "{'cleanPodPolicy': 'All'}",
        "{'cleanPodPolicy': 'Running', 'activeDeadlineSeconds': 600}",
        "{'backoffLimit': 3, 'ttlSecondsAfterFinished': 60}"};
    int master = (int)fake_draw(f, 2);
    int workers = (int)fake_draw(f, 4);
    return make_job(master, master + workers > 0 ? workers : 1, restarts[fake_draw(f, 4)],
                    policies[fake_draw(f, 4)]);
}

static void fail_with(const struct fake *f, uint64_t seed, const char *what)
{
    char *text = doc_print_pretty(f->objects);
    fprintf(stderr, "%s\n", text ? text : "");
    free(text);
    fail_msg("MUSTER_SEED=%llu: %s at %lld ms", (unsigned long long)seed, what,
             (long long)f->now_ms);
}

static void run_seed(uint64_t seed)
{
    struct fake f;
    fake_init(&f, seed);
    draw_faults(&f);
    for (uint32_t i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, i ? "case-worker-%u" : "case-master-%u", i ? i - 1 : 0);
        json_object_set_new(f.fates, name, json_integer(fake_draw(&f, 3)));
    }
    bool two = fake_draw(&f, 4) == 0; /* a former leader that does not know yet */
    fake_start(&f, 0);
    if (two) {
        fake_start(&f, 1);
    }
    fake_create_job(&f, draw_job(&f));
    for (int i = 0; i < STEPS && !f.broken; i++) {
        if (fake_draw(&f, 20) == 0) {
            meddle(&f);
        }
        fake_step(&f, f.now_ms + 5000);
    }
    f.broken = two ? NULL : f.broken;
    f.faults = (struct fake_faults){.lag_ms = 50};
    fake_stop(&f, 1);
    fake_patch_job(&f, "spec.runPolicy.suspend", json_false());
    settle(&f, f.now_ms + HORIZON_MS);
    if (f.broken || !has_ended(&f)) {
        fail_with(&f, seed, f.broken ? f.broken : "never ends");
    }
    size_t sent = f.sent + f.events;
    settle(&f, f.now_ms + QUIET_MS);
    if (f.sent + f.events != sent) {
        fail_with(&f, seed, "something is still sent");
    }
    fake_done(&f);
}

static void whatever_happens_there_is_an_end(void **state)
{
    (void)state;
    const char *one = getenv("MUSTER_SEED");
    const char *many = getenv("MUSTER_SIMULATIONS");
    uint64_t runs = many ? strtoull(many, NULL, 10) : RUNS;
    if (one) {
        run_seed(strtoull(one, NULL, 10));
        return;
    }
    for (uint64_t seed = 1; seed <= runs; seed++) {
        run_seed(seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_takes_no_more_requests_than_it_must),
        cmocka_unit_test(a_job_that_was_just_suspended_gets_no_pods),
        cmocka_unit_test(an_answer_that_was_lost_makes_nothing_twice),
        cmocka_unit_test(a_name_that_is_taken_is_told_and_waited_for),
        cmocka_unit_test(a_job_that_cannot_be_read_is_said_once),
        cmocka_unit_test(whatever_happens_there_is_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
