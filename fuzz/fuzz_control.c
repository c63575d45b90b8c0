/* Hostile views for the control core, and hostile statuses and events for the pod machine.
 *
 * An input that starts with '{' is a view in JSON ({"now", "job", "pods", "services", "claims"}):
 * it is reconciled, and no invariant may be violated. Any other input is a list of events, four
 * bytes each, for a pod that is sometimes rebuilt from its own status. */
#include "base/buf.h"
#include "base/doc.h"
#include "control/control.h"
#include "invariant.h"
#include "pod/pod.h"
#include "pod/resolve_env.h"

#include <string.h>

enum { TIME_MAX_S = 2000000000 };

static json_t *array_at(const json_t *doc, const char *path)
{
    json_t *value = doc_at(doc, path);
    return json_is_array(value) ? value : NULL;
}

static void tell_view(const struct control_view *view)
{
    (void)fprintf(stderr, "now %lld ms; job, pods, services:\n", (long long)view->now_unix_ms);
    (void)json_dumpf(view->job, stderr, JSON_COMPACT);
    (void)json_dumpf(view->pods, stderr, JSON_COMPACT);
    (void)json_dumpf(view->services, stderr, JSON_COMPACT);
    (void)fprintf(stderr, "\n");
}

static void check_effects(const struct control_view *view, struct control_effects *fx)
{
    struct buf trace;
    buf_init(&trace, 1 << 22);
    control_trace(fx, &trace);
    const char *broken = control_check_invariants(view, fx);
    if (broken) {
        tell_view(view);
    }
    invariant(broken == NULL, broken ? broken : "", buf_str(&trace));
    for (size_t i = 0; i < fx->count && i < 16; i++) {
        struct control_effects refusal;
        invariant(control_refused(&fx->list[i], "no", &refusal, NULL) == 0, "a refusal is told",
                  "");
        control_effects_done(&refusal);
    }
    buf_done(&trace);
}

/* Checks that the same view gives the same effects: nothing is kept between steps. */
static void check_repeatable(const struct control_view *view, const struct control_effects *fx)
{
    struct control_effects again;
    struct buf first, second;
    buf_init(&first, 1 << 22);
    buf_init(&second, 1 << 22);
    invariant(control_reconcile(view, &again, NULL) == 0, "what worked works again", "");
    control_trace(fx, &first);
    control_trace(&again, &second);
    invariant(strcmp(buf_str(&first), buf_str(&second)) == 0, "the same again", buf_str(&second));
    buf_done(&first);
    buf_done(&second);
    control_effects_done(&again);
}

static void tell_failure(const struct control_view *view)
{
    struct control_failure failure = control_first_failure(view->job, view->pods);
    struct buf text;
    buf_init(&text, 1 << 16);
    if (failure.found) {
        control_failure_text(&failure, &text);
        invariant(text.used > 0 || buf_failed(&text), "a failure has a text", "");
    }
    buf_done(&text);
}

static void try_pod(const json_t *object)
{
    const struct pod_place place = {"fuzz", "127.0.0.1", "127.0.0.1"};
    struct pod *pod = pod_new((json_t *)object, &place, NULL);
    const struct pod_event adopted = {.kind = POD_ADOPTED, .now_unix_ms = 1000};
    struct pod_effects fx;
    if (!pod) {
        return;
    }
    pod_step(pod, &adopted, &fx);
    const char *broken = pod_check_invariants(pod, &fx);
    invariant(broken == NULL, broken ? broken : "", "");
    json_t *status = pod_status(pod);
    invariant(status != NULL, "a status can be made", "");
    json_decref(status);
    pod_free(pod);
}

static void try_environment(const json_t *object, const json_t *sources)
{
    const struct pod_sources all = {.config_maps = doc_at(sources, "configMaps"),
                                    .secrets = doc_at(sources, "secrets"),
                                    .node_cpu_milli = 4000,
                                    .node_memory_bytes = 1LL << 33};
    size_t index;
    json_t *container;
    json_array_foreach (array_at(object, "spec.containers"), index, container) {
        json_t *env = NULL;
        json_t *words = NULL;
        if (pod_environment(object, container, &all, &env, NULL) == 0 &&
            pod_command(container, NULL, env, &words, NULL) == 0) {
            invariant(json_array_size(words) > 0, "a command has a word", "");
        }
        json_decref(env);
        json_decref(words);
    }
}

static void try_view(const json_t *doc)
{
    int64_t now_s = doc_int(doc, "now", 0);
    struct control_view view = {
        .job = doc_at(doc, "job"),
        .pods = array_at(doc, "pods"),
        .services = array_at(doc, "services"),
        .claims = array_at(doc, "claims"),
        .now_unix_ms = (0 <= now_s && now_s < TIME_MAX_S ? now_s : 0) * 1000,
    };
    struct control_effects fx;
    if (json_is_object(view.job) && control_reconcile(&view, &fx, NULL) == 0) {
        check_effects(&view, &fx);
        check_repeatable(&view, &fx);
        tell_failure(&view);
        control_effects_done(&fx);
    }
    size_t index;
    json_t *pod;
    json_array_foreach (view.pods, index, pod) {
        try_pod(pod);
        try_environment(pod, doc);
    }
}

struct choices {
    const uint8_t *at;
    size_t left;
};

static unsigned draw(struct choices *c, unsigned below)
{
    if (c->left == 0) {
        return 0;
    }
    c->left--;
    return *c->at++ % below;
}

#define PICK(c, list) (list)[draw(c, sizeof(list) / sizeof(list)[0])]

static json_t *draw_replica(struct choices *c)
{
    static const char *const policies[] = {"Always", "OnFailure", "Never", "ExitCode"};
    return json_pack("{s:i, s:s, s:{s:{s:[{s:s, s:s, s:{s:{s:i}}}]}}}", "replicas", (int)draw(c, 4),
                     "restartPolicy", PICK(c, policies), "template", "spec", "containers", "name",
                     "pytorch", "image", "i", "resources", "limits", "nvidia.com/gpu",
                     (int)draw(c, 2));
}

static json_t *draw_conditions(struct choices *c)
{
    static const char *const types[] = {"Created",   "Running",   "Restarting",
                                        "Suspended", "Succeeded", "Failed"};
    json_t *list = json_array();
    for (unsigned i = draw(c, 5); i > 0; i--) {
        json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "type", PICK(c, types), "status",
                                              draw(c, 2) ? "True" : "False", "reason", "Any"));
    }
    return list;
}

static void draw_numbers(struct choices *c, json_t *job)
{
    static const char *const fields[] = {
        "spec.runPolicy.backoffLimit", "spec.runPolicy.activeDeadlineSeconds",
        "spec.runPolicy.ttlSecondsAfterFinished", "spec.elasticPolicy.minReplicas"};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (draw(c, 2)) {
            doc_set_int(job, fields[i], draw(c, 40));
        }
    }
}

static void draw_counters(struct choices *c, json_t *job)
{
    static const char *const slots[] = {"worker-0", "worker-1", "master-0", "other"};
    static const char *const uids[] = {"pod-1", "pod-2", ""};
    if (draw(c, 2)) {
        doc_set(job, "status.counters",
                json_pack("{s:i, s:{s:{s:s, s:s, s:i, s:i, s:i, s:b}}}", "failures",
                          (int)draw(c, 9), "replicas", PICK(c, slots), "uid", PICK(c, uids),
                          "version", "3", "failures", (int)draw(c, 3), "remakes", (int)draw(c, 9),
                          "at", (int)draw(c, 9000), "remade", (int)draw(c, 2)));
    }
}

static json_t *draw_job(struct choices *c)
{
    static const char *const clean[] = {"None", "Running", "All"};
    static const char *const notes[] = {"muster.dev/stop", "muster.dev/failures",
                                        "muster.dev/counted", "muster.dev/restarts", "other"};
    static const char *const texts[] = {
        "3", "{\"job\":\"u\",\"pod-1\":1}",
        "{\"worker-0\":{\"uid\":\"pod-1\",\"count\":3,\"at\":5000}}", "{\"job\":\"another\"}", ""};
    json_t *job = json_pack("{s:{s:s, s:s, s:{s:s}}, s:{s:{s:s, s:b}, s:{}}, s:{}}", "metadata",
                            "name", "j", "uid", "u", "annotations", PICK(c, notes), PICK(c, texts),
                            "spec", "runPolicy", "cleanPodPolicy", PICK(c, clean), "suspend",
                            (int)draw(c, 2), "pytorchReplicaSpecs", "status");
    json_t *specs = doc_at(job, "spec.pytorchReplicaSpecs");
    unsigned roles = draw(c, 3);
    if (roles != 1) {
        json_object_set_new(specs, "Master", draw_replica(c));
    }
    if (roles != 2) {
        json_object_set_new(specs, "Worker", draw_replica(c));
    }
    draw_numbers(c, job);
    doc_set(job, "status.conditions", draw_conditions(c));
    draw_counters(c, job);
    if (draw(c, 2)) {
        doc_set_text(job, "status.startTime", "1970-01-01T00:00:10Z");
    }
    return job;
}

static json_t *draw_pod(struct choices *c, unsigned number)
{
    static const char *const names[] = {"j-master-0", "j-worker-0", "j-worker-1",
                                        "j-worker-2", "j-worker-7", "j-other"};
    static const char *const phases[] = {"Pending", "Running", "Succeeded", "Failed"};
    static const char *const states[] = {"running", "waiting", "terminated"};
    static const int codes[] = {0, 1, 127, 128, 137, 999};
    char uid[16];
    snprintf(uid, sizeof uid, "pod-%u", number);
    json_t *pod = json_pack(
        "{s:{s:s, s:s, s:[{s:b, s:s}]}, s:{s:s, s:[{s:s, s:i, s:{s:{s:i, s:s, s:s}}}]}}",
        "metadata", "name", PICK(c, names), "uid", uid, "ownerReferences", "controller", 1, "uid",
        draw(c, 8) ? "u" : "another", "status", "phase", PICK(c, phases), "containerStatuses",
        "name", "pytorch", "restartCount", (int)draw(c, 6), "state", PICK(c, states), "exitCode",
        PICK(c, codes), "reason", draw(c, 2) ? "CrashLoopBackOff" : "OOMKilled", "finishedAt",
        "1970-01-01T00:00:20Z");
    if (draw(c, 4) == 1) {
        doc_set_text(pod, "metadata.deletionTimestamp", "1970-01-01T00:00:20Z");
    }
    return pod;
}

static void try_choices(const uint8_t *data, size_t size)
{
    struct choices c = {data, size};
    json_t *doc = json_pack("{s:i, s:o, s:[], s:[]}", "now", (int)draw(&c, 100), "job",
                            draw_job(&c), "pods", "services");
    for (unsigned i = 0; i < 6 && c.left > 0; i++) {
        json_array_append_new(json_object_get(doc, draw(&c, 3) ? "pods" : "services"),
                              draw_pod(&c, i));
    }
    try_view(doc);
    json_decref(doc);
}

/* Builds the machine as a new agent would, from its status alone. */
static struct pod *rebuild(struct pod *pod, json_t *object)
{
    const struct pod_place place = {"fuzz", "127.0.0.1", "127.0.0.1"};
    if (pod) {
        json_object_set_new(object, "status", pod_status(pod));
        pod_free(pod);
    }
    struct pod *made = pod_new(object, &place, NULL);
    invariant(made != NULL, "a pod can be rebuilt from its status", "");
    return made;
}

static void try_events(const uint8_t *data, size_t size)
{
    static const char spec[] = "{\"spec\":{\"restartPolicy\":\"OnFailure\",\"initContainers\":[{"
                               "\"name\":\"i\"}],\"containers\":[{\"name\":\"a\"},{\"name\":\"b\"}"
                               "],\"activeDeadlineSeconds\":90}}";
    json_t *object = NULL;
    invariant(doc_parse(spec, strlen(spec), &object, NULL) == 0, "the pod can be read", "");
    if (size > 0 && data[0] % 3) {
        doc_set_text(object, "spec.restartPolicy", data[0] % 3 == 1 ? "Never" : "Always");
    }
    struct pod *pod = rebuild(NULL, object);
    int64_t now = 1000;
    for (size_t i = 1; i + 4 <= size; i += 4) {
        struct pod_effects fx;
        struct pod_event event = {.kind = data[i] % (POD_LOST + 1),
                                  .container = data[i + 1] % 3,
                                  .attempt = data[i + 2] % 5,
                                  .code = data[i + 3] % 3 ? data[i + 3] : 0,
                                  .oom = data[i + 3] == 137,
                                  .grace_s = (int8_t)data[i + 2],
                                  .reason = "R",
                                  .message = "m"};
        now += (int64_t)(data[i + 1] >> 2) * 100;
        event.now_unix_ms = now;
        pod_step(pod, &event, &fx);
        const char *broken = pod_check_invariants(pod, &fx);
        invariant(broken == NULL, broken ? broken : "", "");
        if (data[i + 2] >= 250) {
            pod = rebuild(pod, object);
        }
    }
    pod_free(pod);
    json_decref(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *doc = NULL;
    if (size > 0 && data[0] == '{') {
        if (doc_parse((const char *)data, size, &doc, NULL) == 0) {
            try_view(doc);
            json_decref(doc);
        }
        return 0;
    }
    if (size > 0 && data[0] == 'v') {
        try_choices(data + 1, size - 1);
    } else {
        try_events(data, size);
    }
    return 0;
}
