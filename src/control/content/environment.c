/* See environment.h. */
#include "control/content/environment.h"

#include "base/buf.h"
#include "base/doc.h"
#include "control/status/attempt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE_BYTES_MAX = 4096 };

static void add(struct build *b, json_t *env, const char *name, const char *value)
{
    build_add(b, env, json_pack("{s:s, s:s}", "name", name, "value", value));
}

static void add_int(struct build *b, json_t *env, const char *name, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    add(b, env, name, text);
}

int control_rank(const struct job *job, enum job_role role, int index)
{
    if (job->coordinated) {
        return role == JOB_MASTER ? -1 : index;
    }
    bool after_master = role == JOB_WORKER && job->replica[JOB_MASTER].present;
    return after_master ? index + 1 : index;
}

/* Returns the processes per pod; a word such as "auto" counts as one (upstream:
 * getNprocPerNodeInt). */
static int64_t processes_per_pod(const struct job *job)
{
    if (!job->nproc_per_node) {
        return 1;
    }
    char *end;
    long long count = strtoll(job->nproc_per_node, &end, 10);
    bool number = end != job->nproc_per_node && *end == '\0';
    return number && count > 0 && count <= INT32_MAX ? count : 1;
}

static void add_master(struct build *b, const struct job *job, enum job_role role, int index,
                       json_t *env)
{
    char address[VALUE_BYTES_MAX];
    snprintf(address, sizeof address, "%s-master-0", job->name);
    int32_t port = job->replica[JOB_MASTER].port;
    int rank = control_rank(job, role, index);
    add_int(b, env, "MASTER_PORT", port);
    add_int(b, env, "PET_MASTER_PORT", port);
    add(b, env, "MASTER_ADDR", address);
    add(b, env, "PET_MASTER_ADDR", address);
    add_int(b, env, "WORLD_SIZE", job_total_replicas(job) * processes_per_pod(job));
    add_int(b, env, "RANK", rank);
    add_int(b, env, "PET_NODE_RANK", rank);
}

/* Adds "k=v,k=v"; an empty list gives no variable (upstream panics). */
static void add_rendezvous_conf(struct build *b, const json_t *conf, json_t *env)
{
    struct buf text;
    buf_init(&text, VALUE_BYTES_MAX);
    size_t index;
    json_t *each;
    json_array_foreach (conf, index, each) {
        buf_format(&text, "%s%s=%s", index ? "," : "", doc_text(each, "key", ""),
                   doc_text(each, "value", ""));
    }
    if (text.used > 0) {
        add(b, env, "PET_RDZV_CONF", buf_str(&text));
    }
    buf_done(&text);
}

/* Without an id torchrun uses "none", so that two jobs with one etcd would meet (#1638). c10d keeps
 * its store inside the job, where any id is safe. */
static const char *rendezvous_id(const struct job *job)
{
    const struct job_elastic *e = &job->elastic;
    if (e->rdzv_id) {
        return e->rdzv_id;
    }
    return strncmp(e->rdzv_backend, "etcd", 4) == 0 && *job->uid ? job->uid : NULL;
}

static void add_elastic(struct build *b, const struct job *job, json_t *env)
{
    const struct job_elastic *e = &job->elastic;
    char text[VALUE_BYTES_MAX];
    int32_t port = e->rdzv_port == JOB_UNSET ? job->replica[JOB_WORKER].port : e->rdzv_port;
    if (e->rdzv_host) {
        snprintf(text, sizeof text, "%s:%d", e->rdzv_host, port);
    } else {
        snprintf(text, sizeof text, "%s-worker-0:%d", job->name, port);
    }
    add(b, env, "PET_RDZV_ENDPOINT", text);
    add(b, env, "PET_RDZV_BACKEND", e->rdzv_backend);
    snprintf(text, sizeof text, "%d:%d", e->min_replicas, e->max_replicas);
    add(b, env, "PET_NNODES", text);
    if (e->max_restarts != JOB_UNSET) {
        add_int(b, env, "PET_MAX_RESTARTS", e->max_restarts);
    }
    if (e->nproc_per_node) {
        add(b, env, "PET_NPROC_PER_NODE", e->nproc_per_node);
    }
    if (rendezvous_id(job)) {
        add(b, env, "PET_RDZV_ID", rendezvous_id(job));
    }
    add_rendezvous_conf(b, e->rdzv_conf, env);
    if (e->standalone) {
        add(b, env, "PET_STANDALONE", "");
    }
}

/* Adds the variables that torchrun's agent sets; scripts read them to resume. */
static void add_attempt(struct build *b, const struct job *job, json_t *env)
{
    int64_t attempt = control_attempt_read(job).number;
    add_int(b, env, "TORCHELASTIC_RESTART_COUNT", attempt);
    add_int(b, env, "TORCHELASTIC_MAX_RESTARTS", job->max_restarts);
    add_int(b, env, "MUSTER_RESTART_COUNT", attempt);
}

/* The Workers of a coordinator have no ranks, because their ranks change with the members. No
 * upstream operator sets these variables, so the user's PYTHONUNBUFFERED stays. */
static void add_elastic_role(struct build *b, const struct job *job, enum job_role role, int index,
                             json_t *env)
{
    if (!doc_find(env, "name", "PYTHONUNBUFFERED")) {
        add(b, env, "PYTHONUNBUFFERED", "1");
    }
    if (role == JOB_WORKER) {
        add_int(b, env, "WORKER_ID", index); /* ElasticDL's name */
    } else { /* by this the coordinator finds its journal among those of other jobs */
        add(b, env, "MUSTER_JOB", job->name);
        add(b, env, "MUSTER_JOB_UID", job->uid);
    }
}

void control_environment(struct build *b, const struct job *job, enum job_role role, int index,
                         json_t *env)
{
    if (job->coordinated) {
        add_elastic_role(b, job, role, index, env);
        return;
    }
    add(b, env, "PYTHONUNBUFFERED", "1");
    if (job->replica[JOB_MASTER].present) {
        add_master(b, job, role, index, env);
    }
    if (job->nproc_per_node) {
        add(b, env, "PET_NPROC_PER_NODE", job->nproc_per_node);
    }
    if (job->max_restarts != JOB_UNSET) {
        add_attempt(b, job, env);
    }
    if (job->elastic.present) {
        add_elastic(b, job, env);
    } else {
        add_int(b, env, "PET_NNODES", job_total_replicas(job));
    }
}
