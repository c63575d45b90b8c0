/* See attempt.h. */
#include "control/attempt.h"

#include "base/doc.h"
#include "job/annotations.h"

#include <stdlib.h>
#include <string.h>

static const char *note_of(const json_t *object, const char *key)
{
    const json_t *notes = doc_at(object, "metadata.annotations");
    return json_string_value(json_object_get(notes, key));
}

/* "2 UID" */
static int64_t read_number(const char *text, const char *uid)
{
    char *after;
    long long number = text ? strtoll(text, &after, 10) : 0;
    bool ours = number > 0 && number < INT32_MAX && *after == ' ' && strcmp(after + 1, uid) == 0;
    return ours ? number : 0;
}

struct control_attempt control_attempt_read(const struct job *job)
{
    struct control_attempt attempt = {0, "", ""};
    if (job->max_restarts == JOB_UNSET) {
        return attempt;
    }
    attempt.number = read_number(note_of(job->object, JOB_ANNOTATION_JOB_RESTARTS), job->uid);
    const char *first = note_of(job->object, JOB_ANNOTATION_FIRST_RESTART);
    const char *last = note_of(job->object, JOB_ANNOTATION_LAST_RESTART);
    if (attempt.number > 0) {
        attempt.first = first ? first : "";
        attempt.last = last ? last : "";
    }
    return attempt;
}

int64_t control_attempt_of_pod(const json_t *pod)
{
    const char *text = note_of(pod, JOB_ANNOTATION_ATTEMPT);
    return text ? strtoll(text, NULL, 10) : 0;
}

json_t *control_attempt_notes(const struct job *job, const struct control_attempt *attempt)
{
    json_t *number = json_sprintf("%lld %s", (long long)attempt->number, job->uid);
    return json_pack("{s:o, s:s, s:s}", JOB_ANNOTATION_JOB_RESTARTS, number,
                     JOB_ANNOTATION_FIRST_RESTART, attempt->first, JOB_ANNOTATION_LAST_RESTART,
                     attempt->last);
}
