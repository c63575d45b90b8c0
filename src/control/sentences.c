/* The sentence of each rule, for conditions and events. They are upstream's (training-operator
 * v1.9.4), except the text after "First failure", which is ours. See rules.h. */
#include "control/rules.h"

#include "base/doc.h"
#include "base/text.h"
#include "control/broken.h"
#include "control/failure.h"
#include "control/restart.h"
#include "control/status/attempt.h"
#include "job/annotations.h"

#include <string.h>

enum { STOP_BYTES_MAX = 1024 };

const char *control_stop_text(const struct control_step *s)
{
    const json_t *notes = doc_at(s->o->job->object, "metadata.annotations");
    return json_string_value(json_object_get(notes, JOB_ANNOTATION_STOP));
}

void control_say_created(const struct control_step *s, struct buf *out)
{
    buf_format(out, "PyTorchJob %s is created.", s->o->job->name);
}

void control_say_stopped(const struct control_step *s, struct buf *out)
{
    const char *why = control_stop_text(s);
    buf_format(out, "PyTorchJob %s was stopped: ", s->o->job->name);
    buf_add(out, why, text_cut(why, STOP_BYTES_MAX));
}

void control_say_suspended(const struct control_step *s, struct buf *out)
{
    buf_format(out, "PyTorchJob %s is suspended.", s->o->job->name);
}

void control_say_resumed(const struct control_step *s, struct buf *out)
{
    buf_format(out, "PyTorchJob %s is resumed.", s->o->job->name);
}

void control_say_succeeded(const struct control_step *s, struct buf *out)
{
    const struct job *job = s->o->job;
    if (job->replica[JOB_MASTER].present) {
        buf_format(out, "PyTorchJob %s is successfully completed.", job->name);
    } else {
        buf_format(out, "PyTorchJob %s/%s successfully completed.", job->namespace, job->name);
    }
}

void control_say_running(const struct control_step *s, struct buf *out)
{
    const struct job *job = s->o->job;
    if (job->replica[JOB_MASTER].present) {
        buf_format(out, "PyTorchJob %s is running.", job->name);
    } else {
        buf_format(out, "PyTorchJob %s/%s is running.", job->namespace, job->name);
    }
}

/* Adds the first failure after upstream's sentence, which stays first for programs that compare
 * it. */
static void add_first_failure(const struct control_step *s, struct buf *out)
{
    struct control_failure failure = control_first_failure_of(s->o->job, s->o->view->pods);
    if (failure.found) {
        buf_text(out, out->used && out->data[out->used - 1] == '.' ? " " : ". ");
        buf_text(out, "First failure: ");
        control_failure_text(&failure, out);
    }
}

void control_say_backoff(const struct control_step *s, struct buf *out)
{
    buf_format(out, "Job %s has failed because it has reached the specified backoff limit",
               s->o->job->name);
    add_first_failure(s, out);
}

void control_say_deadline(const struct control_step *s, struct buf *out)
{
    buf_format(out, "Job %s has failed because it was active longer than specified deadline",
               s->o->job->name);
    add_first_failure(s, out);
}

void control_say_failed_never(const struct control_step *s, struct buf *out)
{
    const struct control_member *pod = control_find_broken(s, true, true);
    buf_format(out, "PyTorchJob %s is failed because %d %s replica(s) failed.", s->o->job->name,
               s->o->count[pod->role].failed, job_role_name(pod->role));
    add_first_failure(s, out);
}

void control_say_failed_permanently(const struct control_step *s, struct buf *out)
{
    const struct control_member *pod = control_find_broken(s, true, false);
    buf_format(out, "job \"%s\" is failing because \"%s\" replica(s) failed.", s->o->job->name,
               job_role_name(pod->role));
    add_first_failure(s, out);
}

/* The coordinator's own message, if its end is known, is the reason; then follows the replica that
 * failed first, if that was another one. */
void control_say_coordinator_failed(const struct control_step *s, struct buf *out)
{
    const struct control_member *pod = control_find_pod(s->o, JOB_MASTER, 0);
    struct control_failure end = {0};
    for (int dead = 1; dead >= 0 && pod && !end.found; dead--) { /* dead, or running again */
        end = control_pod_failure(pod->object, dead);
    }
    const char *said = end.found ? end.message : "";
    size_t length = strlen(said);
    length -= length > 0 && said[length - 1] == '.'; /* texts of exceptions often end with one */
    buf_format(out, "PyTorchJob %s is failed because its coordinator failed", s->o->job->name);
    buf_format(out, length > 0 ? ": %.*s." : ".", (int)length, said);
    struct control_failure first = control_first_failure_of(s->o->job, s->o->view->pods);
    if (length == 0 || strcmp(first.message, said) != 0) {
        add_first_failure(s, out);
    }
}

void control_say_lost_workers(const struct control_step *s, struct buf *out)
{
    buf_format(out, "PyTorchJob %s is failed because no Worker ended well after the training.",
               s->o->job->name);
    add_first_failure(s, out);
}

void control_say_left_untrained(const struct control_step *s, struct buf *out)
{
    buf_format(
        out,
        "PyTorchJob %s is failed because all of its Workers have ended with exit code 0, "
        "and its coordinator still waits for records to be trained, or for a Worker that "
        "joins the job (by muster.elastic or muster_elastic_open): it says which in its log.",
        s->o->job->name);
}

void control_say_restarting_all(const struct control_step *s, struct buf *out)
{
    buf_format(out, "job %s is restarting all of its ranks: ", s->o->job->name);
    control_restart_say(s, out);
}

void control_say_restarted_enough(const struct control_step *s, struct buf *out)
{
    const struct control_attempt attempt = control_attempt_read(s->o->job);
    buf_format(out,
               "PyTorchJob %s is failed because it has been restarted %lld time(s), as often "
               "as %s allows",
               s->o->job->name, (long long)attempt.number, JOB_ANNOTATION_MAX_RESTARTS);
    add_first_failure(s, out);
    if (*attempt.first) {
        buf_format(out, ". Before the first restart: %s", attempt.first);
    }
}

void control_say_restarting(const struct control_step *s, struct buf *out)
{
    const struct control_member *pod = control_find_broken(s, false, false);
    buf_format(out, "job %s is restarting because %s replica(s) failed.", s->o->job->name,
               job_role_name(pod->role));
}
