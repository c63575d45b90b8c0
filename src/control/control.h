/* What an operator decides: from a job and what exists for it, what must be done next.
 *
 * Level-triggered: a step knows nothing but the view, so it may be repeated, skipped, or run on an
 * old view. The driver (embedded controller or operator) carries effects out in their order and
 * stops at the first that fails; the next step starts from what was reached. What must
 * last from step to step (counted failures, restart delays) lies in the job's status, and is
 * written before the effect that it is about.
 *
 * Layer: pure. Ownership: the view borrows; the effects own what they hold (control_effects_done).
 * Not thread-safe. Source: training-operator v1.9.4; docs/differences.md says where and why not.
 */
#pragma once

#include "base/buf.h"
#include "control/content/gang.h"

#include <jansson.h>
#include <muster/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most effects of one step. The next step does the rest; WAKE_AT asks for that step at once. */
enum { CONTROL_EFFECTS_MAX = 1024 };

enum { CONTROL_OWN_CODE_MAX = 127 }; /* an exit code of the program itself, not 128 + a signal */

/* Where the job runs. Decisions that depend on it have comments that say so. */
enum control_target {
    CONTROL_TARGET_MACHINE, /* this machine: processes that still run hold its GPUs */
    CONTROL_TARGET_CLUSTER,
};

/* A node on which pods may be lost (broken.h), as the driver has seen it. */
struct control_node {
    const char *name;
    bool out_of_service; /* nothing runs on it any more: its taint says so */
    int64_t silent_ms;   /* how long it has not answered; -1: it answers */
    const char *since;   /* the cluster's time for that; only compared for equality */
};

struct control_view {
    json_t *job;               /* the PyTorchJob as stored */
    const json_t *pods;        /* arrays of objects of the job's namespace: those with the job's */
    const json_t *services;    /* labels, or more (objects that the job does not own are ignored) */
    const json_t *claims;      /* PersistentVolumeClaims; needed only with volumeClaimTemplates */
    const json_t *autoscalers; /* HorizontalPodAutoscalers; NULL: cannot be created there */
    const json_t *pod_groups;  /* of the gang's scheduler; NULL: cannot be created there */
                               /* each object is complete, or as projection.h leaves it */
    int64_t now_unix_ms;
    enum control_target target;
    struct control_gang gang;         /* which scheduler places the pods of a job together */
    const struct control_node *nodes; /* nodes that do not answer or are out of service */
    size_t node_count;
    int64_t lost_after_ms; /* how long a node may be silent; 0: for ever */
    bool restart_rules;    /* the cluster supports restartPolicyRules of containers */
};

/* What is done, and to what. struct control_effect says which of its fields each verb uses. */
enum control_verb {
    CONTROL_CREATE,
    CONTROL_UPDATE, /* of any object but the job */
    CONTROL_DELETE,
    CONTROL_UPDATE_STATUS, /* of the job */
    CONTROL_RECORD_EVENT,  /* about the job */
    CONTROL_WAKE_AT,
};

enum control_resource {
    CONTROL_JOB,
    CONTROL_POD,
    CONTROL_SERVICE,
    CONTROL_CLAIM,         /* PersistentVolumeClaim */
    CONTROL_AUTOSCALER,    /* HorizontalPodAutoscaler */
    CONTROL_VOLCANO_GROUP, /* PodGroup of Volcano */
    CONTROL_PLUGINS_GROUP, /* PodGroup of scheduler-plugins */
    CONTROL_RESOURCES,
};

/* Writes to the job itself (UPDATE_STATUS, DELETE of CONTROL_JOB) must fail if the job is no longer
 * the one of the view: the driver sends the view's resourceVersion with them, or the version that
 * an earlier effect of the same step returned. A DELETE of any other object is for `uid` only; so
 * is an UPDATE, whose merge patch contains the uid. Before a DELETE by force the driver must read
 * the node (control_node_is_still_lost); such a DELETE has no grace period. */
struct control_effect {
    enum control_verb verb;
    enum control_resource resource;
    bool warning;       /* RECORD_EVENT: type Warning, else Normal */
    bool of_previous;   /* RECORD_EVENT: reports that the effect before it was carried out */
    json_t *object;     /* CREATE: the object; UPDATE: a merge patch of it, with metadata.uid;
                           UPDATE_STATUS: the complete new .status */
    char *name;         /* CREATE, UPDATE, DELETE: object name; RECORD_EVENT: reason */
    char *uid;          /* DELETE of any object but the job */
    char *node;         /* DELETE of a pod by force, because this node is lost; else NULL */
    char *since;        /* its silence began then (control_node); NULL: its taint decides */
    char *text;         /* RECORD_EVENT: message */
    int64_t at_unix_ms; /* WAKE_AT: when to run a step even if nothing happens; one per step */
};

/* Whether the effect is that verb on that resource. */
static inline bool control_is(const struct control_effect *effect, enum control_verb verb,
                              enum control_resource resource)
{
    return effect->verb == verb && effect->resource == resource;
}

struct control_effects {
    struct control_effect *list;
    size_t count;
    size_t room;
    bool full;   /* CONTROL_EFFECTS_MAX was reached */
    bool failed; /* out of memory */
};

/* Computes the effects of a step. *ret_effects needs no initialisation; on success, and only then,
 * control_effects_done frees what it holds. MUSTER_EDATA: the job cannot be read (it must have
 * passed job_check). MUSTER_ENOMEM. */
int control_reconcile(const struct control_view *view, struct control_effects *ret_effects,
                      struct muster_err *err);
void control_effects_done(struct control_effects *effects);

/* Computes the effects for a job that control_reconcile cannot read (MUSTER_EDATA, `sentence`): the
 * condition Stalled and an event, once; its pods stay. A later step that can read the job removes
 * the condition. MUSTER_ENOMEM. */
int control_stalled(const struct control_view *view, const char *sentence,
                    struct control_effects *ret_effects, struct muster_err *err);

/* Returns when the clock of the stored job started, to the millisecond if that is recorded;
 * TIMESTAMP_NONE: it has not started. */
int64_t control_started_unix_ms(const json_t *job);

/* Returns the kind of the gang's PodGroups; CONTROL_VOLCANO_GROUP also if there are none. */
enum control_resource control_gang_resource(const struct control_gang *gang);

/* Returns false if spec.runPolicy.managedBy names another controller: then no step has effects. */
bool control_manages(const json_t *job);

/* Computes the event which reports that the API refused a CREATE, UPDATE or DELETE ("Error
 * creating: …"), as the only effect (none for other verbs). MUSTER_ENOMEM. */
int control_refused(const struct control_effect *effect, const char *sentence,
                    struct control_effects *ret_effects, struct muster_err *err);

/* Writes one line per effect, for golden tests and the debug log. */
void control_trace(const struct control_effects *effects, struct buf *out);

/* Returns the invariant that the effects violate for that view, or NULL. Tests call it after each
 * step. */
const char *control_check_invariants(const struct control_view *view,
                                     const struct control_effects *effects);

/* Makes the pod, its Service and its claims as a step would create them, for --dry-run and tests.
 * `job` is the stored object; *ret gets new references. role: "Master" or "Worker". */
int control_render(json_t *job, const char *role, int index, json_t **ret_pod, json_t **ret_service,
                   json_t **ret_claims, struct muster_err *err);

/* Why a finished or failing pod failed; the first failure of a job is used in the last line of
 * `muster run` and in the job's Failed message. `found` false: no pod of `pods` failed. Texts are
 * borrowed from the pods. */
struct control_failure {
    bool found;
    const char *pod;       /* its name */
    const char *container; /* its name; "" if the pod failed as a whole (evicted, deadline) */
    int rank;              /* node rank: control_rank; -1: the coordinator */
    int exit_code;         /* 128 + the signal if one killed it; -1: no container ended */
    const char *reason;    /* "Error", "OOMKilled", "DeadlineExceeded" … */
    const char *message;   /* termination message, or "" */
    int64_t at_unix_ms;
};

struct control_failure control_first_failure(const json_t *job, const json_t *pods);

/* Returns the phase of the rank in a pod of that job: "Pending", "Running", "Succeeded" or
 * "Failed". The job's own containers decide, even if containers that others have added still run
 * (phase.h). */
const char *control_rank_phase(const json_t *job, const json_t *pod);

/* Writes "mnist-worker-1 (rank 2) exited with code 3", "… was killed by signal 9 (SIGKILL)" or "…
 * ran out of memory and was killed (exit code 137)". */
void control_failure_text(const struct control_failure *failure, struct buf *out);
