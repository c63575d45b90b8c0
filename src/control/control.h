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

/* More is left for the next step, which WAKE_AT asks for at once. */
enum { CONTROL_EFFECTS_MAX = 1024 };

/* Where the job runs: what is decided otherwise there is said where it is decided. */
enum { CONTROL_OWN_CODE_MAX = 127 }; /* an exit code of the program itself; 128 + a signal's */

enum control_target {
    CONTROL_TARGET_MACHINE, /* this one: what runs on holds its GPUs */
    CONTROL_TARGET_CLUSTER,
};

/* A node on which pods may be lost (broken.h), as the driver has seen it. */
struct control_node {
    const char *name;
    bool out_of_service; /* nothing runs there any more: its taint says so */
    int64_t silent_ms;   /* it has not answered for so long; -1: it answers */
    const char *since;   /* the cluster's own time of that; compared only */
};

struct control_view {
    json_t *job;               /* the PyTorchJob as stored */
    const json_t *pods;        /* arrays of objects of the job's namespace: those with the job's */
    const json_t *services;    /* labels, or any superset (strangers are left alone) */
    const json_t *claims;      /* PersistentVolumeClaims; needed only with volumeClaimTemplates */
    const json_t *autoscalers; /* HorizontalPodAutoscalers; NULL: none can be made there */
    const json_t *pod_groups;  /* of the gang's scheduler; NULL: none can be made there */
                               /* all of them whole, or as projection.h leaves them */
    int64_t now_unix_ms;
    enum control_target target;
    struct control_gang gang;         /* who schedules the pods of a job together */
    const struct control_node *nodes; /* those that do not answer or are out of service */
    size_t node_count;
    int64_t lost_after_ms; /* so long a node may be silent; 0: for ever */
    bool restart_rules;    /* containers may have restartPolicyRules there */
};

/* What is done, and to what. Which fields of struct control_effect a verb fills is said there. */
enum control_verb {
    CONTROL_CREATE,
    CONTROL_UPDATE, /* of what is not the job */
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
    CONTROL_PLUGINS_GROUP, /* … of scheduler-plugins */
    CONTROL_RESOURCES,
};

/* Writes to the job itself (UPDATE_STATUS, DELETE of CONTROL_JOB) must fail when the job
 * is no longer the one of the view: the driver sends the view's resourceVersion along, or the
 * version its own earlier effect of the same step gave. DELETE of anything else is for `uid` only;
 * so is UPDATE, whose merge patch names it. One by force must look at the node before
 * (control_node_is_still_lost), and leaves no grace period.
 */
struct control_effect {
    enum control_verb verb;
    enum control_resource resource;
    bool warning;       /* RECORD_EVENT: type Warning, else Normal */
    bool of_previous;   /* RECORD_EVENT: tells that the effect before it was carried out */
    json_t *object;     /* CREATE: the object; UPDATE: a merge patch of it, with metadata.uid;
                           UPDATE_STATUS: the new .status, whole */
    char *name;         /* CREATE, UPDATE, DELETE: object name; RECORD_EVENT: reason */
    char *uid;          /* DELETE of what is not the job */
    char *node;         /* DELETE of a pod by force, since this node is lost; else NULL */
    char *since;        /* … by its silence since then (control_node); NULL: by its taint */
    char *text;         /* RECORD_EVENT: message */
    int64_t at_unix_ms; /* WAKE_AT: run a step then, also when nothing happens; one per step */
};

/* Is it that verb on that resource? */
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

/* *ret_effects needs no initialisation; control_effects_done frees what it holds, on success only.
 * MUSTER_EDATA: the job cannot be read (it must have passed job_check). MUSTER_ENOMEM. */
int control_reconcile(const struct control_view *view, struct control_effects *ret_effects,
                      struct muster_err *err);
void control_effects_done(struct control_effects *effects);

/* The effects for a job that control_reconcile cannot read (MUSTER_EDATA, `sentence`): the
 * condition Stalled and an event, once; its pods stay. A later step that can read it takes the
 * condition away. MUSTER_ENOMEM. */
int control_stalled(const struct control_view *view, const char *sentence,
                    struct control_effects *ret_effects, struct muster_err *err);

/* When the clock of the stored job started: to the millisecond, where that is written down;
 * TIMESTAMP_NONE: it has not. */
int64_t control_started_unix_ms(const json_t *job);

/* The kind of its PodGroups; CONTROL_VOLCANO_GROUP where there are none, too. */
enum control_resource control_gang_resource(const struct control_gang *gang);

/* False: spec.runPolicy.managedBy names another controller, so a step has no effects, ever. */
bool control_manages(const json_t *job);

/* The event that tells of a CREATE, UPDATE or DELETE which the API refused ("Error creating: …"),
 * as the only effect (none for other verbs). MUSTER_ENOMEM. */
int control_refused(const struct control_effect *effect, const char *sentence,
                    struct control_effects *ret_effects, struct muster_err *err);

/* One line per effect, for golden tests and the debug log. */
void control_trace(const struct control_effects *effects, struct buf *out);

/* NULL, or which invariant the effects violate for that view. Tests run it after each step. */
const char *control_check_invariants(const struct control_view *view,
                                     const struct control_effects *effects);

/* The pod, its Service and its claims as they would be made, for --dry-run and tests. `job` is the
 * stored object; *ret gets new references. role: "Master" or "Worker". */
int control_render(json_t *job, const char *role, int index, json_t **ret_pod, json_t **ret_service,
                   json_t **ret_claims, struct muster_err *err);

/* Why a finished or failing pod failed, first failure first: for `muster run`'s last line and the
 * job's Failed message. `found` false: no pod of `pods` failed. Texts are borrowed from the pods.
 */
struct control_failure {
    bool found;
    const char *pod;       /* name */
    const char *container; /* name, "" when the pod failed as a whole (evicted, deadline) */
    int rank;              /* node rank: control_rank; -1: the coordinator */
    int exit_code;         /* 128 + signal for a killed one; -1: no container ended */
    const char *reason;    /* "Error", "OOMKilled", "DeadlineExceeded" … */
    const char *message;   /* termination message, or "" */
    int64_t at_unix_ms;
};

struct control_failure control_first_failure(const json_t *job, const json_t *pods);

/* "Pending", "Running", "Succeeded" or "Failed": of the rank in a pod of that job. Its own
 * containers decide, where others that somebody put beside them run on (phase.h). */
const char *control_rank_phase(const json_t *job, const json_t *pod);

/* "mnist-worker-1 (rank 2) exited with code 3", "… was killed by signal 9 (SIGKILL)", "… ran out of
 * memory and was killed (exit code 137)". */
void control_failure_text(const struct control_failure *failure, struct buf *out);
