/* What the agent's files share. agent.c: which pods there are, and who is to be looked at again.
 * job.c: one job's supervisor and placement. pod.c: one pod's machine, its effects and
 * its status. Below them start.c: what one container's start needs; stacks.c: what its
 * processes are in; event.c: what users are told.
 *
 * The first three call each other: what the supervisor tells a job is for a pod, a pod's end may be
 * its job's, and what either sets free makes the agent look at others again.
 *
 * Layer: program (daemon), private to the agent.
 */
#pragma once

#include "daemon/agent/agent.h"
#include "daemon/machine/placement.h"
#include "pod/pod.h"
#include "process/process.h"

#include <stdbool.h>
#include <uthash.h>

/* One job that has pods here: its supervisor lives as long as one of them may run. */
struct agent_job {
    struct agent *agent;
    char *uid;
    char *folder; /* jobs/UID */
    struct process_job *process;
    struct placement placement;
    size_t pod_count;
    bool share_gpus;
    bool no_gpus;
    char *visible_gpus; /* CUDA_VISIBLE_DEVICES of the shell it was submitted in; NULL: not set */
    bool in_podman;
    bool explained; /* past its deadline: the logs say what its ranks were in */
    bool ready;     /* the records of what ran before were replayed: pods may be scheduled */
    bool ending;    /* no pod was left; the supervisor is on its way out */
    bool over;      /* the supervisor is gone */
    UT_hash_handle hh;
};

/* One pod whose processes may run. */
struct agent_pod {
    struct agent *agent;
    struct agent_job *job;
    json_t *object;                     /* as it was first seen: its spec never changes */
    const char *uid, *namespace, *name; /* in object */
    struct pod *machine;
    uv_timer_t timer;
    bool adopted; /* the machine knows what ran before */
    bool scheduled;
    bool deleting;
    int64_t grace_s;   /* of the last deletion that was told; a shorter one may follow */
    bool gone;         /* the machine said POD_GONE */
    bool held_back;    /* an event has said that its GPUs are busy */
    bool owes_status;  /* the store did not take it (a full disk): agent_pod_settle */
    bool owes_removal; /* of the object */
    int depth;         /* of agent_pod_feed */
    UT_hash_handle hh;
};

struct agent {
    struct agent_options options;
    struct store_watch *watch;
    struct store_watch *job_watch;
    struct agent_job *jobs;           /* by uid */
    struct agent_pod *pods;           /* by uid */
    json_t *changed;                  /* set of pod keys "namespace/name" to look at */
    uv_idle_t idle;                   /* runs while the set holds something */
    uv_timer_t retry;                 /* runs while the store owes us a write */
    struct agent_question *questions; /* stacks.c: by ticket */
    int64_t last_ticket;
};

/* ---- agent.c ---- */

/* Looks at every pod of the store. */
int agent_look_at_all(struct agent *agent, struct muster_err *err);
/* At those of a job; job_uid may be NULL (out of memory): at all, later. */
void agent_look_at_pods_of(struct agent *agent, const char *job_uid);
/* Looks at every pod again that waits for a GPU. */
void agent_retry_waiting(struct agent *agent);
/* Does again, a little later, what failed: starts, writes. */
void agent_retry_soon(struct agent *agent);

/* ---- event.c ---- */

void agent_event(struct agent *agent, const json_t *about, bool warning, const char *reason,
                 const char *message);

/* ---- job.c ---- */

/* Puts the pod into its job, which is made, and its supervisor started or adopted, at the first
 * one. When the records of what ran before were replayed the pod is told POD_ADOPTED and scheduled.
 */
int agent_job_enter(struct agent *agent, struct agent_pod *pod, struct muster_err *err);
/* The job's last supervisor is still leaving, or its pods are: a new pod waits until they have. */
bool agent_job_is_ending(struct agent *agent, const json_t *pod);
/* At its deadline, before anything is killed, what its ranks are in goes into their logs. */
void agent_job_changed(struct agent *agent, const json_t *owner);
/* The pod is done with: without pods the supervisor ends. */
void agent_job_leave(struct agent_job *job);
void agent_job_free(struct agent_job *job);

/* ---- stacks.c ---- */

/* What the supervisor says to one of the questions; others are ignored. */
void agent_stacks_answer(struct agent *agent, int64_t ticket, const json_t *attempts);
/* The job's supervisor is gone: nothing of it runs. */
void agent_stacks_forget(const struct agent_job *job);
/* Nobody is answered any more. */
void agent_stacks_done(struct agent *agent);

/* ---- start.c ---- */

int agent_start_container(struct agent_pod *pod, const struct pod_effect *effect,
                          struct muster_err *err);
/* "POD-UID/CONTAINER/ATTEMPT"; the caller frees. NULL when out of memory. */
char *agent_attempt_id(const struct agent_pod *pod, const struct pod_effect *effect);

/* ---- pod.c ---- */

int agent_pod_start(struct agent *agent, json_t *object, struct muster_err *err);
void agent_pod_schedule(struct agent_pod *pod);
/* May be told again, with less grace. deadline_unix_ms, to the second, is when the grace ends that
 * the deletion began with; STAMP_NONE: it begins now. */
void agent_pod_delete(struct agent_pod *pod, int64_t grace_s, int64_t deadline_unix_ms);
void agent_pod_free(struct agent_pod *pod);
void agent_pod_feed(struct agent_pod *pod, const struct pod_event *event);
/* Writes what the store did not take before; true when it has. May be the end of the pod. */
bool agent_pod_settle(struct agent_pod *pod);
/* Whether the pod is still tracked: being fed an event may be the end of it. */
bool agent_pod_alive(const struct agent *agent, const struct agent_pod *pod);
