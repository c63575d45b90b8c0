/* See restart.h. */
#include "control/restart.h"

#include "base/text.h"
#include "control/effects.h"
#include "control/failure.h"
#include "control/status/attempt.h"
#include "job/annotations.h"

#include <assert.h>

enum { SENTENCE_BYTES_MAX = 2048, CAUSE_BYTES_MAX = 512 };

/* Whether a rank of this attempt has failed. Pods that we have stopped, and those of an earlier
 * attempt, do not count. */
static bool has_failed(const struct control_step *s)
{
    return s->o->count[JOB_MASTER].broken + s->o->count[JOB_WORKER].broken > 0;
}

bool control_restarts(const struct control_step *s)
{
    const struct job *job = s->o->job;
    return job->max_restarts != JOB_UNSET && has_failed(s) &&
           control_attempt_read(job).number < job->max_restarts;
}

bool control_restarts_are_spent(const struct control_step *s)
{
    const struct job *job = s->o->job;
    return job->max_restarts != JOB_UNSET && has_failed(s) &&
           control_attempt_read(job).number >= job->max_restarts;
}

bool control_awaits_earlier(const struct control_observed *o)
{
    for (size_t i = 0; i < o->pod_count; i++) {
        if (o->pods[i].earlier) {
            return true;
        }
    }
    return false;
}

/* Returns why this attempt failed. */
static const char *say_cause(const struct control_step *s, struct buf *out)
{
    struct control_failure failure = control_first_failure_of(s->o->job, s->o->view->pods);
    if (failure.found) {
        control_failure_text(&failure, out);
    }
    buf_truncate(out, text_cut(buf_str(out), CAUSE_BYTES_MAX));
    return failure.found ? buf_str(out) : "a rank failed";
}

/* Returns the attempt that begins now; its `last` is in *cause. */
static struct control_attempt next_attempt(const struct control_step *s, struct buf *cause)
{
    struct control_attempt attempt = control_attempt_read(s->o->job);
    attempt.number++;
    attempt.last = say_cause(s, cause);
    attempt.first = attempt.number == 1 ? attempt.last : attempt.first;
    return attempt;
}

void control_restart_say(const struct control_step *s, struct buf *out)
{
    struct buf cause;
    buf_init(&cause, SENTENCE_BYTES_MAX);
    struct control_attempt attempt =
        control_restarts(s) ? next_attempt(s, &cause) : control_attempt_read(s->o->job);
    buf_format(out, "restart %lld of %d: %s", (long long)attempt.number,
               (int)s->o->job->max_restarts, attempt.last);
    buf_done(&cause);
}

/* Stores the attempt in the counters, which are written with the status. */
static int write_attempt(struct control_counters *m, const struct control_attempt *attempt)
{
    int r = control_counters_set(m, "jobRestarts", json_integer(attempt->number));
    r = r < 0 ? r : control_counters_set(m, "firstRestart", json_string(attempt->first));
    return r < 0 ? r : control_counters_set(m, "lastRestart", json_string(attempt->last));
}

void control_restart(struct control_step *s)
{
    assert(control_restarts(s) && !s->restarts);
    struct buf cause;
    struct buf sentence;
    buf_init(&cause, SENTENCE_BYTES_MAX);
    buf_init(&sentence, SENTENCE_BYTES_MAX);
    struct control_attempt attempt = next_attempt(s, &cause);
    s->restarts = true;
    int r = write_attempt(s->counters, &attempt);
    s->r = r < 0 ? r : s->r;
    control_restart_say(s, &sentence);
    control_add_event(&s->events, true, "JobRestarting", "%s", buf_str(&sentence));
    buf_done(&sentence);
    buf_done(&cause);
}
