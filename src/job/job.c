/* A PyTorchJob as a typed view of its document. A reader reads one field after the other; its
 * first failure sticks. */
#include "job/job.h"

#include "base/doc.h"
#include "job/annotations.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    int code; /* 0, or the first failure */
    struct muster_err *err;
};

static const char *const role_names[] = {[JOB_MASTER] = "Master", [JOB_WORKER] = "Worker"};
static const char *const role_lower[] = {[JOB_MASTER] = "master", [JOB_WORKER] = "worker"};
static const char *const restart_names[] = {[JOB_ALWAYS] = "Always",
                                            [JOB_ON_FAILURE] = "OnFailure",
                                            [JOB_NEVER] = "Never",
                                            [JOB_EXIT_CODE] = "ExitCode"};
static const char *const clean_names[] = {
    [JOB_CLEAN_NONE] = "None", [JOB_CLEAN_RUNNING] = "Running", [JOB_CLEAN_ALL] = "All"};

static void fail(struct reader *r, const char *path, const char *must)
{
    if (r->code == 0) {
        r->code = muster_fail(r->err, MUSTER_EDATA, "PyTorchJob: %s %s", path, must);
    }
}

static int64_t read_int(struct reader *r, const json_t *doc, const char *path, int64_t fallback)
{
    const json_t *value = doc_at(doc, path);
    if (!value) {
        return fallback;
    }
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        fail(r, path, "must be a number of 0 or more");
        return fallback;
    }
    return (int64_t)json_integer_value(value);
}

static int32_t read_int32(struct reader *r, const json_t *doc, const char *path, int32_t fallback)
{
    int64_t value = read_int(r, doc, path, fallback);
    if (value > INT32_MAX) {
        fail(r, path, "must fit 32 bits");
        return fallback;
    }
    return (int32_t)value;
}

static const char *read_text(struct reader *r, const json_t *doc, const char *path,
                             const char *fallback)
{
    const json_t *value = doc_at(doc, path);
    if (!value) {
        return fallback;
    }
    if (!json_is_string(value)) {
        fail(r, path, "must be text");
        return fallback;
    }
    return json_string_value(value);
}

static bool read_bool(struct reader *r, const json_t *doc, const char *path)
{
    const json_t *value = doc_at(doc, path);
    if (value && !json_is_boolean(value)) {
        fail(r, path, "must be true or false");
    }
    return json_is_true(value);
}

static const json_t *read_array(struct reader *r, const json_t *doc, const char *path)
{
    const json_t *value = doc_at(doc, path);
    if (value && !json_is_array(value)) {
        fail(r, path, "must be a list");
        return NULL;
    }
    return value;
}

/* Returns the index of the word in `names`, or `fallback` if the field is missing. */
static int read_word(struct reader *r, const json_t *doc, const char *path,
                     const char *const *names, int count, int fallback)
{
    const char *word = read_text(r, doc, path, names[fallback]);
    for (int i = 0; i < count; i++) {
        if (strcmp(word, names[i]) == 0) {
            return i;
        }
    }
    fail(r, path, "has an unknown word");
    return fallback;
}

#define read_enum(r, doc, path, names, fallback)                                                   \
    read_word(r, doc, path, names, (int)(sizeof(names) / sizeof(names)[0]), fallback)

const json_t *job_main_container(const struct job_replica *replica)
{
    const json_t *containers = doc_at(replica->template, "spec.containers");
    const json_t *pytorch = doc_find(containers, "name", "pytorch");
    return pytorch ? pytorch : json_array_get(containers, 0);
}

static int32_t read_port(struct reader *r, const struct job_replica *replica)
{
    const json_t *ports = doc_at(job_main_container(replica), "ports");
    const json_t *port = doc_find(ports, "name", "pytorchjob-port");
    return port ? read_int32(r, port, "containerPort", JOB_DEFAULT_PORT) : JOB_DEFAULT_PORT;
}

static void read_replica(struct reader *r, const json_t *spec, struct job_replica *ret)
{
    *ret = (struct job_replica){.present = spec != NULL, .port = JOB_DEFAULT_PORT};
    if (!spec) {
        return;
    }
    ret->replicas = read_int32(r, spec, "replicas", 1);
    ret->restart_policy =
        (enum job_restart_policy)read_enum(r, spec, "restartPolicy", restart_names, JOB_ON_FAILURE);
    ret->template = doc_at(spec, "template");
    ret->claim_templates = read_array(r, spec, "volumeClaimTemplates");
    ret->port = read_port(r, ret);
    if (!json_is_object(job_main_container(ret))) {
        fail(r, "template.spec.containers", "must have at least one container");
    }
}

static void read_replicas(struct reader *r, struct job *job)
{
    const json_t *specs = doc_at(job->object, "spec.pytorchReplicaSpecs");
    if (!json_is_object(specs)) {
        fail(r, "spec.pytorchReplicaSpecs", "is required");
    }
    for (enum job_role role = 0; role < JOB_ROLE_COUNT; role++) {
        read_replica(r, doc_at(specs, job_role_name(role)), &job->replica[role]);
    }
}

/* Returns the deprecated field as text: it is a number upstream, but environment variables need
 * text. */
static const char *elastic_nproc(struct reader *r, const json_t *policy, struct job *job)
{
    const json_t *value = doc_at(policy, "nProcPerNode");
    if (!value) {
        return NULL;
    }
    if (json_is_string(value)) {
        return json_string_value(value);
    }
    job->elastic_nproc = json_sprintf("%d", (int)read_int32(r, policy, "nProcPerNode", 1));
    return json_string_value(job->elastic_nproc);
}

static void read_elastic(struct reader *r, struct job *job)
{
    struct job_elastic *e = &job->elastic;
    const json_t *policy = doc_at(job->object, "spec.elasticPolicy");
    *e = (struct job_elastic){.rdzv_port = JOB_UNSET, .max_restarts = JOB_UNSET};
    if (!policy) {
        return;
    }
    e->present = true;
    e->min_replicas = read_int32(r, policy, "minReplicas", JOB_UNSET);
    e->max_replicas = read_int32(r, policy, "maxReplicas", JOB_UNSET);
    if (e->min_replicas == JOB_UNSET && e->max_replicas == JOB_UNSET) {
        e->min_replicas = e->max_replicas = job->replica[JOB_WORKER].replicas;
    } else if (e->min_replicas == JOB_UNSET) {
        e->min_replicas = e->max_replicas;
    } else if (e->max_replicas == JOB_UNSET) {
        e->max_replicas = e->min_replicas;
    }
    e->rdzv_backend = read_text(r, policy, "rdzvBackend", "c10d");
    e->rdzv_port = read_int32(r, policy, "rdzvPort", JOB_UNSET);
    e->rdzv_host = read_text(r, policy, "rdzvHost", NULL);
    e->rdzv_id = read_text(r, policy, "rdzvId", NULL);
    e->rdzv_conf = read_array(r, policy, "rdzvConf");
    e->standalone = read_bool(r, policy, "standalone");
    e->nproc_per_node = elastic_nproc(r, policy, job);
    e->max_restarts = read_int32(r, policy, "maxRestarts", JOB_UNSET);
    e->metrics = read_array(r, policy, "metrics");
}

static void read_run_policy(struct reader *r, struct job *job)
{
    const json_t *policy = doc_at(job->object, "spec.runPolicy");
    job->clean_policy =
        (enum job_clean_policy)read_enum(r, policy, "cleanPodPolicy", clean_names, JOB_CLEAN_NONE);
    job->ttl_s = read_int(r, policy, "ttlSecondsAfterFinished", JOB_UNSET);
    job->active_deadline_s = read_int(r, policy, "activeDeadlineSeconds", JOB_UNSET);
    job->backoff_limit = read_int(r, policy, "backoffLimit", JOB_UNSET);
    job->suspend = read_bool(r, policy, "suspend");
    job->managed_by = read_text(r, policy, "managedBy", NULL);
}

/* Whether the annotation is this word. Other values are for a cluster: no annotation makes a job
 * unreadable. */
static bool says(const json_t *object, const char *annotation, const char *word)
{
    const json_t *notes = doc_at(object, "metadata.annotations");
    const char *text = json_string_value(json_object_get(notes, annotation));
    return text && strcmp(text, word) == 0;
}

int32_t job_annotated_number(const json_t *object, const char *annotation)
{
    const json_t *notes = doc_at(object, "metadata.annotations");
    const char *text = json_string_value(json_object_get(notes, annotation));
    bool number = text && *text && strlen(text) < 6 && strspn(text, "0123456789") == strlen(text);
    return number ? (int32_t)strtol(text, NULL, 10) : JOB_UNSET;
}

int job_read(json_t *object, struct job *ret, struct muster_err *err)
{
    struct reader r = {0, err};
    struct job job = {.object = object};
    job.name = read_text(&r, object, "metadata.name", "");
    job.namespace = read_text(&r, object, "metadata.namespace", "default");
    job.uid = read_text(&r, object, "metadata.uid", "");
    read_replicas(&r, &job);
    read_run_policy(&r, &job);
    job.all_ranks = says(object, JOB_ANNOTATION_SUCCESS_POLICY, "AllRanks");
    job.coordinated = says(object, JOB_ANNOTATION_COORDINATOR, "Master") &&
                      job.replica[JOB_MASTER].present && job.replica[JOB_WORKER].present;
    job.elasticdl_names = says(object, JOB_ANNOTATION_POD_NAMES, "ElasticDL");
    job.high_workers = job_annotated_number(object, JOB_ANNOTATION_HIGH_WORKERS);
    job.max_restarts = job_annotated_number(object, JOB_ANNOTATION_MAX_RESTARTS);
    read_elastic(&r, &job);
    job.nproc_per_node =
        read_text(&r, object, "spec.nprocPerNode", job.elastic.nproc_per_node ? NULL : "auto");
    json_incref(object);
    if (r.code != 0) {
        job_done(&job);
        return r.code;
    }
    *ret = job;
    return 0;
}

void job_done(struct job *job)
{
    json_decref(job->object);
    json_decref(job->elastic_nproc);
    *job = (struct job){0};
}

int32_t job_total_replicas(const struct job *job)
{
    return job->replica[JOB_MASTER].replicas + job->replica[JOB_WORKER].replicas;
}

const char *job_role_name(enum job_role role)
{
    assert(role < JOB_ROLE_COUNT);
    return role_names[role];
}

const char *job_role_lower(enum job_role role)
{
    assert(role < JOB_ROLE_COUNT);
    return role_lower[role];
}

const char *job_restart_policy_name(enum job_restart_policy policy)
{
    assert(policy <= JOB_EXIT_CODE);
    return restart_names[policy];
}

const json_t *job_condition(const json_t *object, const char *type)
{
    const json_t *found = doc_find(doc_at(object, "status.conditions"), "type", type);
    return strcmp(doc_text(found, "status", ""), "True") == 0 ? found : NULL;
}

bool job_is_finished(const json_t *object)
{
    return job_condition(object, "Succeeded") || job_condition(object, "Failed");
}
