/* The job model: PyTorchJob kubeflow.org/v1 as typed data, with upstream's defaults filled in.
 *
 * The JSON object stays what the user wrote (upstream never writes defaults to spec); this is the
 * reader's view. Source: training-operator v1.9.4 (pkg/apis/kubeflow.org/v1), see
 * docs/differences.md for what we do otherwise.
 *
 * Layer: pure. Ownership: struct job holds one reference to its object, and borrows every string
 * from it; a zeroed struct is fine for job_done.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>
#include <stdbool.h>
#include <stdint.h>

enum job_role { JOB_MASTER, JOB_WORKER, JOB_ROLE_COUNT };

enum job_restart_policy { JOB_ALWAYS, JOB_ON_FAILURE, JOB_NEVER, JOB_EXIT_CODE };

enum job_clean_policy { JOB_CLEAN_NONE, JOB_CLEAN_RUNNING, JOB_CLEAN_ALL };

enum { JOB_UNSET = -1, JOB_DEFAULT_PORT = 23456 };

struct job_replica {
    bool present;
    int32_t replicas;                       /* default 1 */
    enum job_restart_policy restart_policy; /* default JOB_ON_FAILURE */
    int32_t port;                           /* containerPort named pytorchjob-port, default 23456 */
    const json_t *template;                 /* PodTemplateSpec as written */
    const json_t *claim_templates; /* our volumeClaimTemplates: one PVC per index; array or NULL */
};

struct job_elastic {
    bool present;
    int32_t min_replicas;
    int32_t max_replicas;
    const char *rdzv_backend; /* default "c10d" */
    int32_t rdzv_port;        /* JOB_UNSET: the worker's port */
    const char *rdzv_host;    /* NULL: <job>-worker-0 */
    const char *rdzv_id;      /* NULL: not set */
    const json_t *rdzv_conf;  /* array or NULL */
    bool standalone;
    const char *nproc_per_node; /* deprecated field, as text; NULL: not set */
    int32_t max_restarts;       /* JOB_UNSET: not set */
    const json_t *metrics;      /* array or NULL: if present, an autoscaler is wanted */
};

struct job {
    json_t *object; /* one reference */
    const char *name;
    const char *namespace;
    const char *uid; /* "" before creation */
    struct job_replica replica[JOB_ROLE_COUNT];
    enum job_clean_policy clean_policy;
    int64_t ttl_s;             /* JOB_UNSET: kept for ever */
    int64_t active_deadline_s; /* JOB_UNSET: none */
    int64_t backoff_limit;     /* JOB_UNSET: none */
    bool suspend;
    int32_t max_restarts; /* restarts of all ranks together, our annotation; JOB_UNSET: none */
    bool all_ranks;   /* success policy AllRanks: succeeded when all replicas of all roles are */
    bool coordinated; /* the Master is the Workers' coordinator, and not a rank */
    bool elasticdl_names;   /* names of the pods */
    int32_t high_workers;   /* number of Workers of PriorityClass "high"; JOB_UNSET: as template */
    const char *managed_by; /* NULL: us */
    const char *nproc_per_node; /* "auto" by default; NULL when only the elastic field is set */
    struct job_elastic elastic;
    json_t *elastic_nproc; /* owns the text of elastic.nproc_per_node if the user wrote a number */
};

/* The object must have passed job_check without errors; if it is malformed nevertheless, the result
 * is MUSTER_EDATA. */
int job_read(json_t *object, struct job *ret, struct muster_err *err);
/* Returns the number in an annotation of the object, 0 to 99999. JOB_UNSET: the annotation is
 * absent or not a number, which job_check reports. */
int32_t job_annotated_number(const json_t *object, const char *annotation);
void job_done(struct job *job);

/* Returns the condition of that type if it is True, borrowed; otherwise NULL. */
const json_t *job_condition(const json_t *object, const char *type);

/* Whether Succeeded or Failed is True in the stored object. */
bool job_is_finished(const json_t *object);

int32_t job_total_replicas(const struct job *job);

/* Return the words of the API: "Master", "master"; "OnFailure" …. */
const char *job_role_name(enum job_role role);
const char *job_role_lower(enum job_role role);
const char *job_restart_policy_name(enum job_restart_policy policy);

/* Returns the container called pytorch, or the first one if there is none. Borrowed. */
const json_t *job_main_container(const struct job_replica *replica);
