/* What the agent's files share. From below:
 *
 *     note.c     what users are told about a pod
 *     state.c    who is looked after (pure)
 *     step.c     what is decided (pure; step.h has the states, events.h the words)
 *     queue.c    the events that wait
 *     job.c      one job's supervisor and placement; what it says is posted
 *     start.c    what one container's start needs
 *     pod.c      one pod: its machine, what that asks for, its status
 *     gpus.c     its GPUs
 *     over.c     its end: what is left of it, its object, its folder
 *     stacks.c   what a job's processes are in, for a request
 *     looks.c    what the store has, as events
 *     dispatch.c hands events to the step, and carries its effects out
 *
 * Nothing calls upwards: what a file has to tell those above it, it posts.
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

/* One job that has pods here: its supervisor lives as long as one of them may run. */
struct agent_job {
    struct agent *agent;
    int64_t number; /* of the step's */
    char *uid;
    char *folder; /* jobs/UID */
    struct process_job *process;
    struct placement placement;
    bool share_gpus;
    bool no_gpus;
    char *visible_gpus; /* CUDA_VISIBLE_DEVICES of the shell it was submitted in; NULL: not set */
    bool in_podman;
    bool explained;    /* past its deadline: the logs say what its ranks were in */
    json_t *strangers; /* orphans.c: {"POD/CONTAINER/ATTEMPT": true}; NULL: none */
    bool over;         /* the supervisor is gone: that is posted */
    char *why;         /* it was lost */
    UT_hash_handle hh;
};

/* One pod whose processes may run. */
struct agent_pod {
    struct agent *agent;
    struct agent_job *job;
    int64_t number;                     /* of the step's */
    json_t *object;                     /* as it was first seen: its spec never changes */
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
    bool node_gone; /* somebody deleted its object */
    struct agent_state state;
    struct agent_queue queue;
    struct agent_job *jobs; /* by number */
    struct agent_pod *pods; /* by number */
    uv_timer_t retry;       /* runs while something is to be tried again */
    struct disk *records;   /* what is left of pods is written */
    struct disk *removals;  /* folders are removed */
    struct agent_orphan *orphans;
    struct agent_question *questions; /* stacks.c: by ticket */
    int64_t last_ticket;
};

/* Whether a write to the store is done, or need not be done any more. After a full disk it is
 * neither. */
static inline bool agent_is_settled(int r)
{
    return r == 0 || r == MUSTER_ENOENT || r == MUSTER_ECONFLICT;
}

/* ---- note.c ---- */

void agent_note(struct agent *agent, const json_t *about, bool warning, const char *reason,
                const char *message);

/* ---- job.c ---- */

/* The job of that number, for a pod of it, which is made, and its supervisor started or adopted, at
 * the first one. */
int agent_job_open(struct agent *agent, int64_t number, const json_t *pod, struct agent_job **ret,
                   struct muster_err *err);
/* Asks its supervisor to end. */
void agent_job_end(struct agent_job *job);
void agent_job_free(struct agent_job *job);
struct agent_job *agent_job_of(const struct agent *agent, int64_t number);
/* At the job's deadline, before anything is killed, the stacks of its ranks go into their logs. */
void agent_job_changed(struct agent *agent, const json_t *owner);

/* ---- orphans.c ---- */

/* An attempt of a pod that is not looked after. Once the supervisor has told all of them, those of
 * pods that have no object are killed. */
void agent_stranger_started(struct agent_job *job, const char *id);
void agent_stranger_ended(struct agent_job *job, const char *id);
void agent_strangers_kill(struct agent_job *job);
/* Supervisors that live and whose jobs have no pods are ended. */
void agent_orphans_end(struct agent *agent);
/* Run the loop once more after this. */
void agent_orphans_free(struct agent *agent);

/* ---- start.c ---- */

int agent_start_container(struct agent_pod *pod, const struct pod_effect *effect,
                          struct muster_err *err);
/* "POD-UID/CONTAINER/ATTEMPT"; the caller frees. NULL when out of memory. */
char *agent_attempt_id(const struct agent_pod *pod, const struct pod_effect *effect);

/* ---- pod.c ---- */

/* Binds it to this node, and makes its machine. */
int agent_pod_new(struct agent *agent, int64_t number, const json_t *object, struct agent_pod **ret,
                  struct muster_err *err);
/* Run the loop once more after this. */
void agent_pod_free(struct agent_pod *pod);
struct agent_pod *agent_pod_of(const struct agent *agent, int64_t number);
/* Carries out what its machine asks for, and posts AGENT_FED. The event's time is set. */
void agent_pod_feed(struct agent_pod *pod, const struct pod_event *event);
/* May be fed again, with less grace. deadline_unix_ms, to the second, is when the grace ends that
 * the deletion began with; TIMESTAMP_NONE: it begins now. */
void agent_pod_feed_delete(struct agent_pod *pod, int64_t grace_s, int64_t deadline_unix_ms);
/* Writes its status; posts AGENT_WROTE. */
void agent_pod_write(struct agent_pod *pod);

/* ---- gpus.c ---- */

/* Takes the GPUs it wants, if it has none yet and the node takes pods; posts AGENT_PLACED or
 * AGENT_NOT_PLACED. */
void agent_place(struct agent_pod *pod);
/* Posts AGENT_ROOM_MADE when it had any. */
void agent_give_back(struct agent_pod *pod);
/* What is still held in the name of a job without pods: of one that ended, or went, when a
 * controller before us died. */
void agent_give_back_rest(struct agent_job *job);

/* ---- over.c ---- */

/* Writes down what is left of it; posts AGENT_KEPT. */
void agent_pod_keep(struct agent_pod *pod);
/* Removes its object; posts AGENT_REMOVED. */
void agent_pod_remove(struct agent_pod *pod);
/* Nothing of it runs any more. What its emptyDirs held goes with it; its logs stay with the job. */
void agent_pod_let_go(struct agent_pod *pod);

/* ---- stacks.c ---- */

/* What the supervisor says to one of the questions; others are ignored. */
void agent_stacks_answer(struct agent *agent, int64_t ticket, const json_t *attempts);
/* The job's supervisor is gone: nothing of it runs. */
void agent_stacks_forget(const struct agent_job *job);
/* Nobody is answered any more. */
void agent_stacks_done(struct agent *agent);

/* ---- looks.c ---- */

/* Posts a look at a pod. */
void agent_look_at_pod(struct agent *agent, const char *namespace, const char *name);
/* Looks at every pod of the store that may be of interest. */
int agent_look_at_all(struct agent *agent, struct muster_err *err);
/* Looks at the pods of a job. */
void agent_look_at_pods_of(struct agent *agent, const char *job_uid);
/* Looks at every pod of the store, and at those looked after whose object may be gone. */
void agent_look_again(struct agent *agent);
/* Reads what the store has into item->object and item->event; false: it cannot tell, and is asked
 * again. */
bool agent_look(struct agent *agent, struct agent_item *item);
/* Removes the object of a look: nothing runs for it. */
void agent_discard(struct agent *agent, const struct agent_item *item);
/* Posts AGENT_RETRY, a little later. */
void agent_retry_soon(struct agent *agent);
