/* See step.h. */
#include "control/step.h"

#include "base/build.h"
#include "base/doc.h"
#include "base/time/timestamp.h"
#include "control/status/condition.h"
#include "control/status/stored.h"
#include "job/annotations.h"

#include <stdlib.h>

enum control_state control_state_of(const json_t *status)
{
    /* Finished and suspended come first, because older conditions stay True beside them. */
    static const struct {
        const char *type;
        enum control_state state;
    } order[] = {
        {"Failed", CONTROL_STATE_FAILED},       {"Succeeded", CONTROL_STATE_SUCCEEDED},
        {"Suspended", CONTROL_STATE_SUSPENDED}, {"Restarting", CONTROL_STATE_RESTARTING},
        {"Running", CONTROL_STATE_RUNNING},     {"Created", CONTROL_STATE_CREATED},
    };
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        if (control_has(status, order[i].type)) {
            return order[i].state;
        }
    }
    return CONTROL_STATE_NEW;
}

bool control_is_active(enum control_state state)
{
    return (CONTROL_ACTIVE & (1u << state)) != 0;
}

/* ---- the clock ---- */

static void set_time(struct control_step *s, const char *field)
{
    struct build b = {0};
    char now[TIMESTAMP_BYTES];
    build_text(&b, s->status, field, timestamp_seconds(s->now_unix_ms, now));
    s->r = b.failed ? MUSTER_ENOMEM : s->r;
}

void control_start_clock(struct control_step *s)
{
    set_time(s, "startTime");
    s->started = true;
}

void control_stop_clock(struct control_step *s)
{
    set_time(s, "completionTime");
    s->ended = true;
}

/* Returns the exact time. Times have whole seconds, as everywhere; the counters have the
 * milliseconds, which are used if they fit. */
static int64_t moment(int64_t time, int64_t exact)
{
    return time != TIMESTAMP_NONE && exact >= time && exact - time < 1000 ? exact : time;
}

static int64_t time_of(const struct control_step *s, const char *field, const char *exact, bool now)
{
    int64_t time = timestamp_read(doc_text(s->status, field, NULL));
    return moment(time, now ? s->now_unix_ms : doc_int(s->counters->doc, exact, 0));
}

int64_t control_ended_at(const struct control_step *s)
{
    return time_of(s, "completionTime", "completionTimeMs", s->ended);
}

int64_t control_started_unix_ms(const json_t *job)
{
    const json_t *counters = control_stored_counters(job);
    const json_t *notes = doc_at(job, "metadata.annotations");
    const char *note = json_string_value(json_object_get(notes, JOB_ANNOTATION_STARTED));
    return moment(timestamp_read(doc_text(job, "status.startTime", NULL)),
                  counters ? doc_int(counters, "startTimeMs", 0)
                  : note   ? strtoll(note, NULL, 10)
                           : 0);
}

int64_t control_deadline(const struct control_step *s)
{
    int64_t start = time_of(s, "startTime", "startTimeMs", s->started);
    int64_t limit_s = s->o->job->active_deadline_s;
    bool bounded = limit_s != JOB_UNSET && start != TIMESTAMP_NONE && limit_s < INT32_MAX;
    return bounded ? start + limit_s * 1000 : INT64_MAX;
}
