/* See step.h. */
#include "control/step.h"

#include "base/build.h"
#include "base/doc.h"
#include "base/time/timestamp.h"
#include "control/condition.h"
#include "job/annotations.h"

#include <stdlib.h>

enum control_state control_state_of(const json_t *status)
{
    /* Finished and suspended come before what they leave behind. */
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

/* Times have whole seconds, as everywhere; what they leave out is in an annotation, which is
 * believed as far as it fits: it travels when a job is exported and created again. */
static int64_t moment(const struct control_step *s, const char *field, const char *note, bool now)
{
    int64_t time = timestamp_read(doc_text(s->status, field, NULL));
    const json_t *notes = doc_at(s->o->job->object, "metadata.annotations");
    const char *text = json_string_value(json_object_get(notes, note));
    int64_t exact = now ? s->now_unix_ms : text ? strtoll(text, NULL, 10) : 0;
    return time != TIMESTAMP_NONE && exact >= time && exact - time < 1000 ? exact : time;
}

static int64_t started_at(const struct control_step *s)
{
    return moment(s, "startTime", JOB_ANNOTATION_STARTED, s->started);
}

int64_t control_ended_at(const struct control_step *s)
{
    return moment(s, "completionTime", JOB_ANNOTATION_ENDED, s->ended);
}

int64_t control_deadline(const struct control_step *s)
{
    int64_t start = started_at(s);
    int64_t limit_s = s->o->job->active_deadline_s;
    bool bounded = limit_s != JOB_UNSET && start != TIMESTAMP_NONE && limit_s < INT32_MAX;
    return bounded ? start + limit_s * 1000 : INT64_MAX;
}
