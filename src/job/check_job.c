/* What the schema cannot say about a PyTorchJob: fields that must fit each other. Upstream's
 * webhook (training-operator v1.9.4, pkg/webhooks/pytorch) lets most of this pass. */
#include "base/doc.h"
#include "base/words.h"
#include "job/annotations.h"
#include "job/context.h"
#include "job/job.h"

#include <stdio.h>
#include <string.h>

enum { POD_NAME_BYTES_MAX = 63 };

static int64_t count_of(const json_t *specs, const char *role)
{
    return doc_int(json_object_get(specs, role), "replicas", 1);
}

/* --- metadata --- */

/* Pods and their services are called <job>-<role>-<index>, and a service's name is a DNS label. */
static void check_name(struct check *c, const json_t *object)
{
    const json_t *specs = doc_at(object, "spec.pytorchReplicaSpecs");
    const char *name = doc_text(object, "metadata.name", NULL);
    const char *role = json_object_get(specs, "Worker") ? "worker" : "master";
    if (!name) {
        return;
    }
    long long last = json_object_get(specs, "Worker") ? count_of(specs, "Worker") - 1 : 0;
    int suffix = snprintf(NULL, 0, "-%s-%lld", role, last > 0 ? last : 0);
    size_t room = POD_NAME_BYTES_MAX - (size_t)suffix;
    if (strlen(name) <= POD_NAME_BYTES_MAX && strlen(name) > room) {
        size_t mark = check_enter(c, "metadata");
        check_say(c, JOB_ERROR, "name", NULL,
                  "has %zu characters; with \"-%s-%lld\" behind it a pod's name may have %d",
                  strlen(name), role, last > 0 ? last : 0, POD_NAME_BYTES_MAX);
        check_leave(c, mark);
    }
}

static void check_words(struct check *c, const json_t *object, const char *annotation)
{
    const char *text =
        json_string_value(json_object_get(doc_at(object, "metadata.annotations"), annotation));
    struct muster_err err = {0};
    char **words = NULL;
    if (!text) {
        return;
    }
    size_t mark = check_enter(c, "metadata");
    check_enter(c, "annotations");
    if (words_split(text, &words, &err) != 0) {
        check_say(c, JOB_ERROR, annotation, NULL, "%s", err.text);
    } else if (!words[0]) {
        check_say(c, JOB_ERROR, annotation, NULL, "must name a command");
    }
    check_leave(c, mark);
    words_free(words);
}

/* other: NULL when there is only one. */
static void check_choice(struct check *c, const json_t *object, const char *annotation,
                         const char *one, const char *other)
{
    const char *text =
        json_string_value(json_object_get(doc_at(object, "metadata.annotations"), annotation));
    if (text && strcmp(text, one) != 0 && (!other || strcmp(text, other) != 0)) {
        size_t mark = check_enter(c, "metadata");
        check_enter(c, "annotations");
        check_say(c, JOB_ERROR, annotation, NULL, "must be %s%s%s", one, other ? " or " : "",
                  other ? other : "");
        check_leave(c, mark);
    }
}

/* --- replicas --- */

/* A negative number was said already. */
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
        check_say(c, JOB_ERROR, "replicas", "more ranks are Workers", "must be 1");
        check_leave(c, mark);
    } else if (json_is_object(master) && !doc_at(master, "replicas")) {
        check_say(c, JOB_WARNING, "Master", "add replicas: 1",
                  "has no replicas; it is 1 here, but upstream's operator refuses the job");
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
        check_say(c, JOB_ERROR, "minReplicas", "swap the two?",
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
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void check_rendezvous(struct check *c, const json_t *policy)
{
    const char *backend = doc_text(policy, "rdzvBackend", "c10d");
    const json_t *conf = doc_at(policy, "rdzvConf");
    if (!known_backend(backend)) {
        check_say(c, JOB_WARNING, "rdzvBackend", "c10d needs nothing else",
                  "torchrun knows c10d, etcd, etcd-v2 and static");
    } else if (strncmp(backend, "etcd", 4) == 0 && !doc_at(policy, "rdzvHost")) {
        check_say(c, JOB_WARNING, "rdzvBackend", "set rdzvHost, or use c10d",
                  "%s needs a server of its own, and no rdzvHost names one", backend);
    }
    if (json_is_array(conf) && json_array_size(conf) == 0) {
        check_say(c, JOB_WARNING, "rdzvConf", "remove it",
                  "is an empty list, on which upstream's operator panics");
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
                  "needs Workers, and there are none");
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
                  "leaves this job to another manager; muster does not start it");
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
        bool ours = strncmp(key, JOB_NOTE_PREFIX, strlen(JOB_NOTE_PREFIX)) == 0;
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
            ours = ours && strcmp(key, known[i]) != 0;
        }
        if (ours) {
            check_say(c, JOB_WARNING, key, "docs/annotations.md has them all",
                      "muster knows no such annotation");
        }
    }
    check_leave(c, mark);
}

static const char *annotation_of(const json_t *annotations, const char *name)
{
    const char *text = json_string_value(json_object_get(annotations, name));
    return text ? text : "";
}

void check_job_spec(struct check *c, const json_t *object)
{
    const json_t *spec = doc_at(object, "spec");
    const json_t *specs = doc_at(spec, "pytorchReplicaSpecs");
    const json_t *notes = doc_at(object, "metadata.annotations");
    c->entrypoint_known = json_object_get(notes, JOB_NOTE_COMMAND) ||
                          json_object_get(notes, JOB_NOTE_IMAGES) ||
                          strcmp(annotation_of(notes, JOB_NOTE_RUNTIME), "podman") == 0;
    check_annotations(c, notes);
    check_words(c, object, JOB_NOTE_COMMAND);
    check_choice(c, object, JOB_NOTE_NETWORK, "host", "private");
    check_choice(c, object, JOB_NOTE_RUNTIME, "process", "podman");
    check_choice(c, object, JOB_NOTE_GPU, "share", "none");
    check_choice(c, object, JOB_NOTE_BACKEND, "muster", NULL);
    if (!json_is_object(spec)) {
        return;
    }
    check_name(c, object);
    check_run_policy(c, spec);
    check_elastic(c, spec);
    if (json_is_object(specs)) {
        check_replicas(c, specs);
    }
}
