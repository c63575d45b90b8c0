/* See failure.h and control.h. */
#include "control/failure.h"

#include "base/doc.h"
#include "base/text.h"
#include "base/time/timestamp.h"
#include "control/content/environment.h"
#include "control/observe.h"

#include <signal.h>
#include <string.h>

static const char *const status_lists[] = {"status.initContainerStatuses",
                                           "status.containerStatuses"};
enum {
    STATUS_LISTS = 2,
    MESSAGE_BYTES_MAX = 1024,
    KILLED_CODE = 128 + SIGKILL,
    TERM_CODE = 128 + SIGTERM
};

/* Returns the last end of a container that is down; NULL while it runs, starts, or if it never ran.
 * While it waits for its back-off, its end is in lastState and its restart is not yet counted. */
static const json_t *down_since(const json_t *container)
{
    const json_t *terminated = doc_at(container, "state.terminated");
    const char *waits = doc_text(container, "state.waiting.reason", "");
    bool backs_off = strcmp(waits, "CrashLoopBackOff") == 0;
    return backs_off ? doc_at(container, "lastState.terminated") : terminated;
}

/* Returns the exit code, limited to 0 to 255: a process has no others. */
static int code_of(const json_t *terminated)
{
    int64_t code = doc_int(terminated, "exitCode", 0);
    return 0 <= code && code <= 255 ? (int)code : 255;
}

static bool failed(const json_t *terminated)
{
    return terminated && code_of(terminated) != 0;
}

/* Whether the job's own containers decided how the pod ended, and the cluster's phase is another
 * one because of other containers. */
static bool ended_on_its_own(const struct control_member *pod)
{
    return pod->phase != pod->cluster_phase;
}

static bool is_own(const struct job *job, const struct control_member *pod, const json_t *status)
{
    const json_t *own = doc_at(job->replica[pod->role].template, "spec.containers");
    return doc_find(own, "name", doc_text(status, "name", "")) != NULL;
}

int64_t control_count_failures(const struct job *job, const struct control_member *pod)
{
    int64_t restarts = 0;
    int64_t down = 0;
    for (int i = 0; i < STATUS_LISTS; i++) {
        size_t index;
        json_t *each;
        json_array_foreach (doc_at(pod->object, status_lists[i]), index, each) {
            if (ended_on_its_own(pod) && !is_own(job, pod, each)) {
                continue;
            }
            int64_t count = doc_int(each, "restartCount", 0);
            restarts += 0 < count && count < INT32_MAX ? count : 0;
            down += failed(down_since(each));
        }
    }
    return restarts + (pod->phase == CONTROL_FAILED_PHASE ? 1 : down);
}

bool control_may_retry(int exit_code)
{
    return exit_code < 0 || exit_code > CONTROL_OWN_CODE_MAX;
}

static int failed_code(const json_t *container)
{
    const json_t *end = down_since(container);
    return failed(end) ? code_of(end) : 0;
}

int control_exit_code(const json_t *pod)
{
    int first = -1;
    for (int i = 0; i < STATUS_LISTS; i++) {
        size_t index;
        json_t *each;
        json_array_foreach (doc_at(pod, status_lists[i]), index, each) {
            int code = failed_code(each);
            if (code != 0 && strcmp(doc_text(each, "name", ""), "pytorch") == 0) {
                return code;
            }
            first = first < 0 && code != 0 ? code : first;
        }
    }
    return first;
}

bool control_is_preempted(const json_t *pod)
{
    const json_t *target = doc_find(doc_at(pod, "status.conditions"), "type", "DisruptionTarget");
    return control_exit_code(pod) == TERM_CODE ||
           strcmp(doc_text(target, "status", ""), "True") == 0;
}

int control_last_exit_code(const json_t *pod, const char *container)
{
    const json_t *status = doc_find(doc_at(pod, "status.containerStatuses"), "name", container);
    const json_t *now = doc_at(status, "state.terminated");
    const json_t *end = now ? now : doc_at(status, "lastState.terminated");
    return end ? code_of(end) : -1;
}

static struct control_failure failure_of(const json_t *pod, const json_t *container,
                                         const json_t *end)
{
    return (struct control_failure){
        .found = true,
        .pod = doc_text(pod, "metadata.name", ""),
        .container = doc_text(container, "name", ""),
        .exit_code = code_of(end),
        .reason = doc_text(end, "reason", "Error"),
        .message = doc_text(end, "message", ""),
        .at_unix_ms = timestamp_read(doc_text(end, "finishedAt", NULL)),
    };
}

/* Returns the failure of a pod that was evicted, exceeded its own deadline, or was lost with its
 * node. */
static struct control_failure whole_pod_failure(const json_t *pod)
{
    return (struct control_failure){
        .found = control_phase_of(pod) == CONTROL_FAILED_PHASE,
        .pod = doc_text(pod, "metadata.name", ""),
        .container = "",
        .exit_code = -1,
        .reason = doc_text(pod, "status.reason", "Failed"),
        .message = doc_text(pod, "status.message", ""),
        .at_unix_ms = INT64_MAX,
    };
}

static void take_earlier(struct control_failure *best, const struct control_failure *other)
{
    if (other->found && (!best->found || other->at_unix_ms < best->at_unix_ms)) {
        *best = *other;
    }
}

struct control_failure control_pod_failure(const json_t *pod, bool dead)
{
    struct control_failure best = {0};
    for (int i = 0; i < STATUS_LISTS; i++) {
        size_t index;
        json_t *each;
        json_array_foreach (doc_at(pod, status_lists[i]), index, each) {
            const json_t *end = dead ? down_since(each) : doc_at(each, "lastState.terminated");
            if (failed(end)) {
                struct control_failure failure = failure_of(pod, each, end);
                take_earlier(&best, &failure);
            }
        }
    }
    struct control_failure whole = whole_pod_failure(pod);
    bool by_itself = doc_at(pod, "status.reason") == NULL;
    return whole.found && !(best.found && by_itself) ? whole : best;
}

static struct control_failure first_of(const struct control_observed *o, bool terminating,
                                       bool dead)
{
    struct control_failure best = {0};
    for (size_t i = 0; i < o->pod_count; i++) {
        const struct control_member *pod = &o->pods[i];
        bool is_done = ended_on_its_own(pod) && pod->phase == CONTROL_SUCCEEDED;
        if (pod->known && pod->terminating == terminating && !is_done) {
            struct control_failure failure = control_pod_failure(pod->object, dead);
            failure.rank = control_rank(o->job, pod->role, pod->index);
            take_earlier(&best, &failure);
        }
    }
    return best;
}

/* Pods that are being deleted were mostly killed by us, and a container that runs again has
 * recovered: each counts only if there is no better candidate. */
struct control_failure control_first_failure_of(const struct job *job, const json_t *pods)
{
    struct control_view view = {.pods = pods};
    struct control_observed o;
    if (control_observe(job, &view, &o, NULL) != 0) {
        return (struct control_failure){0};
    }
    struct control_failure best = first_of(&o, false, true);
    best = best.found ? best : first_of(&o, false, false);
    best = best.found ? best : first_of(&o, true, true);
    control_observed_done(&o);
    return best;
}

struct control_failure control_first_failure(const json_t *object, const json_t *pods)
{
    struct job job;
    if (job_read((json_t *)object, &job, NULL) != 0) {
        return (struct control_failure){0};
    }
    struct control_failure failure = control_first_failure_of(&job, pods);
    job_done(&job);
    return failure;
}

static void text_of_end(const struct control_failure *f, struct buf *out)
{
    int signal = f->exit_code - 128;
    const char *name = signal > 0 ? sigabbrev_np(signal) : NULL;
    if (strcmp(f->reason, "OOMKilled") == 0) {
        buf_format(out, "ran out of memory%s (exit code %d)",
                   f->exit_code == KILLED_CODE ? " and was killed" : ": a process of it was killed",
                   f->exit_code);
    } else if (f->exit_code < 0) {
        buf_format(out, "failed: %s", f->reason);
    } else if (name) {
        buf_format(out, "was killed by signal %d (SIG%s)", signal, name);
    } else {
        buf_format(out, "exited with code %d", f->exit_code);
    }
}

void control_failure_text(const struct control_failure *f, struct buf *out)
{
    if (*f->container && strcmp(f->container, "pytorch") != 0) {
        buf_format(out, "container %s of ", f->container);
    }
    buf_format(out, "%s ", f->pod);
    if (f->rank >= 0) {
        buf_format(out, "(rank %d) ", f->rank);
    }
    text_of_end(f, out);
    if (*f->message) {
        buf_text(out, ": ");
        buf_add(out, f->message, text_cut(f->message, MESSAGE_BYTES_MAX));
    }
}
