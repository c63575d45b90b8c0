/* What the agent's files share. From below:
 *
 *     note.c     events for the user about a pod
 *     state.c    the pods and jobs that the agent manages (pure)
 *     step.c     the decisions (pure; step.h has the states, events.h the words)
 *     queue.c    the events that wait
 *     job.c      one job's supervisor and placement; it posts the supervisor's messages
 *     start.c    what one container's start needs
 *     pod.c      one pod: its machine, what that asks for, its status
 *     gpus.c     its GPUs
 *     over.c     its end: its remains, its object, its folder
 *     stacks.c   the stacks of a job's processes, for a request
 *     looks.c    the content of the store, as events
 *     dispatch.c hands events to the step, and carries its effects out
 *
 * No file calls a function of a later file in this list: it posts an event instead.
 *
 * Layer: program (daemon), private to the agent.
 */
#pragma once

#include "daemon/agent/agent.h"
#include "daemon/agent/queue.h"
#include "daemon/agent/step.h"
#include "daemon/machine/disk.h"
#include "daemon/machine/placement.h"
#include "pod/pod.h"
#include "process/process.h"

#include <stdbool.h>
#include <uthash.h>

/* One job that has pods here: its supervisor lives as long as a pod of the job may run. */
struct agent_job {
    struct agent *agent;
    int64_t number; /* the number of the job in the step's state */
    char *uid;
    char *folder; /* jobs/UID */
    struct process_job *process;
    struct placement placement;
    bool share_gpus;
    bool no_gpus;
    char *visible_gpus; /* CUDA_VISIBLE_DEVICES of the shell it was submitted in; NULL: not set */
    bool in_podman;
    bool explained;    /* it is past its deadline, and the stacks of its ranks are in the logs */
    json_t *strangers; /* for orphans.c: {"POD/CONTAINER/ATTEMPT": true}; NULL: none */
    bool over;         /* the supervisor is gone, and an event that says so was posted */
    char *why;         /* why the supervisor was lost */
    UT_hash_handle hh;
};

/* One pod whose processes may run. */
struct agent_pod {
    struct agent *agent;
    struct agent_job *job;
    int64_t number;                     /* the number of the pod in the step's state */
    json_t *object;                     /* as it was seen first: its spec never changes */
    const char *uid, *namespace, *name; /* in object */
    struct pod *machine;
    uv_timer_t timer;
    UT_hash_handle hh;
};

struct agent {
    struct agent_options options;
    struct store_watch *watch;
    struct store_watch *job_watch;
    struct store_watch *node_watch;
    bool node_gone; /* somebody deleted the Node object */
    struct agent_state state;
    struct agent_queue queue;
    struct agent_job *jobs; /* by number */
    struct agent_pod *pods; /* by number */
    uv_timer_t retry;       /* runs while something must be tried again */
    struct disk *records;   /* writes the objects of pods that are over */
    struct disk *removals;  /* removes folders */
    struct agent_orphan *orphans;
    struct agent_question *questions; /* for stacks.c, by ticket */
    int64_t last_ticket;
};

/* Whether a write to the store is done, or is not needed any more. It is neither if the disk is
 * full. */
static inline bool agent_is_settled(int r)
{
    return r == 0 || r == MUSTER_ENOENT || r == MUSTER_ECONFLICT;
}

/* ---- note.c ---- */

void agent_note(struct agent *agent, const json_t *about, bool warning, const char *reason,
                const char *message);

/* ---- job.c ---- */

/* Returns the job with this number. At the job's first pod the job is made, and its supervisor is
 * started or adopted. */
int agent_job_open(struct agent *agent, int64_t number, const json_t *pod, struct agent_job **ret,
                   struct muster_err *err);
/* Asks the job's supervisor to end. */
void agent_job_end(struct agent_job *job);
void agent_job_free(struct agent_job *job);
struct agent_job *agent_job_of(const struct agent *agent, int64_t number);
/* Writes the stacks of the job's ranks into their logs, when the job has reached its deadline and
 * before anything is killed. */
void agent_job_changed(struct agent *agent, const json_t *owner);

/* ---- orphans.c ---- */

/* Notes an attempt of a pod that the agent does not manage. When the supervisor has reported all
 * attempts, agent_strangers_kill kills those whose pods have no object. */
void agent_stranger_started(struct agent_job *job, const char *id);
void agent_stranger_ended(struct agent_job *job, const char *id);
void agent_strangers_kill(struct agent_job *job);
/* Ends supervisors that still live although their jobs have no pods. */
void agent_orphans_end(struct agent *agent);
/* Run the loop once more after this. */
void agent_orphans_free(struct agent *agent);

/* ---- start.c ---- */

int agent_start_container(struct agent_pod *pod, const struct pod_effect *effect,
                          struct muster_err *err);
/* Returns "POD-UID/CONTAINER/ATTEMPT", which the caller frees; NULL when out of memory. */
char *agent_attempt_id(const struct agent_pod *pod, const struct pod_effect *effect);

/* ---- pod.c ---- */

/* Binds the pod to this node, and makes its machine. */
int agent_pod_new(struct agent *agent, int64_t number, const json_t *object, struct agent_pod **ret,
                  struct muster_err *err);
/* Run the loop once more after this. */
void agent_pod_free(struct agent_pod *pod);
struct agent_pod *agent_pod_of(const struct agent *agent, int64_t number);
/* Feeds the pod's machine, carries out what the machine asks for, and posts AGENT_FED. Sets the
 * event's time. */
void agent_pod_feed(struct agent_pod *pod, const struct pod_event *event);
/* Tells the machine that its pod is deleted; may be called again, with less grace.
 * deadline_unix_ms, rounded down to seconds, is when the first grace period of the deletion ends;
 * TIMESTAMP_NONE: the grace period begins now. */
void agent_pod_feed_delete(struct agent_pod *pod, int64_t grace_s, int64_t deadline_unix_ms);
/* Writes the pod's status; posts AGENT_WROTE. */
void agent_pod_write(struct agent_pod *pod);

/* ---- gpus.c ---- */

/* Takes the GPUs that the pod wants, if it has none yet and the node accepts pods; posts
 * AGENT_PLACED or AGENT_NOT_PLACED. */
void agent_place(struct agent_pod *pod);
/* Gives the pod's GPUs back; posts AGENT_ROOM_MADE if it had any. */
void agent_give_back(struct agent_pod *pod);
/* Gives back the GPUs that a job without pods still holds: those of pods that ended, or were
 * deleted, when an earlier controller died. */
void agent_give_back_rest(struct agent_job *job);

/* ---- over.c ---- */

/* Writes the pod's object and last status to the disk; posts AGENT_KEPT. */
void agent_pod_keep(struct agent_pod *pod);
/* Removes the pod's object; posts AGENT_REMOVED. */
void agent_pod_remove(struct agent_pod *pod);
/* Frees a pod of which nothing runs any more. The content of its emptyDirs is deleted; its logs
 * stay with the job. */
void agent_pod_let_go(struct agent_pod *pod);

/* ---- stacks.c ---- */

/* Answers a request with what the supervisor has reported; ignores an unknown ticket. */
void agent_stacks_answer(struct agent *agent, int64_t ticket, const json_t *attempts);
/* Answers the requests about a job whose supervisor is gone: nothing of the job runs. */
void agent_stacks_forget(const struct agent_job *job);
/* Drops all requests without an answer. */
void agent_stacks_done(struct agent *agent);

/* ---- looks.c ---- */

/* Posts a look at a pod. */
void agent_look_at_pod(struct agent *agent, const char *namespace, const char *name);
/* Posts a look at each pod of the store that the agent may have to act on. */
int agent_look_at_all(struct agent *agent, struct muster_err *err);
/* Posts a look at each pod of a job. */
void agent_look_at_pods_of(struct agent *agent, const char *job_uid);
/* Posts a look at each pod of the store, and at each managed pod, whose object may be gone. */
void agent_look_again(struct agent *agent);
/* Reads the object from the store into item->object and item->event. Returns false if the store
 * cannot answer: then it is asked again later. */
bool agent_look(struct agent *agent, struct agent_item *item);
/* Removes the object that a look has read, for which nothing runs. */
void agent_discard(struct agent *agent, const struct agent_item *item);
/* Posts AGENT_RETRY, a little later. */
void agent_retry_soon(struct agent *agent);
