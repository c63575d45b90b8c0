/* See progress.h. */
#include "cli/follow/progress.h"

#include "base/doc.h"
#include "cli/follow/pod_waiting.h"
#include "cli/pod/ranks.h"

#include <stdio.h>
#include <string.h>

enum { RANK_BYTES = 64, LABEL_BYTES = 384, SIGNAL_BASE = 128 };

static const char *const status_lists[] = {"status.initContainerStatuses",
                                           "status.containerStatuses"};
enum { STATUS_LISTS = 2 };

static bool is_running(const json_t *pod)
{
    return strcmp(doc_text(pod, "status.phase", ""), "Running") == 0;
}

static long long restarts_of(const json_t *pod, const char *container)
{
    return (long long)doc_int(ranks_container_status(pod, container), "restartCount", 0);
}

/* Writes how the previous run ended: "exit code 3", "signal 9". 255 is the code of a program,
 * because there is no signal 127. */
static void last_end(const json_t *status, char *ret, size_t size)
{
    const json_t *end = doc_at(status, "lastState.terminated");
    const char *reason = doc_text(end, "reason", "");
    long long code = (long long)doc_int(end, "exitCode", 0);
    if (strcmp(reason, "OOMKilled") == 0) {
        snprintf(ret, size, "out of memory");
    } else if (code > SIGNAL_BASE && sigabbrev_np((int)code - SIGNAL_BASE)) {
        snprintf(ret, size, "signal %lld", code - SIGNAL_BASE);
    } else {
        snprintf(ret, size, "exit code %lld", code);
    }
}

static void tell_restart(const json_t *before, const json_t *status, const char *label, bool quiet,
                         struct buf *out)
{
    long long now = (long long)doc_int(status, "restartCount", 0);
    char end[64];
    if (now <= restarts_of(before, doc_text(status, "name", ""))) {
        return;
    }
    last_end(status, end, sizeof end);
    if (now >= PROGRESS_WARN_RESTARTS) {
        buf_format(out, "warning: %s was restarted for the %lld%s time (%s)\n", label, now,
                   now == 3 ? "rd" : "th", end);
    } else if (!quiet) {
        buf_format(out, "%s was restarted (%s)\n", label, end);
    }
}

/* Prints why a pod waits; also in a quiet run if something is missing, because it stays missing
 * until somebody makes it. */
static void tell_waiting(const json_t *before, const json_t *after, const char *label, bool quiet,
                         struct buf *out)
{
    struct pod_waiting now, then;
    pod_waiting_of(after, &now);
    pod_waiting_of(before, &then);
    if (!*now.why || strcmp(now.why, then.why) == 0 || (quiet && !now.missing)) {
        return;
    }
    buf_format(out, "%s%s waits: %s\n", now.missing ? "warning: " : "", label, now.why);
    if (*now.command) {
        buf_format(out, "  this makes it: %s\n", now.command);
    }
}

/* Writes "rank 1", which is enough if one job is followed; for several jobs, "b-worker-0 (rank 1)".
 */
static void label_of(const char *name, const char *rank, bool several, char *ret, size_t size)
{
    if (several && strcmp(rank, name) != 0) {
        snprintf(ret, size, "%s (%s)", name, rank);
    } else {
        snprintf(ret, size, "%s", rank);
    }
}

void progress_pod(const json_t *before, const json_t *after, bool several, bool quiet,
                  struct buf *out)
{
    char rank[RANK_BYTES], label[LABEL_BYTES];
    const char *name = doc_text(after, "metadata.name", "");
    ranks_label(after, rank, sizeof rank);
    label_of(name, rank, several, label, sizeof label);
    tell_waiting(before, after, label, quiet, out);
    if (is_running(after) && !is_running(before) && !quiet) {
        buf_format(out, "%s started (%s)\n", rank, name);
    }
    for (int l = 0; l < STATUS_LISTS; l++) {
        size_t i;
        json_t *status;
        json_array_foreach (doc_at(after, status_lists[l]), i, status) {
            tell_restart(before, status, label, quiet, out);
        }
    }
}

static bool is_suspended(const json_t *job)
{
    return doc_bool(job, "spec.runPolicy.suspend", false);
}

void progress_job(const json_t *before, const json_t *after, bool quiet, struct buf *out)
{
    if (quiet || is_suspended(before) == is_suspended(after)) {
        return;
    }
    const char *name = doc_text(after, "metadata.name", "");
    if (is_suspended(after)) {
        buf_format(out, "job %s is suspended (muster resume %s)\n", name, name);
    } else {
        buf_format(out, "job %s is resumed\n", name);
    }
}
