/* See verdict.h. The control core decides which container failed first, so that the last line of
 * `run` and the job's Failed message agree. */
#include "control/verdict.h"

#include "base/doc.h"
#include "control/control.h"
#include "job/annotations.h"
#include "job/job.h"

#include <string.h>

enum { EXIT_FAILED = 1 };

/* Returns the newest condition that is True. */
static const json_t *last_condition(const json_t *job)
{
    const json_t *conditions = doc_at(job, "status.conditions");
    for (size_t i = json_array_size(conditions); i > 0; i--) {
        const json_t *condition = json_array_get(conditions, i - 1);
        if (strcmp(doc_text(condition, "status", ""), "True") == 0) {
            return condition;
        }
    }
    return NULL;
}

/* A deadline has the reason PyTorchJobFailed, as upstream's; its message distinguishes it. */
static bool is_deadline(const json_t *condition)
{
    return strstr(doc_text(condition, "message", ""), "active longer than specified deadline") ||
           strcmp(doc_text(condition, "reason", ""), "DeadlineExceeded") == 0;
}

static void judge_failure(struct verdict *v, const json_t *job, const json_t *pods,
                          const json_t *condition)
{
    v->end = VERDICT_FAILED;
    v->deadline = is_deadline(condition);
    v->stopped = strcmp(v->reason, "PyTorchJobStopped") == 0;
    struct control_failure failure = control_first_failure(job, pods);
    if (failure.found) {
        v->pod = failure.pod;
        v->container = failure.container;
    }
    v->exit_code = failure.found && failure.exit_code > 0 ? failure.exit_code : EXIT_FAILED;
    if (v->deadline) {
        v->exit_code = VERDICT_EXIT_DEADLINE;
    }
}

struct verdict verdict_of(const json_t *job, const json_t *pods, bool deleted)
{
    const json_t *failed = job_condition(job, "Failed");
    const json_t *condition = failed ? failed : job_condition(job, "Succeeded");
    const json_t *shown = condition ? condition : last_condition(job);
    struct verdict v = {
        .end = VERDICT_RUNNING,
        .state = doc_text(shown, "type", "Pending"),
        .reason = doc_text(shown, "reason", ""),
        .message = doc_text(shown, "message", ""),
        .exit_code = EXIT_FAILED,
    };
    if (failed) {
        judge_failure(&v, job, pods, failed);
    } else if (condition) {
        v.end = VERDICT_SUCCEEDED;
        v.exit_code = 0;
    } else if (deleted) {
        v.end = VERDICT_DELETED;
        v.state = "Deleted";
        v.reason = "Deleted";
        v.message = "the job was deleted while it ran";
    }
    return v;
}

void verdict_why(const struct verdict *verdict, const json_t *job, const json_t *pods,
                 struct buf *out)
{
    if (verdict->end == VERDICT_DELETED || verdict->deadline || verdict->stopped || !verdict->pod) {
        buf_text(out, verdict->end == VERDICT_SUCCEEDED ? "" : verdict->message);
        return;
    }
    if (json_object_get(doc_at(job, "metadata.annotations"), JOB_ANNOTATION_COORDINATOR)) {
        buf_text(out, verdict->message);
        return;
    }
    struct control_failure failure = control_first_failure(job, pods);
    control_failure_text(&failure, out);
}
