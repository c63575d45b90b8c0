/* Refuses a job that nobody can run, before it begins: an API server without muster's webhook
 * accepts such jobs. See internal.h. */
#include "base/doc.h"
#include "controller/internal.h"
#include "job/check/check.h"

enum { PROBLEMS_MAX = 20 };

static bool has_begun(const struct control_view *view)
{
    return json_array_size(view->pods) > 0 || doc_at(view->job, "status.startTime");
}

/* Copies the first error; a check that fails has one, unless there was no memory for it. */
static void tell_first(const struct job_problems *problems, struct muster_err *err)
{
    for (size_t i = 0; i < problems->count; i++) {
        const struct job_problem *problem = &problems->list[i];
        if (problem->severity == JOB_ERROR) {
            muster_fail(err, MUSTER_EDATA, "%s: %s%s%s%s", problem->path, problem->message,
                        problem->hint ? " (" : "", problem->hint ? problem->hint : "",
                        problem->hint ? ")" : "");
            return;
        }
    }
    muster_fail(err, MUSTER_EDATA, "%zu errors", problems->errors);
}

bool driver_refuses(const struct control_view *view, struct muster_err *err)
{
    if (view->target == CONTROL_TARGET_MACHINE || !control_manages(view->job) || has_begun(view)) {
        return false;
    }
    struct job_problems problems;
    job_problems_init(&problems, PROBLEMS_MAX);
    problems.cluster = true;
    job_check(view->job, NULL, &problems);
    bool refused = problems.errors > 0;
    if (refused) {
        tell_first(&problems, err);
    }
    job_problems_done(&problems);
    return refused;
}
