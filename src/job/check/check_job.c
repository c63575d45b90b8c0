/* Checks what the schema cannot say about a PyTorchJob: fields that must agree with each other.
 * Upstream's webhook (training-operator v1.9.4, pkg/webhooks/pytorch) lets most of these mistakes
 * pass. */
#include "base/doc.h"
#include "base/shell_words.h"
#include "base/text.h"
#include "base/time/duration.h"
#include "job/annotations.h"
#include "job/check/context.h"
#include "job/job.h"

#include <stdio.h>
#include <string.h>

enum { POD_NAME_BYTES_MAX = 63, LAST_MAX = 99999 };

static int64_t count_of(const json_t *specs, const char *role)
{
    return doc_int(json_object_get(specs, role), "replicas", 1);
}

/* --- metadata --- */

static bool has_elasticdl_names(const json_t *job)
{
    const json_t *notes = doc_at(job, "metadata.annotations");
    const char *names = json_string_value(json_object_get(notes, JOB_ANNOTATION_POD_NAMES));
    return names && strcmp(names, "ElasticDL") == 0;
}

/* Pods and their services are named <job>-<role>-<index>, and a service's name is a DNS label. */
size_t check_job_name_max(const json_t *job, char *ret_suffix, size_t suffix_bytes)
{
    const json_t *specs = doc_at(job, "spec.pytorchReplicaSpecs");
    bool workers = json_object_get(specs, "Worker") != NULL;
    long long last = workers ? count_of(specs, "Worker") - 1 : 0;
    last = last < 0 ? 0 : last > LAST_MAX ? LAST_MAX : last;
    bool elasticdl = has_elasticdl_names(job);
    if (elasticdl && last < 10) { /* the longest is elasticdl-<job>-master */
        snprintf(ret_suffix, suffix_bytes, "elasticdl--master");
    } else {
        snprintf(ret_suffix, suffix_bytes, "-%s%s-%lld", elasticdl ? "edljob-" : "",
                 workers ? "worker" : "master", last);
    }
    return POD_NAME_BYTES_MAX - strlen(ret_suffix);
}

static void check_words(struct check *c, const json_t *object, const char *annotation)
{
    const char *text =
        json_string_value(json_object_get(doc_at(object, "metadata.annotations"), annotation));
    struct muster_err err = MUSTER_ERR_INIT;
    char **words = NULL;
    if (!text) {
        return;
    }
    size_t mark = check_enter(c, "metadata");
    check_enter(c, "annotations");
    if (shell_split(text, &words, &err) != 0) {
        check_say(c, JOB_ERROR, annotation, NULL, "%s", err.text);
    } else if (!words[0]) {
        check_say(c, JOB_ERROR, annotation, NULL, "must name a command");
    }
    check_leave(c, mark);
    shell_free(words);
}

/* `other` is NULL if only one value is allowed. */
static void check_annotation_choice(struct check *c, const json_t *object, const char *annotation,
                                    const char *one, const char *other, const char *hint)
{
    const char *text =
        json_string_value(json_object_get(doc_at(object, "metadata.annotations"), annotation));
    if (text && strcmp(text, one) != 0 && (!other || strcmp(text, other) != 0)) {
        size_t mark = check_enter(c, "metadata");
        check_enter(c, "annotations");
        check_say(c, JOB_ERROR, annotation, hint, "must be %s%s%s", one, other ? " or " : "",
                  other ? other : "");
        check_leave(c, mark);
    }
}

/* Refuses restart policies that restart a rank by itself: they leave nothing to restart
 * together. */
static void check_restart_policies(struct check *c, const json_t *specs)
{
    const char *role;
    json_t *replica;
    json_object_foreach ((json_t *)(uintptr_t)specs, role, replica) {
        const char *policy = doc_text(replica, "restartPolicy", "OnFailure");
        if (strcmp(policy, "OnFailure") == 0 || strcmp(policy, "Always") == 0) {
            size_t mark = check_enter(c, "spec");
            check_enter(c, "pytorchReplicaSpecs");
            check_enter(c, role);
            check_say(c, JOB_ERROR, "restartPolicy", "restartPolicy: Never",
                      "with annotation " JOB_ANNOTATION_MAX_RESTARTS
                      " all ranks are restarted together; %s restarts each alone",
                      policy);
            check_leave(c, mark);
        }
    }
}

/* Whether the annotation is present, and is a number. */
static bool check_number(struct check *c, const json_t *object, const char *annotation)
{
    const json_t *notes = doc_at(object, "metadata.annotations");
    const char *text = json_string_value(json_object_get(notes, annotation));
    if (text && job_annotated_number(object, annotation) == JOB_UNSET) {
        size_t mark = check_enter(c, "metadata");
        check_enter(c, "annotations");
        check_say(c, JOB_ERROR, annotation, NULL, "must be a number from 0 to 99999");
        check_leave(c, mark);
        return false;
    }
    return text != NULL;
}

static void check_max_restarts(struct check *c, const json_t *object)
{
    if (check_number(c, object, JOB_ANNOTATION_MAX_RESTARTS)) {
        check_restart_policies(c, doc_at(object, "spec.pytorchReplicaSpecs"));
    }
}

static void check_duration(struct check *c, const json_t *object, const char *annotation)
{
    const char *text =
        json_string_value(json_object_get(doc_at(object, "metadata.annotations"), annotation));
    int64_t ms;
    if (text && duration_read(text, &ms) < 0) {
        size_t mark = check_enter(c, "metadata");
        check_enter(c, "annotations");
        check_say(c, JOB_ERROR, annotation, NULL, "must be a duration such as 60s or 10m");
        check_leave(c, mark);
    }
}

/* --- replicas --- */

/* Negative numbers were reported before. */
static void check_counts(struct check *c, const json_t *specs)
{
    const json_t *master = json_object_get(specs, "Master");
    const json_t *worker = json_object_get(specs, "Worker");
    if (json_object_size(specs) == 0) {
        check_say(c, JOB_ERROR, NULL, NULL, "must have a Master, Workers or both");
    }
    if (json_is_object(master) && count_of(specs, "Master") >= 0 &&
        count_of(specs, "Master") != 1) {
        size_t mark = check_enter(c, "Master");
        check_say(c, JOB_ERROR, "replicas", "set Worker.replicas for more ranks", "must be 1");
        check_leave(c, mark);
    } else if (json_is_object(master) && !doc_at(master, "replicas") && !c->problems->cluster) {
        check_say(
            c, JOB_WARNING, "Master", "add replicas: 1",
            "has no replicas; it is 1 here, but the training-operator of a cluster refuses the job");
    }
    if (json_is_object(worker) && count_of(specs, "Worker") == 0) {
        size_t mark = check_enter(c, "Worker");
        check_say(c, JOB_ERROR, "replicas", "leave Worker out for a job of one rank",
                  "must be at least 1");
        check_leave(c, mark);
    }
}

static void check_replicas(struct check *c, const json_t *specs)
{
    size_t top = check_enter(c, "spec");
    check_enter(c, "pytorchReplicaSpecs");
    check_counts(c, specs);
    for (enum job_role role = 0; role < JOB_ROLE_COUNT; role++) {
        const json_t *replica = json_object_get(specs, job_role_name(role));
        size_t mark = check_enter(c, job_role_name(role));
        if (json_is_object(replica)) {
            check_pod_template(c, replica);
        }
        check_leave(c, mark);
    }
    check_leave(c, top);
}

/* --- policies --- */

static void check_bounds(struct check *c, const json_t *policy, int64_t workers)
{
    int64_t min = doc_int(policy, "minReplicas", doc_int(policy, "maxReplicas", workers));
    int64_t max = doc_int(policy, "maxReplicas", min);
    if (min > max) {
        check_say(c, JOB_ERROR, "minReplicas", "swap the two values",
                  "%lld is more than maxReplicas, %lld", (long long)min, (long long)max);
    } else if (workers < min || workers > max) {
        check_say(c, JOB_WARNING, NULL, NULL,
                  "Worker.replicas is %lld, outside minReplicas to maxReplicas, %lld to %lld",
                  (long long)workers, (long long)min, (long long)max);
    }
}

static bool known_backend(const char *name)
{
    static const char *const names[] = {"c10d", "etcd", "etcd-v2", "static"};
    return text_is_any_of(name, names, sizeof names / sizeof names[0]);
}

static void check_rendezvous(struct check *c, const json_t *policy)
{
    const char *backend = doc_text(policy, "rdzvBackend", "c10d");
    const json_t *conf = doc_at(policy, "rdzvConf");
    if (!known_backend(backend)) {
        check_say(c, JOB_WARNING, "rdzvBackend", "use c10d, which needs no server",
                  "unknown backend; torchrun supports c10d, etcd, etcd-v2 and static");
    } else if (strncmp(backend, "etcd", 4) == 0 && !doc_at(policy, "rdzvHost")) {
        check_say(c, JOB_WARNING, "rdzvBackend", "set rdzvHost, or use c10d",
                  "%s needs a server, and rdzvHost is not set", backend);
    }
    if (json_is_array(conf) && json_array_size(conf) == 0 && !c->problems->cluster) {
        check_say(c, JOB_WARNING, "rdzvConf", "remove it",
                  "is an empty list, on which the training-operator of a cluster crashes");
    }
}

static void check_elastic(struct check *c, const json_t *spec)
{
    const json_t *policy = doc_at(spec, "elasticPolicy");
    const json_t *specs = doc_at(spec, "pytorchReplicaSpecs");
    if (!json_is_object(policy)) {
        return;
    }
    size_t mark = check_enter(c, "spec");
    check_enter(c, "elasticPolicy");
    if (json_is_object(specs) && !json_object_get(specs, "Worker")) {
        check_say(c, JOB_ERROR, NULL, "add spec.pytorchReplicaSpecs.Worker",
                  "needs Workers, and the job has none");
    } else {
        check_bounds(c, policy, count_of(specs, "Worker"));
    }
    check_rendezvous(c, policy);
    if (doc_at(policy, "nProcPerNode")) {
        bool both = doc_at(spec, "nprocPerNode") != NULL;
        check_say(c, both ? JOB_ERROR : JOB_WARNING, "nProcPerNode", "use spec.nprocPerNode only",
                  both ? "must not be used with spec.nprocPerNode" : "is deprecated");
    }
    check_leave(c, mark);
}

static void check_run_policy(struct check *c, const json_t *spec)
{
    const json_t *policy = doc_at(spec, "runPolicy");
    size_t mark = check_enter(c, "spec");
    check_enter(c, "runPolicy");
    if (strcmp(doc_text(policy, "managedBy", ""), "kueue.x-k8s.io/multikueue") == 0) {
        check_say(c, JOB_WARNING, "managedBy", "remove it to run the job here",
                  "assigns this job to another controller; muster does not start it");
    }
    check_leave(c, mark);
}

static void check_annotations(struct check *c, const json_t *annotations)
{
    static const char *const known[] = {JOB_NOTES};
    const char *key;
    json_t *value;
    size_t mark = check_enter(c, "metadata");
    check_enter(c, "annotations");
    json_object_foreach ((json_t *)annotations, key, value) {
        bool ours = strncmp(key, JOB_ANNOTATION_PREFIX, strlen(JOB_ANNOTATION_PREFIX)) == 0;
        if (ours && !text_is_any_of(key, known, sizeof known / sizeof known[0])) {
            check_say(c, JOB_WARNING, key, "see docs/annotations.md", "unknown annotation");
        }
    }
    check_leave(c, mark);
}

static const char *annotation_of(const json_t *annotations, const char *name)
{
    const char *text = json_string_value(json_object_get(annotations, name));
    return text ? text : "";
}

/* Warns of the annotation for ending a job. It is in a job that was exported after it had been
 * ended; only lint knows that this file is not meant to end a job. */
static void check_stop(struct check *c, const json_t *annotations)
{
    if (c->problems->advice && json_object_get(annotations, JOB_ANNOTATION_STOP)) {
        size_t mark = check_enter(c, "metadata");
        size_t inner = check_enter(c, "annotations");
        check_say(c, JOB_WARNING, JOB_ANNOTATION_STOP, "remove it",
                  "it would end the job at once: muster refuses the job");
        check_leave(c, inner);
        check_leave(c, mark);
    }
}

void check_job_spec(struct check *c, const json_t *object)
{
    const json_t *spec = doc_at(object, "spec");
    const json_t *specs = doc_at(spec, "pytorchReplicaSpecs");
    const json_t *notes = doc_at(object, "metadata.annotations");
    c->entrypoint_known = json_object_get(notes, JOB_ANNOTATION_COMMAND) ||
                          json_object_get(notes, JOB_ANNOTATION_IMAGES) ||
                          strcmp(annotation_of(notes, JOB_ANNOTATION_RUNTIME), "podman") == 0;
    c->coordinated = strcmp(annotation_of(notes, JOB_ANNOTATION_COORDINATOR), "Master") == 0;
    check_annotations(c, notes);
    check_stop(c, notes);
    check_words(c, object, JOB_ANNOTATION_COMMAND);
    check_annotation_choice(c, object, JOB_ANNOTATION_NETWORK, "host", "private", NULL);
    check_annotation_choice(c, object, JOB_ANNOTATION_RUNTIME, "process", "podman", NULL);
    check_annotation_choice(c, object, JOB_ANNOTATION_GPU, "share", "none", NULL);
    check_annotation_choice(c, object, JOB_ANNOTATION_BACKEND, "muster", NULL, NULL);
    check_annotation_choice(
        c, object, JOB_ANNOTATION_SUCCESS_POLICY, "AllRanks", "Default",
        "AllRanks: every rank must succeed; Default: the Master decides, as on a cluster");
    check_annotation_choice(c, object, JOB_ANNOTATION_POD_NAMES, "ElasticDL", NULL, NULL);
    check_annotation_choice(c, object, JOB_ANNOTATION_COORDINATOR, "Master", NULL, NULL);
    (void)check_number(c, object, JOB_ANNOTATION_HIGH_WORKERS);
    check_max_restarts(c, object);
    check_duration(c, object, JOB_ANNOTATION_STALL);
    if (!json_is_object(spec)) {
        return;
    }
    check_run_policy(c, spec);
    check_elastic(c, spec);
    if (json_is_object(specs)) {
        check_replicas(c, specs);
    }
}
