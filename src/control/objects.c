/* See objects.h. */
#include "control/objects.h"

#include "base/build.h"
#include "base/doc.h"
#include "control/content/environment.h"
#include "control/control.h"
#include "control/status/attempt.h"
#include "job/annotations.h"

#include <stdio.h>
#include <string.h>

#define PORT_NAME "pytorchjob-port"

static bool leads(const struct job *job, enum job_role role, int index)
{
    return role == JOB_MASTER || (index == 0 && !job->replica[JOB_MASTER].present);
}

/* Sets the labels that distinguish one replica from all others; they are also the Service's
 * selector. */
static void set_identity(struct build *b, const struct job *job, enum job_role role, int index,
                         json_t *labels)
{
    build_text(b, labels, CONTROL_LABEL("operator-name"), CONTROL_CONTROLLER);
    build_text(b, labels, CONTROL_LABEL("job-name"), job->name);
    build_text(b, labels, CONTROL_LABEL("replica-type"), job_role_lower(role));
    build_set(b, labels, CONTROL_LABEL("replica-index"), json_sprintf("%d", index));
}

static void set_alias(struct build *b, json_t *labels, const char *key, const char *value)
{
    if (!json_object_get(labels, key)) {
        build_text(b, labels, key, value);
    }
}

/* Sets the labels of the former operator (pytorch-operator v1), which guides still use in
 * selectors. They have no prefix, so a user's own label of the same name stays. */
static void set_aliases(struct build *b, const struct job *job, enum job_role role, int index,
                        json_t *labels)
{
    char text[16];
    snprintf(text, sizeof text, "%d", index);
    set_alias(b, labels, "group-name", "kubeflow.org");
    set_alias(b, labels, "job-name", job->name);
    set_alias(b, labels, "pytorch-job-name", job->name);
    set_alias(b, labels, "controller-name", "pytorch-operator");
    if (leads(job, role, index)) {
        set_alias(b, labels, "job-role", "master");
    }
    set_alias(b, labels, "pytorch-replica-type", job_role_lower(role));
    set_alias(b, labels, "pytorch-replica-index", text);
}

static void set_labels(struct build *b, const struct job *job, enum job_role role, int index,
                       json_t *labels)
{
    set_identity(b, job, role, index, labels);
    if (leads(job, role, index)) {
        build_text(b, labels, CONTROL_LABEL("job-role"), "master");
    }
    set_aliases(b, job, role, index, labels);
}

json_t *control_owner_reference(const struct job *job)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:b, s:b}", "apiVersion", "kubeflow.org/v1", "kind",
                     "PyTorchJob", "name", job->name, "uid", job->uid, "controller", 1,
                     "blockOwnerDeletion", 1);
}

/* Sets apiVersion, kind, and metadata with `labels` (taken); returns the object. */
static json_t *start_object(struct build *b, const struct job *job, const char *kind,
                            const char *name, json_t *labels)
{
    json_t *object = build_value(b, json_object());
    build_text(b, object, "apiVersion", "v1");
    build_text(b, object, "kind", kind);
    json_t *metadata = build_object_at(b, object, "metadata");
    build_text(b, metadata, "name", name);
    build_text(b, metadata, "namespace", job->namespace);
    build_set(b, metadata, "labels", labels);
    return object;
}

static void set_owner(struct build *b, const struct job *job, json_t *object)
{
    json_t *metadata = json_object_get(object, "metadata");
    build_add(b, build_array_at(b, metadata, "ownerReferences"), control_owner_reference(job));
}

static json_t *copy_or_object(struct build *b, const json_t *value)
{
    return build_value(b, json_is_object(value) ? json_deep_copy(value) : json_object());
}

static bool has_port(const json_t *container)
{
    return doc_find(doc_at(container, "ports"), "name", PORT_NAME) != NULL;
}

static void add_default_port(struct build *b, json_t *container)
{
    if (!has_port(container)) {
        build_add(b, build_array_at(b, container, "ports"),
                  json_pack("{s:s, s:i, s:s}", "name", PORT_NAME, "containerPort", JOB_DEFAULT_PORT,
                            "protocol", "TCP"));
    }
}

static size_t main_index(const struct job_replica *replica)
{
    size_t index;
    json_t *container;
    json_array_foreach (doc_at(replica->template, "spec.containers"), index, container) {
        if (container == job_main_container(replica)) {
            return index;
        }
    }
    return 0;
}

static void set_containers(struct build *b, const struct job *job, enum job_role role, int index,
                           json_t *spec)
{
    json_t *containers = doc_at(spec, "containers");
    size_t main = main_index(&job->replica[role]);
    size_t at;
    json_t *container;
    json_array_foreach (containers, at, container) {
        if (!json_is_object(container)) {
            continue;
        }
        if (at == main) {
            add_default_port(b, container);
        }
        control_environment(b, job, role, index, build_array_at(b, container, "env"));
    }
}

/* A claim template replaces the volume of its name, as in a StatefulSet. */
static void set_claim_volume(struct build *b, const char *volume, const char *claim, json_t *spec)
{
    json_t *volumes = build_array_at(b, spec, "volumes");
    size_t index;
    json_t *each;
    json_array_foreach (volumes, index, each) {
        if (strcmp(doc_text(each, "name", ""), volume) == 0) {
            json_array_remove(volumes, index);
            break;
        }
    }
    build_add(
        b, volumes,
        json_pack("{s:s, s:{s:s}}", "name", volume, "persistentVolumeClaim", "claimName", claim));
}

static void set_claim_volumes(struct build *b, const struct job *job, enum job_role role, int index,
                              json_t *spec)
{
    char pod[CONTROL_NAME_BYTES];
    char claim[2 * CONTROL_NAME_BYTES];
    control_pod_name(job, role, index, pod);
    size_t at;
    json_t *each;
    json_array_foreach (job->replica[role].claim_templates, at, each) {
        set_claim_volume(b, doc_text(each, "metadata.name", ""),
                         control_claim_name(each, pod, claim), spec);
    }
}

json_t *control_make_pod(const struct job *job, enum job_role role, int index)
{
    const struct job_replica *replica = &job->replica[role];
    const json_t *template = replica->template;
    struct build b = {0};
    char name[CONTROL_NAME_BYTES];
    json_t *labels = copy_or_object(&b, doc_at(template, "metadata.labels"));
    set_labels(&b, job, role, index, labels);
    json_t *pod = start_object(&b, job, "Pod", control_pod_name(job, role, index, name), labels);
    json_t *metadata = json_object_get(pod, "metadata");
    for (int i = 0; i < 2; i++) {
        const char *field = i == 0 ? "annotations" : "finalizers";
        const json_t *value = doc_at(doc_at(template, "metadata"), field);
        if (value) {
            build_set(&b, metadata, field, json_deep_copy(value));
        }
    }
    if (job->max_restarts != JOB_UNSET) {
        build_set(&b, build_object_at(&b, metadata, "annotations"), JOB_ANNOTATION_ATTEMPT,
                  json_sprintf("%lld", (long long)control_attempt_read(job).number));
    }
    set_owner(&b, job, pod);
    json_t *spec = copy_or_object(&b, doc_at(template, "spec"));
    enum job_restart_policy policy = replica->restart_policy;
    build_text(&b, spec, "restartPolicy",
               job_restart_policy_name(policy == JOB_EXIT_CODE ? JOB_NEVER : policy));
    build_text(&b, spec, "priorityClassName",
               role == JOB_WORKER && index < job->high_workers ? "high" : NULL);
    set_containers(&b, job, role, index, spec);
    set_claim_volumes(&b, job, role, index, spec);
    build_set(&b, pod, "spec", spec);
    return build_end(&b, pod);
}

json_t *control_end_coordinator(const struct job *job, json_t *pod)
{
    const char *name = doc_text(job_main_container(&job->replica[JOB_MASTER]), "name", "");
    json_t *container = doc_find(doc_at(pod, "spec.containers"), "name", name);
    struct build b = {0};
    if (!container || doc_at(container, "restartPolicy")) {
        return pod;
    }
    build_text(&b, container, "restartPolicy", job_restart_policy_name(JOB_NEVER));
    json_t *rules = build_array_at(&b, container, "restartPolicyRules");
    json_t *rule = build_value(&b, json_object());
    build_add(&b, rules, rule);
    build_text(&b, rule, "action", "Restart");
    json_t *codes = build_object_at(&b, rule, "exitCodes");
    build_text(&b, codes, "operator", "NotIn");
    json_t *values = build_array_at(&b, codes, "values");
    for (int code = 0; code <= CONTROL_OWN_CODE_MAX; code++) {
        build_add(&b, values, json_integer(code));
    }
    return build_end(&b, pod);
}

/* Adds every named port of the main container, in its order (upstream's order is random). */
static void add_service_ports(struct build *b, const struct job_replica *replica, json_t *ports)
{
    const json_t *container = job_main_container(replica);
    size_t index;
    json_t *each;
    json_array_foreach (doc_at(container, "ports"), index, each) {
        const char *name = doc_text(each, "name", "");
        if (*name) {
            build_add(b, ports,
                      json_pack("{s:s, s:I, s:s}", "name", name, "port",
                                (json_int_t)doc_int(each, "containerPort", 0), "protocol",
                                doc_text(each, "protocol", "TCP")));
        }
    }
    if (!has_port(container)) {
        build_add(b, ports,
                  json_pack("{s:s, s:i, s:s}", "name", PORT_NAME, "port", JOB_DEFAULT_PORT,
                            "protocol", "TCP"));
    }
}

json_t *control_make_service(const struct job *job, enum job_role role, int index)
{
    struct build b = {0};
    char name[CONTROL_NAME_BYTES];
    json_t *labels = build_value(&b, json_object());
    set_labels(&b, job, role, index, labels);
    json_t *service =
        start_object(&b, job, "Service", control_service_name(job, role, index, name), labels);
    set_owner(&b, job, service);
    json_t *spec = build_object_at(&b, service, "spec");
    build_text(&b, spec, "clusterIP", "None");
    set_identity(&b, job, role, index, build_object_at(&b, spec, "selector"));
    add_service_ports(&b, &job->replica[role], build_array_at(&b, spec, "ports"));
    /* Ranks look up the master's name before it is Ready: with this, upstream's init container is
     * not needed. */
    build_set(&b, spec, "publishNotReadyAddresses", json_true());
    return build_end(&b, service);
}

/* The claim has no owner: what a rank has written outlives its job. */
json_t *control_make_claim(const struct job *job, enum job_role role, int index,
                           const json_t *claim_template)
{
    struct build b = {0};
    char pod[CONTROL_NAME_BYTES];
    char name[2 * CONTROL_NAME_BYTES];
    control_claim_name(claim_template, control_pod_name(job, role, index, pod), name);
    json_t *labels = copy_or_object(&b, doc_at(claim_template, "metadata.labels"));
    set_identity(&b, job, role, index, labels);
    json_t *claim = start_object(&b, job, "PersistentVolumeClaim", name, labels);
    const json_t *annotations = doc_at(claim_template, "metadata.annotations");
    if (annotations) {
        build_set(&b, json_object_get(claim, "metadata"), "annotations",
                  json_deep_copy(annotations));
    }
    build_set(&b, claim, "spec", copy_or_object(&b, doc_at(claim_template, "spec")));
    return build_end(&b, claim);
}

char *control_selector(const struct job *job, enum job_role role)
{
    char *text;
    int length = asprintf(&text,
                          CONTROL_LABEL("job-name") "=%s," CONTROL_LABEL(
                              "operator-name") "=" CONTROL_CONTROLLER
                                               "," CONTROL_LABEL("replica-type") "=%s",
                          job->name, job_role_lower(role));
    return length < 0 ? NULL : text;
}

/* Returns JOB_ROLE_COUNT if the job has no such replicas. */
static enum job_role parse_role(const struct job *job, const char *name)
{
    enum job_role role = 0;
    while (role < JOB_ROLE_COUNT &&
           !(strcmp(name, job_role_name(role)) == 0 && job->replica[role].present)) {
        role++;
    }
    return role;
}

static json_t *render_claims(const struct job *job, enum job_role role, int index)
{
    struct build b = {0};
    json_t *claims = build_value(&b, json_array());
    size_t at;
    json_t *each;
    json_array_foreach (job->replica[role].claim_templates, at, each) {
        build_add(&b, claims, control_make_claim(job, role, index, each));
    }
    return build_end(&b, claims);
}

static int render(const struct job *job, enum job_role role, int index, json_t *ret[3],
                  struct muster_err *err)
{
    json_t *made[3] = {control_make_pod(job, role, index), control_make_service(job, role, index),
                       render_claims(job, role, index)};
    if (!made[0] || !made[1] || !made[2]) {
        for (int i = 0; i < 3; i++) {
            json_decref(made[i]);
        }
        return muster_fail(err, MUSTER_ENOMEM, "no memory for a job's objects");
    }
    memcpy(ret, made, sizeof made);
    return 0;
}

int control_render(json_t *object, const char *role_name, int index, json_t **ret_pod,
                   json_t **ret_service, json_t **ret_claims, struct muster_err *err)
{
    struct job job;
    int r = job_read(object, &job, err);
    if (r != 0) {
        return r;
    }
    enum job_role role = parse_role(&job, role_name);
    json_t *made[3] = {NULL, NULL, NULL};
    if (role == JOB_ROLE_COUNT || index < 0) {
        r = muster_fail(err, MUSTER_EINVAL, "%s has no %s replica %d", job.name, role_name, index);
    } else {
        r = render(&job, role, index, made, err);
    }
    job_done(&job);
    if (r != 0) {
        return r;
    }
    *ret_pod = made[0];
    *ret_service = made[1];
    *ret_claims = made[2];
    return 0;
}
