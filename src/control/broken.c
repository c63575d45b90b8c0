/* See broken.h. */
#include "control/broken.h"

#include "base/doc.h"
#include "base/time/timestamp.h"
#include "control/failure.h"

#include <string.h>

enum { UNTRAINED_MS = 60000, COORDINATOR_END_MS = 10000 };

bool control_is_permanent(const struct job *job, const struct control_member *pod)
{
    switch (job->replica[pod->role].restart_policy) {
    case JOB_NEVER: return true;
    case JOB_EXIT_CODE: return !control_may_retry(control_exit_code(pod->object));
    case JOB_ALWAYS:
    case JOB_ON_FAILURE: return false;
    }
    return false;
}

bool control_is_trained(const struct control_observed *o)
{
    return o->job->coordinated && o->count[JOB_MASTER].succeeded > 0;
}

int control_unfinished_workers(const struct control_observed *o)
{
    int unfinished = 0;
    for (size_t i = 0; i < o->pod_count; i++) {
        const struct control_member *pod = &o->pods[i];
        unfinished += pod->in_range && pod->role == JOB_WORKER &&
                      (pod->phase == CONTROL_RUNNING || pod->phase == CONTROL_PENDING);
    }
    return unfinished;
}

static int64_t ended_at(const json_t *pod)
{
    int64_t last = TIMESTAMP_NONE;
    size_t i;
    json_t *status;
    json_array_foreach (doc_at(pod, "status.containerStatuses"), i, status) {
        int64_t end = timestamp_read(doc_text(status, "state.terminated.finishedAt", NULL));
        last = end != TIMESTAMP_NONE && (last == TIMESTAMP_NONE || end > last) ? end : last;
    }
    return last;
}

int64_t control_untrained_at(const struct control_step *s)
{
    const struct job *job = s->o->job;
    const struct control_count *count = s->o->count;
    int64_t last = TIMESTAMP_NONE;
    if (!job->coordinated || count[JOB_MASTER].active == 0 || count[JOB_WORKER].succeeded == 0 ||
        count[JOB_WORKER].succeeded < job->replica[JOB_WORKER].replicas) {
        return INT64_MAX;
    }
    for (size_t i = 0; i < s->o->pod_count; i++) {
        const struct control_member *pod = &s->o->pods[i];
        int64_t end = pod->role == JOB_WORKER ? ended_at(pod->object) : TIMESTAMP_NONE;
        last = end != TIMESTAMP_NONE && (last == TIMESTAMP_NONE || end > last) ? end : last;
    }
    return last == TIMESTAMP_NONE ? INT64_MAX : last + UNTRAINED_MS;
}

/* If this Worker's exit code says that the coordinator reported to it that the job has failed:
 * until when to wait for the coordinator's own end. INT64_MIN: the code does not say so. */
static int64_t told_until(const struct control_step *s, const struct control_member *pod)
{
    if (!s->o->job->coordinated || pod->role != JOB_WORKER || s->o->count[JOB_MASTER].active == 0 ||
        control_exit_code(pod->object) != muster_code_exit(MUSTER_EFAILED)) {
        return INT64_MIN;
    }
    int64_t end = ended_at(pod->object);
    return end == TIMESTAMP_NONE ? INT64_MIN : end + COORDINATOR_END_MS;
}

int64_t control_coordinator_end_awaited_until(const struct control_step *s)
{
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < s->o->pod_count; i++) {
        const struct control_member *pod = &s->o->pods[i];
        int64_t until = pod->phase == CONTROL_FAILED_PHASE ? told_until(s, pod) : INT64_MIN;
        first = until > s->now_unix_ms && until < first ? until : first;
    }
    return first;
}

/* Whether the failed Worker is tolerated: a coordinator continues without a Worker that is not
 * replaced, as long as another Worker is left. */
static bool is_borne(const struct control_step *s, const struct control_member *pod)
{
    const struct job *job = s->o->job;
    const struct control_count *workers = &s->o->count[JOB_WORKER];
    if (pod->role == JOB_WORKER && control_is_trained(s->o) && !control_is_permanent(job, pod)) {
        return true;
    }
    if (told_until(s, pod) > s->now_unix_ms) {
        return true;
    }
    return job->coordinated && pod->role == JOB_WORKER &&
           job->replica[JOB_WORKER].restart_policy == JOB_NEVER &&
           workers->failed + workers->succeeded < job->replica[JOB_WORKER].replicas;
}

/* A coordinator that was killed is restarted in its pod. A coordinator that has reported that the
 * job has failed is restarted, too, if only the pod's policy decides about restarts; it then
 * reports the same again. */
bool control_coordinator_failed(const struct control_step *s)
{
    const struct job *job = s->o->job;
    const struct control_member *pod =
        job->coordinated ? control_find_pod(s->o, JOB_MASTER, 0) : NULL;
    bool as_a_whole = pod && *doc_text(pod->object, "status.reason", ""); /* evicted or lost */
    if (!pod || pod->terminating || (pod->phase == CONTROL_FAILED_PHASE && as_a_whole)) {
        return false;
    }
    const json_t *container = job_main_container(&job->replica[JOB_MASTER]);
    int code = control_last_exit_code(pod->object, doc_text(container, "name", ""));
    return code > 0 && !control_may_retry(code);
}

/* Returns the first failed pod in range that fits: permanent or not, under Never or not. */
const struct control_member *control_find_broken(const struct control_step *s, bool permanent,
                                                 bool never)
{
    for (size_t i = 0; i < s->o->pod_count; i++) {
        const struct control_member *pod = &s->o->pods[i];
        if (!pod->in_range || pod->terminating || pod->phase != CONTROL_FAILED_PHASE ||
            is_borne(s, pod)) {
            continue;
        }
        bool is_never = s->o->job->replica[pod->role].restart_policy == JOB_NEVER;
        if (control_is_permanent(s->o->job, pod) == permanent && is_never == never) {
            return pod;
        }
    }
    return NULL;
}

bool control_any_broken(const struct control_step *s)
{
    return control_find_broken(s, true, true) || control_find_broken(s, true, false) ||
           control_find_broken(s, false, false);
}

static const struct control_node *find_node(const struct control_view *view, const char *name)
{
    for (size_t i = 0; i < view->node_count; i++) {
        if (strcmp(view->nodes[i].name, name) == 0) {
            return &view->nodes[i];
        }
    }
    return NULL;
}

/* Whether the step waits for the end of this pod. A pod that has ended may stay. A pod that has not
 * started is evicted by the cluster first: if it were replaced at once, a pod that tolerates every
 * taint would be placed on the same node again and again. */
static bool is_waited_for(const struct control_member *pod)
{
    return pod->phase == CONTROL_RUNNING || pod->terminating;
}

int64_t control_lost_in_ms(const struct control_view *view, const struct control_member *pod,
                           const struct control_node **ret_node)
{
    const struct control_node *node = find_node(view, doc_text(pod->object, "spec.nodeName", ""));
    if (!node || !is_waited_for(pod)) {
        return INT64_MAX;
    }
    *ret_node = node;
    if (node->out_of_service) {
        return 0;
    }
    if (view->lost_after_ms == 0 || node->silent_ms < 0) {
        return INT64_MAX;
    }
    int64_t left = view->lost_after_ms - node->silent_ms;
    return left > 0 ? left : 0;
}
