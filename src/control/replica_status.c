/* See replica_status.h. */
#include "control/replica_status.h"

#include "base/build.h"
#include "base/doc.h"
#include "control/effects.h"
#include "control/objects.h"

#include <stdlib.h>

static void set_count(struct build *b, json_t *entry, const char *field, int64_t value)
{
    if (value != 0) {
        build_int(b, entry, field, value);
    }
}

static json_t *make_entry(struct build *b, const struct control_step *s, enum job_role role)
{
    const struct control_count *count = &s->o->count[role];
    json_t *entry = build_value(b, json_object());
    set_count(b, entry, "active", count->active);
    set_count(b, entry, "succeeded", count->succeeded);
    set_count(b, entry, "failed", count->failed);
    char *selector = control_selector(s->o->job, role);
    build_set(b, entry, "selector", selector ? json_string(selector) : NULL);
    free(selector);
    return entry;
}

static void rebuild(struct build *b, struct control_step *s)
{
    json_t *statuses = build_value(b, json_object());
    for (enum job_role role = 0; role < JOB_ROLE_COUNT; role++) {
        if (s->o->job->replica[role].present) {
            build_set(b, statuses, job_role_name(role), make_entry(b, s, role));
        }
    }
    build_set(b, s->status, "replicaStatuses", statuses);
}

static void raise_count(struct build *b, json_t *entry, const char *field, int now)
{
    int64_t before = doc_int(entry, field, 0);
    set_count(b, entry, field, now > before ? now : before);
}

/* `active` only falls: if upstream's operator works on the same job, it takes `active` after the
 * end for succeeded, and adds to that each time the value is reported again. The other final counts
 * stay when the pods are cleaned up, and rise while pods that still ran end by themselves. */
static json_t *refresh_entry(struct build *b, const json_t *old, const struct control_count *count)
{
    json_t *entry = build_value(b, json_copy((json_t *)old));
    int64_t before = doc_int(old, "active", 0);
    json_object_del(entry, "active");
    set_count(b, entry, "active", count->active < before ? count->active : before);
    raise_count(b, entry, "succeeded", count->succeeded);
    raise_count(b, entry, "failed", count->broken);
    return entry;
}

/* `count`: by role; the counts of a job that is over, or zeros for one that is suspended. */
static void refresh_entries(struct build *b, struct control_step *s,
                            const struct control_count *count)
{
    const char *name;
    json_t *old;
    json_t *statuses = build_value(b, json_object());
    json_object_foreach (doc_at(s->status, "replicaStatuses"), name, old) {
        enum job_role role = name[0] == 'M' ? JOB_MASTER : JOB_WORKER;
        build_set(b, statuses, name, refresh_entry(b, old, &count[role]));
    }
    if (json_object_size(statuses) > 0) {
        build_set(b, s->status, "replicaStatuses", statuses);
    } else {
        json_decref(statuses);
    }
}

static void refresh_counts(struct build *b, struct control_step *s, enum control_state before,
                           enum control_state now)
{
    static const struct control_count nothing[JOB_ROLE_COUNT];
    bool finished = now == CONTROL_STATE_SUCCEEDED || now == CONTROL_STATE_FAILED;
    if (now == CONTROL_STATE_SUSPENDED) {
        refresh_entries(b, s, nothing);
    } else if (finished && before == now) {
        refresh_entries(b, s, s->o->count);
    } else {
        rebuild(b, s);
    }
}

/* Reports this once, when the job first starts, not for every pod. */
static void tell_overwritten_policy(struct control_step *s)
{
    for (enum job_role role = 0; role < JOB_ROLE_COUNT; role++) {
        if (doc_at(s->o->job->replica[role].template, "spec.restartPolicy")) {
            control_add_event(&s->events, true, "SetPodTemplateRestartPolicy",
                              "Restart policy in pod template will be overwritten by restart "
                              "policy in replica spec");
        }
    }
}

void control_refresh_status(struct control_step *s, enum control_state before,
                            enum control_state now)
{
    struct build b = {0};
    refresh_counts(&b, s, before, now);
    bool finished = now == CONTROL_STATE_SUCCEEDED || now == CONTROL_STATE_FAILED;
    if (control_is_active(now) && !doc_at(s->status, "startTime")) {
        control_start_clock(s);
        tell_overwritten_policy(s);
    }
    /* If another program marked the job as finished, it has no time from which its TTL counts. */
    if (finished && !doc_at(s->status, "completionTime")) {
        control_stop_clock(s);
    }
    s->r = b.failed && s->r == 0 ? MUSTER_ENOMEM : s->r;
}
