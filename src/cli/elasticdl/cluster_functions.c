/* See cluster_functions.h. */
#include "cli/elasticdl/cluster_functions.h"

#include "base/build.h"
#include "base/doc.h"
#include "base/err.h"
#include "job/job.h"

#include <stdio.h>
#include <string.h>

enum { ROLES = 2, NAME_BYTES = 80, FIELD_BYTES = 128 };

static const struct role {
    const char *replica; /* its path in the job */
    const char *type;
    const char *pod_before, *pod_behind; /* texts around the job's name */
    const char *service_behind;
} roles[ROLES] = {
    {"spec.pytorchReplicaSpecs.Master", "master", "elasticdl-", "-master", "-master-0"},
    {"spec.pytorchReplicaSpecs.Worker", "worker", "", "-edljob-worker-0", "-worker-0"},
};

/* --- what they are given --- */

/* The labels that ElasticDL gives to all pods of the role. */
static json_t *make_labels(struct build *b, const struct role *role, const char *job)
{
    return build_value(b, json_pack("{s:s, s:s, s:s}", "app", "elasticdl", "elasticdl-job-name",
                                    job, "elasticdl-replica-type", role->type));
}

/* Starts an object. Its map of annotations exists but is empty, so that a function may add some. */
static json_t *start_object(struct build *b, const json_t *job, const struct role *role,
                            const char *kind, const char *name)
{
    json_t *object = build_value(b, json_object());
    build_text(b, object, "apiVersion", "v1");
    build_text(b, object, "kind", kind);
    json_t *metadata = build_object_at(b, object, "metadata");
    build_text(b, metadata, "name", name);
    build_text(b, metadata, "namespace", doc_text(job, "metadata.namespace", "default"));
    build_set(b, metadata, "labels", make_labels(b, role, doc_text(job, "metadata.name", "")));
    build_object_at(b, metadata, "annotations");
    return object;
}

static json_t *make_pod(struct build *b, const json_t *job, const struct role *role)
{
    char name[NAME_BYTES];
    const json_t *replica = doc_at(job, role->replica);
    snprintf(name, sizeof name, "%s%s%s", role->pod_before, doc_text(job, "metadata.name", ""),
             role->pod_behind);
    json_t *pod = start_object(b, job, role, "Pod", name);
    json_t *spec = build_value(b, json_deep_copy(doc_at(replica, "template.spec")));
    const char *policy = doc_text(replica, "restartPolicy", "Never");
    build_text(b, spec, "restartPolicy", strcmp(policy, "ExitCode") == 0 ? "Never" : policy);
    build_set(b, pod, "spec", spec);
    return pod;
}

static json_t *make_service(struct build *b, const json_t *job, const struct role *role)
{
    char name[NAME_BYTES];
    const char *job_name = doc_text(job, "metadata.name", "");
    snprintf(name, sizeof name, "%s%s", job_name, role->service_behind);
    json_t *service = start_object(b, job, role, "Service", name);
    json_t *spec = build_object_at(b, service, "spec");
    build_text(b, spec, "type", "ClusterIP");
    build_text(b, spec, "clusterIP", "None");
    build_set(b, spec, "selector", make_labels(b, role, job_name));
    build_add(b, build_array_at(b, spec, "ports"),
              json_pack("{s:i, s:i}", "port", JOB_DEFAULT_PORT, "targetPort", JOB_DEFAULT_PORT));
    return service;
}

int cluster_functions_ask(const json_t *job, json_t **ret, struct muster_err *err)
{
    struct build b = {0};
    json_t *asked = build_value(&b, json_object());
    json_t *pods = build_array_at(&b, asked, "pods");
    json_t *services = build_array_at(&b, asked, "services");
    for (size_t i = 0; i < ROLES; i++) {
        build_add(&b, pods, make_pod(&b, job, &roles[i]));
        build_add(&b, services, make_service(&b, job, &roles[i]));
    }
    *ret = build_end(&b, asked);
    return *ret ? 0 : err_no_memory(err);
}

/* --- what they return --- */

static bool is_empty(const json_t *value)
{
    return !value || (json_is_object(value) && json_object_size(value) == 0) ||
           (json_is_array(value) && json_array_size(value) == 0);
}

static bool is_same(const json_t *a, const json_t *b)
{
    return (is_empty(a) && is_empty(b)) || json_equal(a, b);
}

/* Finds the first field of a part that has changed and is not in `may_change`; "" if there is none.
 */
static void find_change(const json_t *given, const json_t *returned, const char *part,
                        const char *const *may_change, char ret[FIELD_BYTES])
{
    const json_t *sides[] = {json_object_get(given, part), json_object_get(returned, part)};
    const char *key;
    json_t *value;
    ret[0] = 0;
    for (size_t side = 0; side < 2; side++) {
        json_object_foreach ((json_t *)(uintptr_t)sides[side], key, value) {
            size_t i = 0;
            while (may_change[i] && strcmp(may_change[i], key) != 0) {
                i++;
            }
            if (!may_change[i] && !is_same(value, json_object_get(sides[1 - side], key))) {
                snprintf(ret, FIELD_BYTES, "%s.%s", part, key);
                return;
            }
        }
    }
}

static int check_pod(const json_t *given, const json_t *pod, struct muster_err *err)
{
    static const char *const may_change[] = {"labels", "annotations", NULL};
    char field[FIELD_BYTES];
    find_change(given, pod, "metadata", may_change, field);
    if (*field) {
        return muster_fail(err, MUSTER_EDATA,
                           "--cluster_spec: with_pod changes %s, which muster says of its pods "
                           "itself; it may change labels, annotations and the spec",
                           field);
    }
    return json_is_object(json_object_get(pod, "spec"))
               ? 0
               : muster_fail(err, MUSTER_EDATA,
                             "--cluster_spec: with_pod returns a pod without a spec");
}

static int check_service(const json_t *given, const json_t *service, struct muster_err *err)
{
    static const char *const none[] = {NULL};
    char field[FIELD_BYTES];
    find_change(given, service, "metadata", none, field);
    if (!*field) {
        find_change(given, service, "spec", none, field);
    }
    return !*field ? 0
                   : muster_fail(err, MUSTER_EDATA,
                                 "--cluster_spec: with_service changes %s, and Services are what "
                                 "muster makes of a job by itself: of type ClusterIP, with the "
                                 "clusterIP None; it must return them as they are",
                                 field);
}

/* Makes the replica's template from the returned pod. A replica may have restart policies that pods
 * cannot have: its own stays unless the function sets another. */
static void take_pod(struct build *b, json_t *replica, const json_t *given, const json_t *pod)
{
    static const char *const maps[] = {"labels", "annotations"};
    json_t *template = build_value(b, json_object());
    json_t *metadata = build_object_at(b, template, "metadata");
    for (size_t i = 0; i < 2; i++) {
        json_t *map = json_object_get(json_object_get(pod, "metadata"), maps[i]);
        if (json_object_size(map) > 0) {
            build_set(b, metadata, maps[i], json_incref(map));
        }
    }
    json_t *spec = build_value(b, json_copy(json_object_get(pod, "spec")));
    const char *policy = doc_text(spec, "restartPolicy", "");
    if (*policy && strcmp(policy, doc_text(given, "spec.restartPolicy", "")) != 0) {
        build_text(b, replica, "restartPolicy", policy);
    }
    json_object_del(spec, "restartPolicy");
    build_set(b, template, "spec", spec);
    build_set(b, replica, "template", template);
}

static const json_t *at(const json_t *message, const char *kind, size_t index)
{
    return json_array_get(json_object_get(message, kind), index);
}

int cluster_functions_take(json_t *job, const json_t *asked, const json_t *answer,
                           struct muster_err *err)
{
    struct build b = {0};
    int r = 0;
    for (size_t i = 0; r == 0 && i < ROLES; i++) {
        r = check_pod(at(asked, "pods", i), at(answer, "pods", i), err);
        r = r < 0 ? r : check_service(at(asked, "services", i), at(answer, "services", i), err);
    }
    for (size_t i = 0; r == 0 && i < ROLES; i++) {
        take_pod(&b, doc_at(job, roles[i].replica), at(asked, "pods", i), at(answer, "pods", i));
    }
    return r == 0 && b.failed ? err_no_memory(err) : r;
}
