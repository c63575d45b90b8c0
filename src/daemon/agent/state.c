/* The pods and jobs that the agent manages, and the list of effects. See state.h. */
#include "daemon/agent/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- States ---- */

#define BIT(state) (1U << AGENT_POD_##state)

/* The states that may come after each state. */
static const unsigned next_states[AGENT_POD_STATES] = {
    [AGENT_POD_ADMITTING] = BIT(ADOPTING),
    [AGENT_POD_ADOPTING] = BIT(ADOPTED) | BIT(KEEPING),
    [AGENT_POD_ADOPTED] = BIT(PLACING) | BIT(KEEPING),
    [AGENT_POD_PLACING] = BIT(PLACED) | BIT(WAITING) | BIT(KEEPING),
    [AGENT_POD_WAITING] = BIT(PLACING) | BIT(KEEPING),
    [AGENT_POD_PLACED] = BIT(KEEPING),
    [AGENT_POD_KEEPING] = BIT(REMOVING),
    [AGENT_POD_REMOVING] = 0,
};

void step_become(struct step_pod *pod, enum agent_pod_state next)
{
    assert(next_states[pod->state] & 1U << next);
    pod->state = next;
}

bool step_is_over(const struct step_pod *pod)
{
    return pod->state == AGENT_POD_KEEPING || pod->state == AGENT_POD_REMOVING;
}

bool step_is_leaving(const struct step_job *job)
{
    return job->state == AGENT_JOB_ENDING || job->state == AGENT_JOB_OVER;
}

/* ---- Effects ---- */

enum { EFFECTS_SPARE = 8 };

/* Makes room for one effect for each pod, and a few more, which is the most that a step has. It is
 * called before a pod is taken in. */
static bool reserve(struct agent_state *state, size_t pods)
{
    size_t room = pods + EFFECTS_SPARE;
    if (room <= state->effects.room) {
        return true;
    }
    struct agent_effect *list = realloc(state->effects.list, 2 * room * sizeof *list);
    if (list) {
        state->effects.list = list;
        state->effects.room = 2 * room;
    }
    return list != NULL;
}

void step_emit(struct agent_state *state, struct agent_effect effect)
{
    assert(state->effects.count < state->effects.room);
    state->effects.list[state->effects.count++] = effect;
}

void step_emit_of(struct agent_state *state, enum agent_effect_kind kind,
                  const struct step_pod *pod)
{
    step_emit(state,
              (struct agent_effect){.kind = kind, .pod = pod->number, .job = pod->job->number});
}

void step_feed(struct agent_state *state, const struct step_pod *pod, enum agent_food food)
{
    step_emit(state, (struct agent_effect){.kind = AGENT_FEED,
                                           .pod = pod->number,
                                           .job = pod->job->number,
                                           .food = food,
                                           .grace_s = pod->grace_s,
                                           .deadline_unix_ms = pod->deadline_unix_ms});
}

void step_retry_soon(struct agent_state *state)
{
    step_emit(state, (struct agent_effect){.kind = AGENT_RETRY_SOON});
}

/* ---- Managed pods and jobs ---- */

struct step_pod *step_pod_of(const struct agent_state *state, int64_t number)
{
    struct step_pod *pod = state->pods;
    while (pod && pod->number != number) {
        pod = pod->hh.next;
    }
    return pod;
}

struct step_job *step_job_of(const struct agent_state *state, int64_t number)
{
    struct step_job *job = state->jobs;
    while (job && job->number != number) {
        job = job->hh.next;
    }
    return job;
}

static void forget_job(struct agent_state *state, struct step_job *job)
{
    assert(job->pods == 0);
    HASH_DEL(state->jobs, job);
    free(job->uid);
    free(job);
}

void step_close_job(struct agent_state *state, struct step_job *job)
{
    step_emit(state, (struct agent_effect){.kind = AGENT_CLOSE_JOB, .job = job->number});
    forget_job(state, job);
}

/* Removes a pod from its job. A supervisor without pods is asked to end. */
static void leave_job(struct agent_state *state, struct step_job *job)
{
    assert(job->pods > 0 && job->state != AGENT_JOB_ENDING);
    if (--job->pods > 0) {
        return;
    }
    if (job->state == AGENT_JOB_OPENING) { /* no supervisor was started yet */
        forget_job(state, job);
    } else if (job->state == AGENT_JOB_OVER) {
        step_close_job(state, job);
    } else {
        job->state = AGENT_JOB_ENDING;
        step_emit(state, (struct agent_effect){.kind = AGENT_END_JOB, .job = job->number});
    }
}

static void free_pod(struct step_pod *pod)
{
    if (pod) {
        free(pod->uid);
        free(pod->key);
        free(pod);
    }
}

void step_forget_pod(struct agent_state *state, struct step_pod *pod)
{
    struct step_job *job = pod->job;
    HASH_DEL(state->pods, pod);
    free_pod(pod);
    leave_job(state, job);
}

static struct step_job *enter_job(struct agent_state *state, const char *uid)
{
    struct step_job *job = NULL;
    HASH_FIND_STR(state->jobs, uid, job);
    if (job) {
        return job;
    }
    job = calloc(1, sizeof *job);
    char *copy = strdup(uid);
    if (!job || !copy) {
        free(job);
        free(copy);
        return NULL;
    }
    *job = (struct step_job){.number = ++state->last_number, .uid = copy};
    HASH_ADD_KEYPTR(hh, state->jobs, job->uid, strlen(job->uid), job);
    return job;
}

static struct step_pod *new_pod(const struct agent_seen *seen)
{
    struct step_pod *pod = calloc(1, sizeof *pod);
    if (pod) {
        pod->uid = strdup(seen->uid);
        pod->key = strdup(seen->key);
    }
    if (!pod || !pod->uid || !pod->key) {
        free_pod(pod);
        return NULL;
    }
    return pod;
}

/* If there is no memory, the pod is tried again later. */
struct step_pod *step_take_in(struct agent_state *state, const struct agent_seen *seen)
{
    bool room = reserve(state, HASH_COUNT(state->pods) + 1);
    struct step_pod *pod = room ? new_pod(seen) : NULL;
    struct step_job *job = pod ? enter_job(state, seen->job) : NULL;
    if (!job) {
        free_pod(pod);
        step_retry_soon(state);
        return NULL;
    }
    pod->number = ++state->last_number;
    pod->job = job;
    job->pods++;
    HASH_ADD_KEYPTR(hh, state->pods, pod->uid, strlen(pod->uid), pod);
    return pod;
}

/* ---- Life ---- */

bool agent_state_init(struct agent_state *state)
{
    *state = (struct agent_state){0};
    return reserve(state, 0);
}

void agent_state_done(struct agent_state *state)
{
    struct step_pod *pod, *next_pod;
    HASH_ITER (hh, state->pods, pod, next_pod) {
        HASH_DEL(state->pods, pod);
        free_pod(pod);
    }
    struct step_job *job, *next_job;
    HASH_ITER (hh, state->jobs, job, next_job) {
        job->pods = 0;
        forget_job(state, job);
    }
    free(state->effects.list);
    *state = (struct agent_state){0};
}

size_t agent_state_pods(const struct agent_state *state)
{
    return HASH_COUNT(state->pods);
}

int64_t agent_state_find(const struct agent_state *state, const char *pod_uid)
{
    struct step_pod *pod = NULL;
    HASH_FIND_STR(state->pods, pod_uid, pod);
    return pod ? pod->number : 0;
}

bool agent_state_job_runs(const struct agent_state *state, int64_t job)
{
    const struct step_job *found = step_job_of(state, job);
    return found && !step_is_leaving(found);
}

/* ---- Invariants ---- */

#define JOB_BIT(state) (1U << AGENT_JOB_##state)

/* For each state of a pod: the states that its job may be in. */
static const unsigned states_of_job[AGENT_POD_STATES] = {
    [AGENT_POD_ADMITTING] = JOB_BIT(OPENING) | JOB_BIT(STARTING) | JOB_BIT(READY) | JOB_BIT(OVER),
    [AGENT_POD_ADOPTING] = JOB_BIT(STARTING) | JOB_BIT(OVER),
    [AGENT_POD_ADOPTED] = JOB_BIT(READY) | JOB_BIT(OVER),
    [AGENT_POD_PLACING] = JOB_BIT(READY) | JOB_BIT(OVER),
    [AGENT_POD_WAITING] = JOB_BIT(READY) | JOB_BIT(OVER),
    [AGENT_POD_PLACED] = JOB_BIT(READY) | JOB_BIT(OVER),
    [AGENT_POD_KEEPING] = JOB_BIT(STARTING) | JOB_BIT(READY) | JOB_BIT(OVER),
    [AGENT_POD_REMOVING] = JOB_BIT(STARTING) | JOB_BIT(READY) | JOB_BIT(OVER),
};

static const char *check_pod(const struct step_pod *pod)
{
    bool over = step_is_over(pod);
    if (!(states_of_job[pod->state] & 1U << pod->job->state)) {
        return "a pod is in a state that its job does not allow";
    }
    if (!over && (pod->gone || (pod->finished && !pod->deleting && !pod->owes_status))) {
        return "a pod that is over is kept on";
    }
    if (over && pod->owes_status) {
        return "a status is owed of a pod that is over";
    }
    if (pod->owes_removal && pod->state != AGENT_POD_REMOVING) {
        return "a removal is owed that was never asked for";
    }
    return pod->state == AGENT_POD_WAITING && !pod->told_waits ? "nobody knows what a pod waits for"
                                                               : NULL;
}

static const char *check_job(const struct agent_state *state, const struct step_job *job)
{
    size_t pods = 0;
    for (const struct step_pod *pod = state->pods; pod; pod = pod->hh.next) {
        pods += pod->job == job;
    }
    if (pods != job->pods) {
        return "a job has another number of pods than it says";
    }
    return (pods == 0) != (job->state == AGENT_JOB_ENDING)
               ? "a supervisor is ending with pods, or without pods is not"
               : NULL;
}

const char *agent_state_check(const struct agent_state *state)
{
    const char *broken = NULL;
    for (const struct step_job *job = state->jobs; job && !broken; job = job->hh.next) {
        broken = check_job(state, job);
    }
    for (const struct step_pod *pod = state->pods; pod && !broken; pod = pod->hh.next) {
        broken = pod->job == step_job_of(state, pod->job->number) ? check_pod(pod)
                                                                  : "a pod's job is not known";
    }
    return broken;
}
