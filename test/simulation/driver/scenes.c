/* See scenes.h. */
#include "scenes.h"

#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "job/job.h"

#include <stdio.h>

enum { HORIZON_MS = 24 * 3600000 };

static void open_scene(struct fake *f, json_t *job)
{
    fake_init(f, 1);
    fake_start(f, 0);
    fake_create_job(f, job);
}

static const char *close_scene(struct fake *f, const char *broken)
{
    broken = f->broken ? f->broken : broken;
    fake_done(f);
    return broken;
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

/* Delays what the watches of the resource report. */
static void hold_watch_from(struct fake *f, int first, const char *resource, int64_t delay_ms)
{
    for (int i = first; i < FAKE_WATCHES; i++) {
        struct fake_watch *w = &f->watches[i];
        if (w->open && strcmp(w->scope.resource->plural, resource) == 0) {
            w->due_ms = f->now_ms + delay_ms;
        }
    }
}

static void hold_watch(struct fake *f, const char *resource, int64_t delay_ms)
{
    hold_watch_from(f, 0, resource, delay_ms);
}

/* The driver writes the status, and creates a pod and a Service for each replica; after that it
 * sends nothing unless something changes. */
const char *scene_calm(void)
{
    struct fake f;
    open_scene(&f, chaos_make_job(1, 3, "Never", "{}"));
    chaos_settle(&f, f.now_ms);
    bool thrifty = f.sent == 9 && f.events == 8 && fake_count(&f, "pods") == 4 &&
                   fake_count(&f, "services") == 4;
    chaos_settle(&f, HORIZON_MS);
    bool succeeded = fake_job_is(&f, "Succeeded");
    size_t sent = f.sent;
    chaos_settle(&f, 2 * HORIZON_MS);
    return close_scene(&f, !thrifty         ? "more is sent than must be"
                           : !succeeded     ? "does not succeed"
                           : f.sent != sent ? "something is still sent"
                                            : NULL);
}

/* The watch shows the job before the objects that were created for it. */
const char *scene_slow_watches(void)
{
    struct fake f;
    open_scene(&f, chaos_make_job(1, 3, "Never", "{}"));
    f.faults.lag_ms = 500;
    hold_watch(&f, "pods", 3000);
    hold_watch(&f, "services", 3000);
    chaos_settle(&f, f.now_ms + 20000);
    return close_scene(&f, f.creations != 8 ? "creates what it has created" : NULL);
}

/* The watch of the job is late, that of the pods is not. */
const char *scene_suspended(void)
{
    struct fake f;
    open_scene(&f, chaos_make_job(0, 2, "OnFailure", "{}"));
    chaos_settle(&f, f.now_ms);
    size_t made = f.pods_made;
    hold_watch(&f, "pytorchjobs", 5000);
    fake_patch_job(&f, "spec.runPolicy.suspend", json_true());
    fake_delete(&f, "pods", "case-worker-0");
    fake_delete(&f, "pods", "case-worker-1");
    chaos_settle(&f, f.now_ms + 20000);
    return close_scene(&f, f.pods_made != made             ? "pods are made for a suspended job"
                           : !fake_job_is(&f, "Suspended") ? "is not suspended"
                                                           : NULL);
}

/* A creation is carried out and not answered: the object is found and used. */
const char *scene_lost_answers(void)
{
    struct fake f;
    open_scene(&f, chaos_make_job(0, 2, "Never", "{}"));
    f.faults.unanswered = 100;
    chaos_settle(&f, f.now_ms + 5);
    f.faults.unanswered = 0;
    chaos_settle(&f, HORIZON_MS);
    return close_scene(&f, f.pods_made != 2                ? "a pod is made twice"
                           : !fake_job_is(&f, "Succeeded") ? "does not succeed"
                                                           : NULL);
}

static const char *count_once(uint64_t seed, uint32_t unanswered)
{
    struct fake f;
    fake_init(&f, seed);
    f.faults.unanswered = unanswered;
    f.faults.lag_ms = 2000;
    fake_start(&f, 0);
    fake_create_job(&f, chaos_make_job(1, 2, "OnFailure", "{'cleanPodPolicy': 'All'}"));
    chaos_settle(&f, HORIZON_MS);
    bool told = count_events(&f, "SuccessfulCreatePod") == f.pods_made &&
                count_events(&f, "SuccessfulDeletePod") == f.pods_made &&
                count_events(&f, "PyTorchJobSucceeded") == 1;
    return close_scene(&f, !fake_job_is(&f, "Succeeded")           ? "does not succeed"
                           : f.counted.pods_created != f.pods_made ? "miscounts creations"
                           : f.counted.pods_deleted != f.pods_made ? "miscounts deletions"
                           : f.counted.ends != 1                   ? "miscounts ends"
                           : !told                                 ? "does not tell what it did"
                                                                   : NULL);
}

/* Requests are carried out and not answered: their effects, as the watches show them, are counted
 * and reported once. */
const char *scene_counted_once(void)
{
    const char *broken = NULL;
    for (uint64_t seed = 1; seed <= 200 && !broken; seed++) {
        broken = count_once(seed, seed % 2 ? 70 : 30);
    }
    return broken;
}

/* Every request is refused for a minute, and nothing else happens. */
const char *scene_refused(void)
{
    struct fake f;
    open_scene(&f, chaos_make_job(0, 2, "Never", "{}"));
    f.faults.refused = 100;
    chaos_settle(&f, f.now_ms + 60000);
    size_t sent = f.sent;
    f.faults.refused = 0;
    chaos_settle(&f, HORIZON_MS);
    return close_scene(&f, sent > 10                       ? "tries too often"
                           : !fake_job_is(&f, "Succeeded") ? "does not succeed"
                                                           : NULL);
}

static json_t *make_stranger(const char *name)
{
    json_t *pod = parse("{'metadata': {'namespace': 'default', 'uid': 'theirs', "
                        "'ownerReferences': [{'uid': 'other', 'controller': true}]}, 'status': "
                        "{'phase': 'Succeeded'}}");
    doc_set_text(pod, "metadata.name", name);
    return pod;
}

/* A pod of another owner has a replica's name. */
const char *scene_taken_name(void)
{
    struct fake f;
    fake_init(&f, 1);
    json_t *stranger = make_stranger("case-worker-1");
    doc_set_int(stranger, "due", 600000);
    fake_put(&f, "pods", stranger);
    fake_start(&f, 0);
    fake_create_job(&f, chaos_make_job(0, 2, "Never", "{}"));
    chaos_settle(&f, f.now_ms + 300000);
    bool told = count_events(&f, "FailedCreatePod") == 1 && f.sent < 100; /* tries get rarer */
    const char *uid = doc_text(fake_get(&f, "pods", "case-worker-1"), "metadata.uid", "");
    bool there = strcmp(uid, "theirs") == 0;
    chaos_settle(&f, HORIZON_MS); /* its owner does not exist: it is collected in the end */
    return close_scene(&f, !told                           ? "is not told once"
                           : !there                        ? "the stranger's pod is gone"
                           : !fake_job_is(&f, "Succeeded") ? "does not succeed"
                                                           : NULL);
}

/* A pod that must be deleted is gone already, and a pod of another owner has its name. */
const char *scene_name_passed_on(void)
{
    struct fake f;
    open_scene(&f, chaos_make_job(0, 2, "OnFailure", "{}"));
    chaos_settle(&f, f.now_ms);
    hold_watch(&f, "pods", 5000);
    fake_delete(&f, "pods", "case-worker-1");
    fake_put(&f, "pods", make_stranger("case-worker-1"));
    fake_patch_job(&f, "spec.pytorchReplicaSpecs.Worker.replicas", json_integer(1));
    chaos_settle(&f, f.now_ms + 1000);
    return close_scene(&f, NULL); /* the cluster checks this */
}

/* A former leader sees pods run although their job is over by now, and it does not see that the job
 * is over. */
const char *scene_two_drivers(void)
{
    enum { LATE_MS = 3600000 };
    struct fake f;
    open_scene(&f, chaos_make_job(0, 2, "Never", "{}"));
    int second = 0;
    while (f.watches[second].open) {
        second++;
    }
    fake_start(&f, 1);
    chaos_settle(&f, f.now_ms);
    hold_watch_from(&f, second, "pods", LATE_MS);
    hold_watch_from(&f, second, "pytorchjobs", 2 * LATE_MS);
    chaos_settle(&f, 3 * LATE_MS);
    return close_scene(&f, !fake_job_is(&f, "Succeeded") ? "does not succeed" : NULL);
}

/* Lets two pods run for a while. */
static void run_pods(struct fake *f)
{
    chaos_settle(f, f->now_ms);
    for (int i = 0; i < 2; i++) {
        json_t *pod = json_deep_copy(fake_get(f, "pods", i ? "case-worker-1" : "case-worker-0"));
        doc_set_text(pod, "status.phase", "Running");
        doc_set_int(pod, "due", f->now_ms + 8 * (int64_t)FAKE_LOST_MS);
        fake_put(f, "pods", pod);
    }
}

/* The pod of a lost node is not replaced too early, and then only once. */
const char *scene_lost_node(void)
{
    struct fake f;
    open_scene(&f, chaos_make_job(0, 2, "Never", "{}"));
    run_pods(&f);
    fake_set_node(&f, FAKE_NODE_SILENT);
    chaos_settle(&f, f.now_ms + FAKE_LOST_MS - 1);
    bool early = f.pods_made != 2;
    chaos_settle(&f, f.now_ms + FAKE_LOST_MS);
    bool replaced = f.pods_made == 3 && count_events(&f, "NodeLost") == 1;
    fake_set_node(&f, FAKE_NODE_ANSWERS);
    chaos_settle(&f, HORIZON_MS);
    return close_scene(&f, early                           ? "is replaced too early"
                           : !replaced                     ? "is not replaced once"
                           : !fake_job_is(&f, "Succeeded") ? "does not succeed"
                                                           : NULL);
}

/* The watch of nodes is late: the node is back, and its pod runs. */
const char *scene_node_back(void)
{
    struct fake f;
    open_scene(&f, chaos_make_job(0, 2, "Never", "{}"));
    run_pods(&f);
    fake_set_node(&f, FAKE_NODE_SILENT);
    chaos_settle(&f, f.now_ms + FAKE_LOST_MS / 2);
    fake_set_node(&f, FAKE_NODE_ANSWERS);
    hold_watch(&f, "nodes", 4 * FAKE_LOST_MS);
    chaos_settle(&f, HORIZON_MS);
    return close_scene(&f, f.pods_made != 2                ? "is replaced"
                           : f.sent > 40                   ? "asks too often"
                           : !fake_job_is(&f, "Succeeded") ? "does not succeed"
                                                           : NULL);
}

/* The autoscaler follows its job; a patch that changes nothing is not sent again and again. */
const char *scene_autoscaler(void)
{
    struct fake f;
    const char *const scalers = "horizontalpodautoscalers";
    json_t *job = chaos_make_job(0, 2, "OnFailure", "{}");
    doc_set(job, "spec.elasticPolicy", parse("{'metrics': [{'value': '0.5'}]}"));
    open_scene(&f, job);
    chaos_settle(&f, f.now_ms);
    bool made = fake_get(&f, scalers, "case");
    fake_patch_job(&f, "spec.elasticPolicy.maxReplicas", json_integer(5));
    chaos_settle(&f, f.now_ms + 5);
    bool follows = doc_int(fake_get(&f, scalers, "case"), "spec.maxReplicas", 0) == 5;
    size_t sent = f.sent;
    chaos_settle(&f, f.now_ms + 5);
    bool rests = f.sent == sent;
    fake_patch_job(&f, "spec.runPolicy.suspend", json_true());
    chaos_settle(&f, f.now_ms + 20000);
    return close_scene(&f, !made                           ? "gets no autoscaler"
                           : !follows                      ? "its autoscaler stays as it was"
                           : !rests                        ? "goes on writing it"
                           : fake_get(&f, scalers, "case") ? "keeps it while suspended"
                                                           : NULL);
}

/* No pod is made before Volcano admits the PodGroup, which is deleted when the job ends. */
const char *scene_gang(void)
{
    struct fake f;
    fake_init(&f, 1);
    f.gang = (struct control_gang){CONTROL_GANG_VOLCANO, "volcano"};
    fake_start(&f, 0);
    fake_create_job(&f, chaos_make_job(1, 1, "Never", "{}"));
    chaos_settle(&f, f.now_ms + 60000);
    json_t *group = json_deep_copy(fake_get(&f, "podgroups", "case"));
    bool waits = group && f.pods_made == 0 && f.sent < 5;
    doc_set_text(group, "status.phase", "Inqueue");
    fake_put(&f, "podgroups", group);
    chaos_settle(&f, HORIZON_MS);
    return close_scene(&f, !waits                              ? "does not wait for its PodGroup"
                           : !fake_job_is(&f, "Succeeded")     ? "does not succeed"
                           : f.pods_made != 2                  ? "makes other pods"
                           : fake_get(&f, "podgroups", "case") ? "keeps its PodGroup"
                                                               : NULL);
}

const char *scene_unreadable(void)
{
    struct fake f;
    json_t *job = chaos_make_job(0, 1, "Never", "{}");
    json_t *specs = json_incref(doc_at(job, "spec.pytorchReplicaSpecs"));
    doc_set(job, "spec.pytorchReplicaSpecs", json_string("broken"));
    open_scene(&f, job);
    chaos_settle(&f, f.now_ms + 3600000);
    bool once =
        fake_job_is(&f, "Stalled") && count_events(&f, "PyTorchJobInvalid") == 1 && f.sent <= 2;
    fake_patch_job(&f, "spec.pytorchReplicaSpecs", specs);
    chaos_settle(&f, HORIZON_MS);
    return close_scene(&f, !once                           ? "is not said once"
                           : fake_job_is(&f, "Stalled")    ? "stays stalled"
                           : !fake_job_is(&f, "Succeeded") ? "does not succeed"
                                                           : NULL);
}
