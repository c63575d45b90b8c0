/* See step.h. */
#include "daemon/agent/step.h"

#include <assert.h>
#include <string.h>

/* ---- A pod's states ---- */

static void place(struct agent_state *state, struct step_pod *pod)
{
    if (!pod->deleting) {
        step_become(pod, AGENT_POD_PLACING);
        step_emit_of(state, AGENT_PLACE, pod);
    }
}

/* Begins the end of a pod that is over, or places a pod that was adopted. A finished pod stays
 * until the store has its status, because no other program can write it; a pod whose object is
 * deleted needs no status. */
static void look_whether_over(struct agent_state *state, struct step_pod *pod)
{
    bool finished = pod->finished && !pod->deleting;
    if (pod->gone || (finished && !pod->owes_status)) {
        pod->owes_status = false;
        step_become(pod, AGENT_POD_KEEPING);
        step_emit_of(state, AGENT_KEEP, pod);
    } else if (pod->state == AGENT_POD_ADOPTED && !finished) {
        place(state, pod);
    }
}

static void delete_pod(struct agent_state *state, struct step_pod *pod, int64_t grace_s,
                       int64_t deadline_unix_ms)
{
    assert(grace_s >= 0);
    if (pod->deleting && grace_s >= pod->grace_s) {
        return; /* the machine knows it already */
    }
    pod->deleting = true;
    pod->grace_s = grace_s;
    pod->deadline_unix_ms = deadline_unix_ms;
    if (pod->state != AGENT_POD_ADMITTING && !step_is_over(pod)) {
        step_feed(state, pod, AGENT_FEED_DELETE);
    }
}

/* ---- What the store has ---- */

/* Treats every other pod of the same name as deleted: a pod that was deleted and made again has
 * another uid, and the earlier pod has no object any more. */
static void forget_others(struct agent_state *state, const struct agent_seen *seen)
{
    for (struct step_pod *pod = state->pods; pod; pod = pod->hh.next) {
        bool same = seen->uid && strcmp(pod->uid, seen->uid) == 0;
        if (!same && strcmp(pod->key, seen->key) == 0) {
            delete_pod(state, pod, 0, INT64_MIN);
        }
    }
}

/* Takes in a pod that may have processes. A pod that was being deleted when the earlier controller
 * died still has its processes, and the rest of its grace period. */
static void admit(struct agent_state *state, const struct agent_seen *seen)
{
    struct step_job *job = NULL;
    HASH_FIND_STR(state->jobs, seen->job, job);
    if (seen->deleting && (seen->over || !seen->may_have_run)) {
        step_emit(state, (struct agent_effect){.kind = AGENT_DISCARD});
    } else if (!seen->over && !(job && step_is_leaving(job))) {
        struct step_pod *pod = step_take_in(state, seen);
        if (pod) {
            step_emit_of(state, AGENT_ADMIT, pod);
        }
    }
}

static void on_seen(struct agent_state *state, const struct agent_event *event)
{
    const struct agent_seen *seen = &event->seen;
    struct step_pod *pod = NULL;
    forget_others(state, seen);
    if (!seen->uid) {
        return;
    }
    HASH_FIND_STR(state->pods, seen->uid, pod);
    if (!pod) {
        admit(state, seen);
        HASH_FIND_STR(state->pods, seen->uid, pod);
    }
    if (pod && seen->deleting) {
        delete_pod(state, pod, seen->grace_s, seen->deadline_unix_ms);
    }
}

/* ---- Answers about a pod ---- */

static void adopt(struct agent_state *state, struct step_pod *pod)
{
    step_become(pod, AGENT_POD_ADOPTED);
    step_feed(state, pod, AGENT_FEED_ADOPTED);
}

static void on_admitted(struct agent_state *state, const struct agent_event *event)
{
    struct step_pod *pod = step_pod_of(state, event->pod);
    assert(pod && "nothing forgets a pod that is being admitted");
    step_become(pod, AGENT_POD_ADOPTING);
    if (pod->job->state == AGENT_JOB_OPENING) {
        pod->job->state = AGENT_JOB_STARTING;
    }
    if (pod->deleting) {
        step_feed(state, pod, AGENT_FEED_DELETE);
    }
    if (pod->job->state == AGENT_JOB_OVER) { /* lost while the pod was admitted */
        step_feed(state, pod, AGENT_FEED_LOST);
    } else if (pod->job->state == AGENT_JOB_READY) {
        adopt(state, pod);
    }
}

static void on_refused(struct agent_state *state, const struct agent_event *event)
{
    struct step_pod *pod = step_pod_of(state, event->pod);
    assert(pod && pod->state == AGENT_POD_ADMITTING);
    step_forget_pod(state, pod);
    step_retry_soon(state);
}

static void on_news(struct agent_state *state, const struct agent_event *event)
{
    struct step_pod *pod = step_pod_of(state, event->pod);
    if (pod && !step_is_over(pod)) {
        step_feed(state, pod, AGENT_FEED_NEWS);
    }
}

static void note_status(struct agent_state *state, struct step_pod *pod, enum agent_status status)
{
    if (status != AGENT_STATUS_SAME) {
        pod->owes_status = status == AGENT_STATUS_OWED;
    }
    if (pod->owes_status) {
        step_retry_soon(state);
    }
}

static void on_fed(struct agent_state *state, const struct agent_event *event)
{
    struct step_pod *pod = step_pod_of(state, event->pod);
    if (!pod || step_is_over(pod)) {
        return;
    }
    pod->finished = event->finished;
    pod->gone = pod->gone || event->gone;
    assert(!pod->gone || pod->deleting);
    note_status(state, pod, event->status);
    look_whether_over(state, pod);
}

static void on_placed(struct agent_state *state, const struct agent_event *event)
{
    struct step_pod *pod = step_pod_of(state, event->pod);
    if (pod && pod->state == AGENT_POD_PLACING) {
        step_become(pod, AGENT_POD_PLACED);
        if (!pod->deleting) {
            step_feed(state, pod, AGENT_FEED_SCHEDULED);
        }
    }
}

static void on_not_placed(struct agent_state *state, const struct agent_event *event)
{
    struct step_pod *pod = step_pod_of(state, event->pod);
    if (pod && pod->state == AGENT_POD_PLACING) {
        step_become(pod, AGENT_POD_WAITING);
        if (!pod->told_waits) {
            pod->told_waits = true;
            step_emit_of(state, AGENT_TELL_WAITS, pod);
        }
    }
}

static void on_room_made(struct agent_state *state, const struct agent_event *event)
{
    (void)event;
    for (struct step_pod *pod = state->pods; pod; pod = pod->hh.next) {
        if (pod->state == AGENT_POD_WAITING) {
            place(state, pod);
        }
    }
}

static void let_go(struct agent_state *state, struct step_pod *pod)
{
    step_emit_of(state, AGENT_LET_GO, pod);
    step_forget_pod(state, pod);
}

/* The machine of a pod that was deleted meanwhile is not fed with the deletion: nothing of the pod
 * runs. */
static void on_kept(struct agent_state *state, const struct agent_event *event)
{
    struct step_pod *pod = step_pod_of(state, event->pod);
    assert(pod && pod->state == AGENT_POD_KEEPING);
    if (pod->deleting) {
        step_become(pod, AGENT_POD_REMOVING);
        step_emit_of(state, AGENT_REMOVE, pod);
    } else {
        let_go(state, pod);
    }
}

/* ---- Trying again what failed ---- */

static void settle_next(struct agent_state *state)
{
    struct step_pod *pod = state->pods;
    while (pod && !pod->owes_status && !pod->owes_removal) {
        pod = pod->hh.next;
    }
    state->settling = pod ? pod->number : 0;
    if (pod) {
        step_emit_of(state, pod->owes_removal ? AGENT_REMOVE : AGENT_WRITE, pod);
    }
}

/* After a success the next pod with an owed write or removal follows; a failure ends the round. */
static void go_on_settling(struct agent_state *state, int64_t pod, bool paid)
{
    if (state->settling == pod && paid) {
        settle_next(state);
    } else if (state->settling == pod) {
        state->settling = 0;
    }
}

static void on_wrote(struct agent_state *state, const struct agent_event *event)
{
    struct step_pod *pod = step_pod_of(state, event->pod);
    if (pod && !step_is_over(pod)) {
        note_status(state, pod, event->status);
        look_whether_over(state, pod);
    }
    go_on_settling(state, event->pod, event->status != AGENT_STATUS_OWED);
}

static void on_removed(struct agent_state *state, const struct agent_event *event)
{
    struct step_pod *pod = step_pod_of(state, event->pod);
    if (pod && event->settled) {
        assert(pod->state == AGENT_POD_REMOVING);
        let_go(state, pod);
    } else if (pod) {
        pod->owes_removal = true;
        step_retry_soon(state);
    }
    go_on_settling(state, event->pod, event->settled);
}

static void on_retry(struct agent_state *state, const struct agent_event *event)
{
    (void)event;
    settle_next(state);
    step_emit(state, (struct agent_effect){.kind = AGENT_LOOK_AGAIN});
}

/* ---- Events from a supervisor ---- */

static void on_job_ready(struct agent_state *state, const struct agent_event *event)
{
    struct step_job *job = step_job_of(state, event->job);
    if (!job || job->state != AGENT_JOB_STARTING) {
        return; /* its pods left before */
    }
    job->state = AGENT_JOB_READY;
    for (struct step_pod *pod = state->pods; pod; pod = pod->hh.next) {
        if (pod->job == job && pod->state == AGENT_POD_ADOPTING) {
            adopt(state, pod);
        }
    }
}

static void on_job_lost(struct agent_state *state, const struct agent_event *event)
{
    struct step_job *job = step_job_of(state, event->job);
    if (!job) {
        return;
    }
    job->state = AGENT_JOB_OVER;
    for (struct step_pod *pod = state->pods; pod; pod = pod->hh.next) {
        if (pod->job == job && pod->state != AGENT_POD_ADMITTING && !step_is_over(pod)) {
            step_feed(state, pod, AGENT_FEED_LOST);
        }
    }
    if (job->pods == 0) {
        step_close_job(state, job);
    }
}

static void on_job_ended(struct agent_state *state, const struct agent_event *event)
{
    struct step_job *job = step_job_of(state, event->job);
    if (job && job->pods == 0) {
        step_close_job(state, job);
    } else if (job) {
        job->state = AGENT_JOB_OVER;
    }
}

/* ---- The step ---- */

typedef void on_event(struct agent_state *state, const struct agent_event *event);

static on_event *const handlers[AGENT_EVENT_KINDS] = {
    [AGENT_SEEN] = on_seen,
    [AGENT_ADMITTED] = on_admitted,
    [AGENT_REFUSED] = on_refused,
    [AGENT_SUPERVISOR_READY] = on_job_ready,
    [AGENT_SUPERVISOR_LOST] = on_job_lost,
    [AGENT_SUPERVISOR_ENDED] = on_job_ended,
    [AGENT_NEWS] = on_news,
    [AGENT_FED] = on_fed,
    [AGENT_PLACED] = on_placed,
    [AGENT_NOT_PLACED] = on_not_placed,
    [AGENT_ROOM_MADE] = on_room_made,
    [AGENT_WROTE] = on_wrote,
    [AGENT_KEPT] = on_kept,
    [AGENT_REMOVED] = on_removed,
    [AGENT_RETRY] = on_retry,
};

const struct agent_effects *agent_step(struct agent_state *state, const struct agent_event *event)
{
    assert(event->kind < AGENT_EVENT_KINDS && handlers[event->kind]);
    state->effects.count = 0;
    handlers[event->kind](state, event);
    return &state->effects;
}
