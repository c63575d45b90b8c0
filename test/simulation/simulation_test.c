/* Random jobs under random faults: old views, lost effects, crashes of controller and node, users
 * who suspend, scale and delete. Whatever happens, no index ever has two live pods, no failure is
 * counted twice, and once the faults stop the job comes to an end.
 *
 * A failure prints its seed; MUSTER_SEED=n runs that one alone, MUSTER_SIMULATIONS=n that many. */
#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_draw.h"
#include "base/testing/test_seeds.h"
#include "job/annotations.h"
#include "world.h"

#include <stdio.h>
#include <stdlib.h>

enum { RUNS = 300, STEPS = 150, HISTORY = 6, HORIZON_MS = 6 * 3600000 };

struct chaos {
    struct sim_world world;
    uint64_t random;
    struct sim_view history[HISTORY]; /* old views, each of which may be used again */
    size_t seen;
};

static uint32_t draw(struct chaos *c, uint32_t below)
{
    return test_draw(&c->random, below);
}

static bool chance(struct chaos *c, uint32_t percent)
{
    return draw(c, 100) < percent;
}

static json_t *draw_replica(struct chaos *c, int replicas)
{
    static const char *const policies[] = {"Always", "OnFailure", "Never", "ExitCode"};
    return json_pack("{s:i, s:s, s:{s:{s:i, s:[{s:s, s:s}]}}}", "replicas", replicas,
                     "restartPolicy", policies[draw(c, 4)], "template", "spec",
                     "terminationGracePeriodSeconds", (int)draw(c, 4), "containers", "name",
                     "pytorch", "image", "any");
}

static json_t *draw_job(struct chaos *c)
{
    static const char *const clean[] = {"None", "Running", "All"};
    json_t *job = json_pack("{s:s, s:s, s:{s:s, s:s, s:s}, s:{s:{s:s, s:i}, s:{}}}", "apiVersion",
                            "kubeflow.org/v1", "kind", "PyTorchJob", "metadata", "name", "case",
                            "namespace", "default", "uid", "job-uid", "spec", "runPolicy",
                            "cleanPodPolicy", clean[draw(c, 3)], "activeDeadlineSeconds",
                            60 + (int)draw(c, 4000), "pytorchReplicaSpecs");
    json_t *specs = doc_at(job, "spec.pytorchReplicaSpecs");
    bool master = chance(c, 60);
    if (master) {
        json_object_set_new(specs, "Master", draw_replica(c, 1));
    }
    if (!master || chance(c, 80)) {
        json_object_set_new(specs, "Worker", draw_replica(c, 1 + (int)draw(c, 3)));
    }
    json_t *notes = json_object();
    doc_set(job, "metadata.annotations", notes);
    if (chance(c, 30)) {
        json_object_set_new(notes, JOB_ANNOTATION_SUCCESS_POLICY, json_string("AllRanks"));
    }
    if (chance(c, 30)) {
        json_object_set_new(notes, JOB_ANNOTATION_MAX_RESTARTS, json_sprintf("%u", draw(c, 4)));
    }
    if (chance(c, 40)) {
        doc_set_int(job, "spec.runPolicy.backoffLimit", draw(c, 5));
    }
    if (chance(c, 20)) {
        doc_set_int(job, "spec.runPolicy.ttlSecondsAfterFinished", draw(c, 30));
    }
    return job;
}

static json_t *draw_acts(struct chaos *c)
{
    static const int codes[] = {0, 1, 127, 128, 137, 143};
    json_t *acts = json_array();
    for (uint32_t i = draw(c, 5); i > 0; i--) {
        json_array_append_new(acts,
                              json_pack("{s:f, s:i, s:b}", "run", draw(c, 8000) / 1000.0, "exit",
                                        codes[draw(c, 6)], "ignoresTerm", (int)draw(c, 2)));
    }
    json_array_append_new(acts, json_pack("{s:f, s:i}", "run", 1.0 + draw(c, 5), "exit", 0));
    return acts;
}

static json_t *draw_script(struct chaos *c)
{
    static const char *const replicas[] = {"master-0", "worker-0", "worker-1",
                                           "worker-2", "worker-3", "worker-4"};
    json_t *script = json_object();
    for (size_t i = 0; i < sizeof replicas / sizeof replicas[0]; i++) {
        json_object_set_new(script, replicas[i], draw_acts(c));
    }
    return script;
}

static void remember_view(struct chaos *c)
{
    struct sim_view *slot = &c->history[c->seen++ % HISTORY];
    if (c->seen > HISTORY) {
        sim_view_done(slot);
    }
    sim_store_look(&c->world.store, c->world.now_unix_ms, slot);
}

/* Makes a step on a view that may be old as a whole, or only in its pods and services; its last
 * effects may be lost. */
static void reconcile_badly(struct chaos *c)
{
    struct sim_view view;
    if (!c->world.store.job) {
        return;
    }
    sim_store_look(&c->world.store, c->world.now_unix_ms, &view);
    size_t known = c->seen < HISTORY ? c->seen : HISTORY;
    if (known > 0 && chance(c, 50)) {
        const struct sim_view *old = &c->history[draw(c, (uint32_t)known)];
        json_decref((json_t *)view.view.pods);
        json_decref((json_t *)view.view.services);
        view.view.pods = json_deep_copy(old->view.pods);
        view.view.services = json_deep_copy(old->view.services);
        if (chance(c, 30) && old->view.job) {
            json_decref(view.view.job);
            view.view.job = json_deep_copy(old->view.job);
            view.job_version = old->job_version;
        }
    }
    sim_world_reconcile(&c->world, &view, chance(c, 40) ? draw(c, 12) : SIZE_MAX);
    c->world.seen_version = 0;
    sim_view_done(&view);
}

static void meddle(struct chaos *c)
{
    struct sim_store *store = &c->world.store;
    size_t pods = json_array_size(store->pods);
    switch (draw(c, 6)) {
    case 0:
    case 1:
        if (pods > 0) {
            const json_t *pod = json_array_get(store->pods, draw(c, (uint32_t)pods));
            sim_store_delete_pod(store, doc_text(pod, "metadata.name", ""), c->world.now_unix_ms);
        }
        break;
    case 2:
    case 3:
        sim_store_patch_job(
            store, json_pack("{s:{s:{s:b}}}", "spec", "runPolicy", "suspend", (int)draw(c, 2)));
        break;
    case 4:
        if (doc_at(store->job, "spec.pytorchReplicaSpecs.Worker")) {
            sim_store_patch_job(store, json_pack("{s:{s:{s:{s:i}}}}", "spec", "pytorchReplicaSpecs",
                                                 "Worker", "replicas", 1 + (int)draw(c, 4)));
        }
        break;
    default:
        if (chance(c, 10)) {
            sim_store_patch_job(store, json_pack("{s:{s:{s:s}}}", "metadata", "annotations",
                                                 "muster.dev/stop", "chaos"));
        }
    }
}

static void one_step(struct chaos *c)
{
    struct sim_world *w = &c->world;
    w->kubelet.drop_status = chance(c, 10);
    switch (draw(c, 8)) {
    case 0: sim_kubelet_crash(&w->kubelet, w->now_unix_ms); break;
    case 1: meddle(c); break;
    case 2: w->now_unix_ms += draw(c, 3000); break;
    case 3: sim_kubelet_run(&w->kubelet, w->now_unix_ms); break;
    case 4: sim_world_settle(w); break;
    case 5: remember_view(c); break;
    default: reconcile_badly(c); break;
    }
    w->kubelet.drop_status = false;
}

static int64_t note_number(const struct sim_world *w, const char *key)
{
    const char *text =
        json_string_value(json_object_get(doc_at(w->store.job, "metadata.annotations"), key));
    return text ? strtoll(text, NULL, 10) : 0;
}

static int64_t counted(const struct sim_world *w)
{
    return doc_int(w->store.job, "status.counters.failures", 0);
}

static int64_t restarted(const struct sim_world *w)
{
    return doc_int(w->store.job, "status.counters.jobRestarts", 0);
}

static void check(const struct chaos *c, const char *seed)
{
    const struct sim_world *w = &c->world;
    const char *broken = w->broken ? w->broken : w->kubelet.broken;
    if (!broken && counted(w) > w->kubelet.failures) {
        broken = "a failure was counted twice";
    }
    if (!broken && restarted(w) > w->kubelet.failures) {
        broken = "a failure restarted the job twice";
    }
    if (!broken && restarted(w) > note_number(w, JOB_ANNOTATION_MAX_RESTARTS)) {
        broken = "the job was restarted too often";
    }
    if (broken) {
        char *job = w->store.job ? doc_print_pretty(w->store.job) : NULL;
        fail_msg("MUSTER_SEED=%s: %s\n%s", seed, broken, job ? job : "");
    }
}

static bool has_ended(const struct sim_world *w)
{
    return !w->store.job || sim_world_job_is(w, "Succeeded") || sim_world_job_is(w, "Failed");
}

/* Stops all faults: the agent now writes what it had not written, and the job runs to its end. */
static void let_it_end(struct chaos *c, const char *seed)
{
    struct sim_world *w = &c->world;
    sim_store_patch_job(&w->store, json_pack("{s:{s:{s:b}}}", "spec", "runPolicy", "suspend", 0));
    sim_kubelet_crash(&w->kubelet, w->now_unix_ms);
    w->seen_version = 0;
    int64_t horizon = w->now_unix_ms + HORIZON_MS;
    sim_world_settle(w);
    while (!w->broken && sim_world_advance(w, horizon)) {
        sim_world_settle(w);
    }
    check(c, seed);
    if (!has_ended(w)) {
        char *job = doc_print_pretty(w->store.job);
        fail_msg("MUSTER_SEED=%s: never ends; %s\n%s", seed, sim_world_state(w), job);
    }
}

/* Checks what must be left when everything is at rest. */
static void check_rest(const struct chaos *c, const char *seed)
{
    const struct sim_world *w = &c->world;
    const char *policy = doc_text(w->store.job, "spec.runPolicy.cleanPodPolicy", "All");
    size_t pods = json_array_size(w->store.pods);
    bool all = strcmp(policy, "All") == 0;
    if ((all && pods > 0) || (strcmp(policy, "None") != 0 && !sim_kubelet_idle(&w->kubelet))) {
        fail_msg("MUSTER_SEED=%s: %zu pods are left under cleanPodPolicy %s", seed, pods, policy);
    }
}

static void run_seed(uint64_t seed)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
    struct chaos c = {.random = (seed + 1) * 0x9e3779b97f4a7c15ULL};
    json_t *job = draw_job(&c);
    json_t *script = draw_script(&c);
    sim_world_init(&c.world, job, script);
    for (int i = 0; i < STEPS; i++) {
        one_step(&c);
        check(&c, text);
    }
    let_it_end(&c, text);
    check_rest(&c, text);
    for (size_t i = 0; i < HISTORY && i < c.seen; i++) {
        sim_view_done(&c.history[i]);
    }
    sim_world_done(&c.world);
    json_decref(script);
    json_decref(job);
}

static void whatever_happens_there_is_one_pod_and_an_end(void **state)
{
    (void)state;
    test_each_seed(RUNS, run_seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_happens_there_is_one_pod_and_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
