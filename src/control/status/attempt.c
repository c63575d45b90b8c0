/* See attempt.h. */
#include "control/status/attempt.h"

#include "base/doc.h"
#include "control/status/stored.h"
#include "job/annotations.h"

#include <stdlib.h>
#include <string.h>

static const char *note_of(const json_t *object, const char *key)
{
    const json_t *notes = doc_at(object, "metadata.annotations");
    return json_string_value(json_object_get(notes, key));
}

/* Reads "2 UID". */
static int64_t read_number(const char *text, const char *uid)
{
    char *after;
    long long number = text ? strtoll(text, &after, 10) : 0;
    bool ours = number > 0 && number < INT32_MAX && *after == ' ' && strcmp(after + 1, uid) == 0;
    return ours ? number : 0;
}

static struct control_attempt read_notes(const struct job *job)
{
    return (struct control_attempt){
        read_number(note_of(job->object, JOB_ANNOTATION_JOB_RESTARTS), job->uid),
        note_of(job->object, JOB_ANNOTATION_FIRST_RESTART),
        note_of(job->object, JOB_ANNOTATION_LAST_RESTART)};
}

static struct control_attempt read_counters(const json_t *counters)
{
    int64_t number = doc_int(counters, "jobRestarts", 0);
    return (struct control_attempt){0 < number && number < INT32_MAX ? number : 0,
                                    doc_text(counters, "firstRestart", NULL),
                                    doc_text(counters, "lastRestart", NULL)};
}

struct control_attempt control_attempt_read(const struct job *job)
{
    const json_t *counters = control_stored_counters(job->object);
    struct control_attempt attempt = counters ? read_counters(counters) : read_notes(job);
    if (job->max_restarts == JOB_UNSET || attempt.number == 0) {
        return (struct control_attempt){0, "", ""};
    }
    attempt.first = attempt.first ? attempt.first : "";
    attempt.last = attempt.last ? attempt.last : "";
    return attempt;
}

int64_t control_attempt_of_pod(const json_t *pod)
{
    const char *text = note_of(pod, JOB_ANNOTATION_ATTEMPT);
    return text ? strtoll(text, NULL, 10) : 0;
}
