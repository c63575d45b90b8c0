/* See chaos.h. */
#include "chaos.h"

#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "job/job.h"

#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 400, HORIZON_MS = 24 * 3600000, QUIET_MS = 300000, TURNS_MAX = 200000 };

json_t *chaos_make_job(int master, int workers, const char *restart, const char *policy)
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

void chaos_settle(struct fake *f, int64_t until_ms)
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
    case 5: fake_set_node(f, (enum fake_node)fake_draw(f, 3)); break;
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
    json_t *job = chaos_make_job(master, master + workers > 0 ? workers : 1,
                                 restarts[fake_draw(f, 4)], policies[fake_draw(f, 4)]);
    if (workers > 0 && fake_draw(f, 3) == 0) {
        doc_set(job, "spec.elasticPolicy", parse("{'minReplicas': 1, 'metrics': []}"));
    }
    return job;
}

/* Adds a pod of another owner that has a replica's name, for a while. */
static void add_stranger(struct fake *f)
{
    json_t *pod = parse("{'metadata': {'name': 'case-worker-0', 'namespace': 'default', 'uid': "
                        "'theirs', 'ownerReferences': [{'uid': 'other', 'controller': true}]},"
                        " 'status': {'phase': 'Running'}}");
    doc_set_int(pod, "due", fake_draw(f, 60000));
    fake_put(f, "pods", pod);
}

static void begin(struct fake *f, bool two)
{
    for (uint32_t i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, i ? "case-worker-%u" : "case-master-%u", i ? i - 1 : 0);
        json_object_set_new(f->fates, name, json_integer(fake_draw(f, 3)));
    }
    if (fake_draw(f, 4) == 0) {
        add_stranger(f);
    }
    fake_start(f, 0);
    if (two) {
        fake_start(f, 1);
    }
    fake_create_job(f, draw_job(f));
}

static const char *end(struct fake *f)
{
    f->faults = (struct fake_faults){.lag_ms = 50};
    fake_stop(f, 1);
    fake_patch_job(f, "spec.runPolicy.suspend", json_false());
    chaos_settle(f, f->now_ms + HORIZON_MS);
    if (f->broken || !has_ended(f)) {
        return f->broken ? f->broken : "never ends";
    }
    size_t sent = f->sent + f->events;
    chaos_settle(f, f->now_ms + QUIET_MS);
    return f->sent + f->events != sent ? "something is still sent" : NULL;
}

static void tell_objects(const struct fake *f)
{
    char *text = doc_print_pretty(f->objects);
    fprintf(stderr, "%s\nat %lld ms\n", text ? text : "", (long long)f->now_ms);
    free(text);
}

const char *chaos_run(uint64_t seed, int64_t resync_ms, bool tell)
{
    struct fake f;
    fake_init(&f, seed);
    f.resync_ms = resync_ms ? resync_ms : f.resync_ms;
    draw_faults(&f);
    bool two = fake_draw(&f, 4) == 0; /* one is a former leader that does not know it yet */
    f.excused = two;
    begin(&f, two);
    for (int i = 0; i < STEPS && !f.broken; i++) {
        if (fake_draw(&f, 20) == 0) {
            meddle(&f);
        }
        fake_step(&f, f.now_ms + 5000);
    }
    f.broken = two ? NULL : f.broken;
    const char *broken = f.broken ? f.broken : end(&f);
    if (broken && tell) {
        tell_objects(&f);
    }
    fake_done(&f);
    return broken;
}
