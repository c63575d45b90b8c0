/* The lifecycle matrix (test/data/lifecycle.json) on the pure cores: each case is a job, what its
 * ranks do, what users do, and the expected result. test/data/lifecycle.md describes the format. */
#include "base/doc.h"
#include "base/file.h"
#include "base/testing/test.h"
#include "job/annotations.h"
#include "world.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>

enum { CASES_MAX = 128, FILE_BYTES_MAX = 1 << 20, HORIZON_MS = 3600000 };

static json_t *make_replica(const json_t *job, const char *role, int64_t replicas)
{
    const json_t *policy = json_object_get(job, "restartPolicy");
    const char *word =
        json_is_string(policy) ? json_string_value(policy) : doc_text(policy, role, "OnFailure");
    json_t *replica = json_pack("{s:I, s:s, s:{s:{s:[{s:s, s:s}]}}}", "replicas",
                                (json_int_t)replicas, "restartPolicy", word, "template", "spec",
                                "containers", "name", "pytorch", "image", "case");
    json_t *spec = doc_at(replica, "template.spec");
    int64_t grace = doc_int(job, "gracePeriod", 2);
    doc_set_int(spec, "terminationGracePeriodSeconds", grace);
    if (doc_bool(job, "gpu", false)) {
        json_t *container = json_array_get(json_object_get(spec, "containers"), 0);
        doc_set(container, "resources.limits", json_pack("{s:i}", "nvidia.com/gpu", 1));
    }
    return replica;
}

static void set_note(json_t *job, const char *key, const char *value)
{
    json_t *metadata = json_object_get(job, "metadata");
    if (value && !json_object_get(metadata, "annotations")) {
        json_object_set_new(metadata, "annotations", json_object());
    }
    if (value) {
        json_object_set_new(json_object_get(metadata, "annotations"), key, json_string(value));
    }
}

static json_t *make_job(const json_t *test)
{
    const json_t *wanted = json_object_get(test, "job");
    json_t *job =
        json_pack("{s:s, s:s, s:{s:s, s:s, s:s}, s:{s:{}}}", "apiVersion", "kubeflow.org/v1",
                  "kind", "PyTorchJob", "metadata", "name", "case", "namespace", "default", "uid",
                  "job-uid", "spec", "pytorchReplicaSpecs");
    json_t *specs = doc_at(job, "spec.pytorchReplicaSpecs");
    if (doc_bool(wanted, "master", false)) {
        json_object_set_new(specs, "Master", make_replica(wanted, "Master", 1));
    }
    if (doc_int(wanted, "workers", 0) > 0) {
        json_object_set_new(specs, "Worker",
                            make_replica(wanted, "Worker", doc_int(wanted, "workers", 0)));
    }
    set_note(job, JOB_ANNOTATION_SUCCESS_POLICY, doc_text(wanted, "successPolicy", NULL));
    set_note(job, JOB_ANNOTATION_MAX_RESTARTS, doc_text(wanted, "maxRestarts", NULL));
    static const char *const copied[] = {"runPolicy", "elasticPolicy"};
    for (size_t i = 0; i < 2; i++) {
        const json_t *value = json_object_get(wanted, copied[i]);
        if (value) {
            json_object_set_new(json_object_get(job, "spec"), copied[i], json_deep_copy(value));
        }
    }
    return job;
}

static void act(struct sim_world *w, const json_t *action)
{
    const json_t *patch = json_object_get(action, "patch");
    const char *pod = doc_text(action, "deletePod", NULL);
    if (patch) {
        sim_store_patch_job(&w->store, json_deep_copy(patch));
    }
    if (pod) {
        char name[128];
        snprintf(name, sizeof name, "case-%s", pod);
        sim_store_delete_pod(&w->store, name, w->now_unix_ms);
    }
}

static bool is_over(const struct sim_world *w, const char *until)
{
    if (*until == '\0') {
        return true;
    }
    if (strcmp(until, "gone") == 0) {
        return !w->store.job && json_array_size(w->store.pods) == 0;
    }
    if (strcmp(until, "end") == 0) {
        return sim_world_job_is(w, "Succeeded") || sim_world_job_is(w, "Failed");
    }
    return sim_world_job_is(w, until);
}

/* Runs up to `at`, stopping early once `until` holds (NULL: never). */
static bool run_until(struct sim_world *w, int64_t at, const char *until)
{
    sim_world_settle(w);
    while (!w->broken && !(until && is_over(w, until))) {
        bool more = sim_world_advance(w, at);
        sim_world_settle(w);
        if (!more) {
            break;
        }
    }
    return until && is_over(w, until);
}

static void run_case(struct sim_world *w, const json_t *test)
{
    size_t index;
    json_t *action;
    json_array_foreach (json_object_get(test, "do"), index, action) {
        double at = json_number_value(json_object_get(action, "at"));
        run_until(w, w->start_unix_ms + (int64_t)(at * 1000), NULL);
        act(w, action);
    }
    const char *until = doc_text(test, "until", "end");
    if (!run_until(w, w->start_unix_ms + HORIZON_MS, until) && !w->broken) {
        fail_msg("the job never became %s; it is %s", until, sim_world_state(w));
    }
    double more = json_number_value(json_object_get(test, "then"));
    int64_t since = w->now_unix_ms;
    if (more > 0) {
        run_until(w, since + (int64_t)(more * 1000), NULL);
        w->now_unix_ms = since;
    }
}

static json_t *conditions_of(const struct sim_world *w)
{
    json_t *list = json_array();
    size_t index;
    json_t *each;
    json_array_foreach (doc_at(w->store.job, "status.conditions"), index, each) {
        bool is_true = strcmp(doc_text(each, "status", ""), "True") == 0;
        json_array_append_new(
            list, json_sprintf("%s%s", doc_text(each, "type", ""), is_true ? "" : "=False"));
    }
    return list;
}

static json_t *events_of(const struct sim_world *w)
{
    json_t *counts = json_object();
    size_t index;
    json_t *each;
    json_array_foreach (w->store.events, index, each) {
        const char *reason = doc_text(each, "reason", "");
        json_int_t count = json_integer_value(json_object_get(counts, reason));
        json_object_set_new(counts, reason, json_integer(count + 1));
    }
    return counts;
}

static json_t *pods_of(const struct sim_world *w)
{
    json_t *pods = json_object();
    size_t index;
    json_t *each;
    json_array_foreach (w->store.pods, index, each) {
        const char *name = doc_text(each, "metadata.name", "") + strlen("case-");
        json_object_set_new(pods, name, json_string(doc_text(each, "status.phase", "")));
    }
    return pods;
}

static json_t *made_of(const struct sim_world *w)
{
    json_t *made = json_object();
    const char *name;
    json_t *count;
    json_object_foreach (w->store.made, name, count) {
        json_object_set(made, name + strlen("case-"), count);
    }
    return made;
}

/* Takes `got`. What a case does not mention is not checked. */
static void expect(const json_t *test, const char *what, json_t *got)
{
    const json_t *wanted = json_object_get(json_object_get(test, "expect"), what);
    if (wanted && !json_equal(wanted, got)) {
        char *got_text = doc_print(got);
        char *wanted_text = doc_print(wanted);
        fail_msg("%s: got %s, expected %s", what, got_text, wanted_text);
    }
    json_decref(got);
}

static const json_t *last_condition(const struct sim_world *w)
{
    const json_t *list = doc_at(w->store.job, "status.conditions");
    size_t count = json_array_size(list);
    return count ? json_array_get(list, count - 1) : NULL;
}

static void expect_match(const json_t *test, const char *what, const char *got)
{
    const char *pattern = doc_text(json_object_get(test, "expect"), what, NULL);
    if (!pattern) {
        return;
    }
    regex_t regex;
    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    if (regexec(&regex, got, 0, NULL, 0) != 0) {
        fail_msg("%s: \"%s\" does not match \"%s\"", what, got, pattern);
    }
    regfree(&regex);
}

static void expect_time(const json_t *test, const struct sim_world *w)
{
    const json_t *range = json_object_get(json_object_get(test, "expect"), "seconds");
    if (range) {
        double took = (double)(w->now_unix_ms - w->start_unix_ms) / 1000;
        double least = json_number_value(json_array_get(range, 0));
        double most = json_number_value(json_array_get(range, 1));
        if (took < least || took > most) {
            fail_msg("took %g s, expected %g to %g", took, least, most);
        }
    }
}

static int64_t failures_of(const struct sim_world *w)
{
    return doc_int(w->store.job, "status.counters.failures", 0);
}

static void check_case(void **state)
{
    const json_t *test = *state;
    struct sim_world w;
    json_t *job = make_job(test);
    sim_world_init(&w, job, json_object_get(test, "ranks"));
    run_case(&w, test);
    if (w.broken) {
        fail_msg("violated invariant: %s", w.broken);
    }
    expect_time(test, &w);
    expect(test, "conditions", conditions_of(&w));
    expect(test, "events", events_of(&w));
    expect(test, "pods", pods_of(&w));
    expect(test, "made", made_of(&w));
    expect(test, "failures", json_integer(failures_of(&w)));
    expect_match(test, "reason", doc_text(last_condition(&w), "reason", ""));
    expect_match(test, "message", doc_text(last_condition(&w), "message", ""));
    json_t *statuses = doc_at(w.store.job, "status.replicaStatuses");
    json_t *counts = statuses ? json_deep_copy(statuses) : json_object();
    const char *role;
    json_t *entry;
    json_object_foreach (counts, role, entry) {
        json_object_del(entry, "selector");
    }
    expect(test, "replicas", counts);
    sim_world_done(&w);
    json_decref(job);
}

static json_t *read_cases(void)
{
    char path[4096];
    const char *source = getenv("MUSTER_SOURCE");
    snprintf(path, sizeof path, "%s/test/data/lifecycle.json", source ? source : ".");
    char *text = NULL;
    size_t bytes = 0;
    struct muster_err err = MUSTER_ERR_INIT;
    json_t *doc = NULL;
    if (file_read(path, FILE_BYTES_MAX, &text, &bytes, &err) < 0 ||
        doc_parse(text, bytes, &doc, &err) < 0) {
        fprintf(stderr, "%s: %s\n", path, err.text);
        exit(1);
    }
    free(text);
    return doc;
}

int main(void)
{
    static struct CMUnitTest tests[CASES_MAX];
    json_t *cases = read_cases();
    size_t count = json_array_size(cases);
    if (count < 40 || count > CASES_MAX) {
        fprintf(stderr, "lifecycle.json: %zu cases, expected 40 to %d\n", count, CASES_MAX);
        return 1;
    }
    for (size_t i = 0; i < count; i++) {
        json_t *each = json_array_get(cases, i);
        tests[i] = (struct CMUnitTest){
            .name = doc_text(each, "name", "?"), .test_func = check_case, .initial_state = each};
    }
    int failed = _cmocka_run_group_tests("lifecycle", tests, count, NULL, NULL);
    json_decref(cases);
    return failed;
}
