/* See after_end.h. */
#include "cli/follow/after_end.h"

#include "base/buf.h"
#include "base/time/age.h"
#include "base/time/clock.h"
#include "cli/follow/bad_ranks.h"
#include "cli/follow/stop.h"
#include "control/verdict.h"

#include <string.h>

enum {
    NOTICE_MS = 10000, /* from then on, the ranks that still run are named */
    GPU_NOTICE_MS = 1000,
    DELETED_NOTICE_MS = 1000,
    NAMES_BYTES_MAX = 4096,
    NAMES_MAX = 8,
};

static void name_running(const struct followed_job *j, struct buf *out)
{
    muster_auto(doc) json_t *pods = follow_pods(j);
    size_t named = 0;
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) {
        bool runs = !follow_pod_ended(j, pod) && !doc_at(pod, "metadata.deletionTimestamp");
        if (runs && named++ < NAMES_MAX) {
            buf_text(out, named > 1 ? ", " : "");
            bad_ranks_name(pod, out);
        }
    }
    if (named > NAMES_MAX) {
        buf_format(out, " and %zu more", named - NAMES_MAX);
    }
}

static void tell_who_runs(const struct followed_job *j)
{
    struct buf names;
    buf_init(&names, NAMES_BYTES_MAX);
    name_running(j, &names);
    screen_note(
        j->follow->screen,
        "job %s has succeeded, and %s %s not ended yet; still waiting (--after-end DURATION "
        "limits the wait, Ctrl-C ends it)",
        j->name, buf_str(&names), follow_count_running(j, false) == 1 ? "has" : "have");
    buf_done(&names);
}

/* Prints the controller's event about GPUs that ranks hold after the end. */
static void tell_gpu_grace(struct followed_job *j)
{
    muster_auto(doc) json_t *answer = NULL;
    const struct kube_ref events = {kube_resource_find("events"), j->namespace, NULL, NULL};
    if (kube_list(j->follow->cli->kube, &events,
                  &(struct kube_query){.fields = "reason=GPUGracePeriod"}, &answer, NULL) < 0) {
        return;
    }
    const char *uid = doc_text(j->object, "metadata.uid", "");
    size_t i;
    json_t *event;
    json_array_foreach (doc_at(answer, "items"), i, event) {
        if (strcmp(doc_text(event, "involvedObject.uid", ""), uid) == 0) {
            screen_note(j->follow->screen, "%s", doc_text(event, "message", ""));
        }
    }
}

static void end_stragglers(struct followed_job *j)
{
    char age[AGE_BYTES];
    screen_note(j->follow->screen, "job %s: ending what still runs %s after its end (--after-end)",
                j->name, age_words(j->follow->after_end_ms, age));
    if (!stop_job(j, "--after-end of its muster run is over")) {
        j->follow->killed = true;
    }
}

/* True once, when `after_ms` have passed since the job's end. */
static bool is_due(const struct followed_job *j, bool *done, int64_t after_ms)
{
    bool due = !*done && after_ms >= 0 && clock_ms() - j->over_ms >= after_ms;
    *done = *done || due;
    return due;
}

static void tell_who_ends(const struct followed_job *j)
{
    size_t count = follow_count_running(j, true);
    screen_note(j->follow->screen,
                "job %s was %s: waiting for %zu rank%s, which may use %s grace period to end",
                j->name, j->deleted ? "deleted" : "stopped", count, count == 1 ? "" : "s",
                count == 1 ? "its" : "their");
}

/* Whether ranks are ending because somebody else has deleted or stopped the job. */
static bool ranks_end(const struct followed_job *j, bool succeeded)
{
    bool stopped = j->over && !succeeded && follow_is_stopped(j);
    return follow_deleted_end(j) || (stopped && follow_count_running(j, true) > 0);
}

void after_end_check(struct followed_job *j)
{
    bool succeeded = verdict_of(j->object, NULL, j->deleted).end == VERDICT_SUCCEEDED;
    if (ranks_end(j, succeeded) && !j->follow->interrupt.signal &&
        is_due(j, &j->stragglers_told, DELETED_NOTICE_MS)) {
        tell_who_ends(j);
    }
    bool goes_on = j->over && !j->deleted && !j->follow->interrupt.signal && succeeded &&
                   follow_count_running(j, false) > 0;
    if (!goes_on) {
        return;
    }
    if (is_due(j, &j->gpus_told, GPU_NOTICE_MS)) {
        tell_gpu_grace(j);
    }
    if (is_due(j, &j->stragglers_ended, j->follow->after_end_ms)) {
        end_stragglers(j);
    } else if (is_due(j, &j->stragglers_told, NOTICE_MS)) {
        tell_who_runs(j);
    }
}
