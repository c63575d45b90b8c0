/* See translate.h. */
#include "cli/elasticdl/translate.h"

#include "base/build.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "cli/elasticdl/checks.h"
#include "cli/elasticdl/cluster_spec.h"
#include "cli/elasticdl/journal.h"
#include "cli/elasticdl/values.h"
#include "cli/elasticdl/volumes.h"
#include "job/annotations.h"
#include "job/generate.h"
#include "job/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUSTER_IMAGE "muster:" MUSTER_VERSION
#define TOKEN "MUSTER_COORDINATOR_TOKEN"

struct translation {
    const struct args *args;
    const struct translate_site *site;
    struct muster_err *err;
    struct build build;
    struct checked flags;
    json_t *spec;   /* --cluster_spec_json */
    json_t *own;    /* --envs */
    int64_t peer_s; /* how long the others may wait for a worker; 0: not given */
    struct journal_place journal;
    json_t *secret; /* or NULL */
};

static const char *value_of(const struct translation *t, const char *flag)
{
    const char *value = args_value(t->args, flag);
    return value ? value : "";
}

static const char *verb(const struct translation *t)
{
    return t->args->command->name;
}

/* --- the parts of a pod --- */

/* Sets requests and limits. A limit that is not given is equal to the request, if that is given, as
 * in ElasticDL. */
static int set_resources(struct translation *t, const char *who, json_t *container)
{
    char request[64], limit[64];
    muster_auto(doc) json_t *requests = NULL;
    muster_auto(doc) json_t *limits = NULL;
    snprintf(request, sizeof request, "%s_resource_request", who);
    snprintf(limit, sizeof limit, "%s_resource_limit", who);
    const char *most = args_text(t->args, limit);
    if (!most && args_flag(t->args, request)) {
        most = value_of(t, request);
    }
    int r = values_resources(request, value_of(t, request), &requests, t->err);
    r = r < 0 ? r : values_resources(limit, most ? most : "", &limits, t->err);
    json_t *resources = build_object_at(&t->build, container, "resources");
    if (r == 0 && json_object_size(requests) > 0) {
        build_set(&t->build, resources, "requests", muster_take(requests));
    }
    if (r == 0 && json_object_size(limits) > 0) {
        build_set(&t->build, resources, "limits", muster_take(limits));
    }
    return r;
}

static void add_variable(struct translation *t, json_t *env, const char *name, json_t *value)
{
    json_t *entry = build_value(&t->build, json_object());
    build_text(&t->build, entry, "name", name);
    build_set(&t->build, entry, "value", value);
    build_add(&t->build, env, entry);
}

/* Adds the token from the Secret, if there is one; otherwise the token is sent beside the object.
 */
static void add_token(struct translation *t, json_t *env)
{
    if (t->secret) {
        build_add(&t->build, env,
                  json_pack("{s:s, s:{s:{s:O, s:s}}}", "name", TOKEN, "valueFrom", "secretKeyRef",
                            "name", doc_at(t->secret, "metadata.name"), "key", "token"));
    }
}

static json_t *start_container(struct translation *t, json_t *template, const char *image)
{
    json_t *spec = build_object_at(&t->build, template, "spec");
    json_t *container = build_value(&t->build, json_object());
    build_add(&t->build, build_array_at(&t->build, spec, "containers"), container);
    build_text(&t->build, container, "name", "pytorch");
    build_text(&t->build, container, "image", image);
    build_text(&t->build, container, "imagePullPolicy", args_text(t->args, "image_pull_policy"));
    return container;
}

static void add_word(struct translation *t, json_t *command, const char *word)
{
    build_add(&t->build, command, json_string(word));
}

static json_t *start_replica(struct translation *t, json_t *specs, const char *role,
                             int64_t replicas, const char *policy)
{
    json_t *replica = build_object_at(&t->build, specs, role);
    build_int(&t->build, replica, "replicas", replicas);
    build_text(&t->build, replica, "restartPolicy", policy);
    return build_object_at(&t->build, replica, "template");
}

/* --- the coordinator --- */

static void add_command(struct translation *t, json_t *container)
{
    json_t *command = build_array_at(&t->build, container, "command");
    const char *folder = t->site->folder ? t->site->folder : journal_folder(&t->journal);
    const char *program = t->site->program ? t->site->program : "muster";
    build_add(&t->build, command, job_literal(program));
    add_word(t, command, "keep"); /* restarts at once; a kubelet waits for 10 s and more */
    add_word(t, command, "--");
    build_add(&t->build, command, job_literal(program));
    add_word(t, command, "coordinator");
    add_word(t, command, "--listen");
    add_word(t, command, "$(MUSTER_COORDINATOR_LISTEN)");
    add_word(t, command, "--journal");
    build_add(&t->build, command, json_sprintf("%s/journal", folder));
    journal_add_words(&t->journal, t->flags.name, &t->build, command);
    if (t->peer_s > 0) {
        add_word(t, command, "--pass-timeout-max");
        build_add(&t->build, command, json_sprintf("%llds", (long long)t->peer_s));
    }
    if (t->flags.max_steps > 0) {
        add_word(t, command, "--max-steps");
        build_add(&t->build, command, json_sprintf("%lld", (long long)t->flags.max_steps));
    }
    add_word(t, command, "--first-size");
    build_add(&t->build, command, json_sprintf("%lld", (long long)t->flags.workers));
    add_word(t, command, "--progress");
    add_word(t, command, "--mark-done");
    add_word(t, command, "--status-file");
    build_add(&t->build, command, json_sprintf("%s/status.json", folder));
}

static int add_master(struct translation *t, json_t *specs)
{
    /* A coordinator that was killed starts again in its pod, beside its journal. */
    json_t *template = start_replica(t, specs, "Master", 1, "OnFailure");
    json_t *container = start_container(t, template, MUSTER_IMAGE);
    json_t *pod = doc_at(template, "spec");
    add_command(t, container);
    if (!t->site->folder) { /* from there a kubelet reads why the job has failed */
        build_text(&t->build, container, "terminationMessagePolicy", "FallbackToLogsOnError");
    }
    json_t *env = build_array_at(&t->build, container, "env");
    add_variable(t, env, "MUSTER_COORDINATOR_LISTEN",
                 json_sprintf("tcp:0.0.0.0:%d", JOB_DEFAULT_PORT));
    add_token(t, env);
    if (!t->site->folder) {
        journal_add_volume(&t->journal, &t->build, pod, container);
    }
    build_text(&t->build, pod, "priorityClassName", args_text(t->args, "master_pod_priority"));
    return set_resources(t, "master", container);
}

/* --- the workers --- */

/* Adds the variables that only `evaluate` and `predict` set. */
static void add_task(struct translation *t, json_t *env)
{
    static const struct {
        const char *verb, *task, *flag, *name;
    } tasks[] = {{"evaluate", "evaluation", "validation_data", "VALIDATION_DATA"},
                 {"predict", "prediction", "prediction_data", "PREDICTION_DATA"}};
    for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; i++) {
        if (strcmp(tasks[i].verb, verb(t)) == 0) {
            add_variable(t, env, "MUSTER_TASK", json_string(tasks[i].task));
            add_variable(t, env, tasks[i].name, job_literal(value_of(t, tasks[i].flag)));
            add_variable(t, env, "CHECKPOINT_DIR_FOR_INIT",
                         job_literal(value_of(t, "checkpoint_dir_for_init")));
        }
    }
}

static void add_checkpoints(struct translation *t, json_t *env)
{
    const char *folder = args_text(t->args, "checkpoint_dir");
    if (folder) {
        add_variable(t, env, "MUSTER_CHECKPOINT", job_literal(folder));
    }
    if (t->flags.checkpoint_steps > 0) {
        add_variable(t, env, "MUSTER_CHECKPOINT_STEPS",
                     json_sprintf("%lld", (long long)t->flags.checkpoint_steps));
    }
    if (t->flags.checkpoints > 0) {
        add_variable(t, env, "MUSTER_CHECKPOINT_KEEP",
                     json_sprintf("%lld", (long long)t->flags.checkpoints));
    }
}

/* Adds the number of micro-batches, of each worker or of a step. */
static void add_micro_batches(struct translation *t, json_t *env)
{
    int64_t each = t->flags.each;
    add_variable(t, env, each > 0 ? "MUSTER_MICRO_BATCHES_PER_WORKER" : "MUSTER_MICRO_BATCHES",
                 json_sprintf("%lld", (long long)(each > 0 ? each : t->flags.workers)));
}

/* Adds the user's variables, which replace earlier ones of the same name. */
static void add_own(struct translation *t, const json_t *own, json_t *env)
{
    size_t i;
    json_t *each;
    json_array_foreach (own, i, each) {
        const char *name = doc_text(each, "name", "");
        for (size_t at = json_array_size(env); at-- > 0;) {
            if (strcmp(doc_text(json_array_get(env, at), "name", ""), name) == 0) {
                json_array_remove(env, at);
            }
        }
        build_add(&t->build, env, json_incref(each));
    }
}

static void add_environment(struct translation *t, json_t *container)
{
    json_t *env = build_array_at(&t->build, container, "env");
    add_variable(t, env, "MUSTER_COORDINATOR",
                 json_sprintf("tcp:%s-master-0:%d", t->flags.name, JOB_DEFAULT_PORT));
    add_token(t, env);
    add_micro_batches(t, env);
    add_variable(t, env, "WORKER_NUM", json_sprintf("%lld", (long long)t->flags.workers));
    add_variable(t, env, "USE_TORCH", json_string("true"));
    add_task(t, env);
    add_checkpoints(t, env);
    if (t->flags.set_aside) {
        add_variable(t, env, "MUSTER_SET_ASIDE", json_string("1"));
    }
    add_own(t, t->own, env);
}

static bool is_mounted(const json_t *mounts, const char *folder)
{
    size_t i;
    json_t *mount;
    json_array_foreach (mounts, i, mount) {
        const char *path = doc_text(mount, "mountPath", "");
        size_t length = strlen(path);
        if (length > 0 && strncmp(folder, path, length) == 0 &&
            (folder[length] == 0 || folder[length] == '/' || path[length - 1] == '/')) {
            return true;
        }
    }
    return false;
}

/* Checks that checkpoints are in a volume: in a cluster, files outside of volumes are lost with
 * their pod; here the folder belongs to this machine. */
static int check_checkpoints(const struct translation *t, const json_t *mounts)
{
    const char *folder = args_text(t->args, "checkpoint_dir");
    if (!folder || t->site->folder || is_mounted(mounts, folder)) {
        return 0;
    }
    return muster_fail(t->err, MUSTER_EINVAL,
                       "%s: --checkpoint_dir %s is in no --volume: it would go with its pod "
                       "(--volume=claim_name=CLAIM,mount_path=%s)",
                       verb(t), folder, folder);
}

static int add_volumes(struct translation *t, json_t *pod, json_t *container)
{
    muster_auto(doc) json_t *volumes = NULL;
    muster_auto(doc) json_t *mounts = NULL;
    int r = volumes_read("volume", value_of(t, "volume"), t->flags.name, &volumes, &mounts, t->err);
    r = r < 0 ? r : check_checkpoints(t, mounts);
    if (r == 0 && json_array_size(volumes) > 0) {
        build_set(&t->build, container, "volumeMounts", muster_take(mounts));
        build_set(&t->build, pod, "volumes", muster_take(volumes));
    }
    return r;
}

static int add_workers(struct translation *t, json_t *specs)
{
    json_t *template = start_replica(t, specs, "Worker", t->flags.workers, t->flags.restart_policy);
    const char *image = args_text(t->args, "worker_image") ? args_text(t->args, "worker_image")
                                                           : args_text(t->args, "image_name");
    json_t *container = start_container(t, template, image ? image : JOB_DEFAULT_IMAGE);
    json_t *pod = doc_at(template, "spec");
    json_t *command = build_array_at(&t->build, container, "command");
    add_word(t, command, "/bin/bash");
    add_word(t, command, "-c");
    build_add(&t->build, command, job_literal(value_of(t, "job_command")));
    build_text(&t->build, pod, "priorityClassName", t->flags.worker_class);
    add_environment(t, container);
    int r = add_volumes(t, pod, container);
    return r < 0 ? r : set_resources(t, "worker", container);
}

/* --- the job --- */

/* The namespace of the objects. Objects in a file are created where kubectl is told to, unless the
 * line has a namespace. */
static const char *namespace_of(const struct translation *t)
{
    size_t at = 0;
    bool is_file = t->site->token != NULL;
    return is_file && !args_each(t->args, "namespace", &at) ? NULL
                                                            : args_value(t->args, "namespace");
}

static void make_secret(struct translation *t)
{
    if (t->site->token) {
        t->secret = build_value(&t->build,
                                json_pack("{s:s, s:s, s:{s:o, s:s*}, s:{s:s}}", "apiVersion", "v1",
                                          "kind", "Secret", "metadata", "name",
                                          json_sprintf("%s-token", t->flags.name), "namespace",
                                          namespace_of(t), "stringData", "token", t->site->token));
    }
}

static json_t *start_job(struct translation *t)
{
    struct build *b = &t->build;
    json_t *job = build_value(b, json_object());
    build_text(b, job, "apiVersion", "kubeflow.org/v1");
    build_text(b, job, "kind", "PyTorchJob");
    json_t *metadata = build_object_at(b, job, "metadata");
    build_text(b, metadata, "name", t->flags.name);
    build_text(b, metadata, "namespace", namespace_of(t));
    json_t *notes = build_object_at(b, metadata, "annotations");
    build_text(b, notes, JOB_ANNOTATION_COORDINATOR, "Master");
    build_text(b, notes, JOB_ANNOTATION_POD_NAMES, "ElasticDL");
    if (t->flags.high_workers > 0) {
        build_set(b, notes, JOB_ANNOTATION_HIGH_WORKERS,
                  json_sprintf("%lld", (long long)t->flags.high_workers));
    }
    json_t *policy = build_object_at(b, build_object_at(b, job, "spec"), "runPolicy");
    build_text(b, policy, "cleanPodPolicy", "Running");
    if (t->flags.relaunches > 0) {
        build_int(b, policy, "backoffLimit", t->flags.relaunches * (t->flags.workers + 1));
    }
    return job;
}

/* Applies --cluster_spec, then --cluster_spec_json: the file may set a field as a whole, to which
 * the JSON then adds. */
static int change_pods(struct translation *t, json_t *job)
{
    const char *file = args_text(t->args, "cluster_spec");
    int r = file ? t->site->run_file(file, job, t->err) : 0;
    const json_t *specs = doc_at(job, "spec.pytorchReplicaSpecs");
    r = r < 0 ? r : cluster_spec_apply(t->spec, "master", doc_at(specs, "Master.template"), t->err);
    return r < 0 ? r
                 : cluster_spec_apply(t->spec, "worker", doc_at(specs, "Worker.template"), t->err);
}

static int make_job(struct translation *t, json_t **ret)
{
    make_secret(t);
    json_t *job = start_job(t);
    json_t *specs = build_object_at(&t->build, doc_at(job, "spec"), "pytorchReplicaSpecs");
    int r = t->build.failed ? err_no_memory(t->err) : add_master(t, specs);
    r = r < 0 ? r : add_workers(t, specs);
    if (r < 0) {
        json_decref(job);
        return r;
    }
    *ret = build_end(&t->build, job);
    r = *ret ? change_pods(t, *ret) : err_no_memory(t->err);
    if (r < 0) {
        json_decref(*ret);
        *ret = NULL;
    }
    return r;
}

int translate_objects(const struct args *args, const struct translate_site *site,
                      json_t **ret_secret, json_t **ret_job, struct muster_err *err)
{
    struct translation t = {.args = args, .site = site, .err = err};
    int r = checks_read(args, &t.flags, err);
    r = r < 0 ? r : cluster_spec_read(value_of(&t, "cluster_spec_json"), &t.spec, err);
    r = r < 0 ? r : values_variables("envs", value_of(&t, "envs"), &t.own, err);
    r = r < 0 ? r : values_peer_limit(t.own, &t.peer_s, err);
    r = r < 0 ? r : journal_place_read(value_of(&t, "journal_volume"), &t.journal, err);
    r = r < 0 ? r : make_job(&t, ret_job);
    json_decref(t.spec);
    json_decref(t.own);
    journal_place_done(&t.journal);
    if (r < 0) {
        json_decref(t.secret);
        return r;
    }
    *ret_secret = t.secret;
    return 0;
}
