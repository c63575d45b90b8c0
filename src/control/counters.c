/* See counters.h. */
#include "control/counters.h"

#include "base/backoff.h"
#include "base/build.h"
#include "base/doc.h"
#include "base/text.h"
#include "control/failure.h"
#include "control/old_counters.h"
#include "control/status/stored.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES_SPARE = 64, SLOT_BYTES = 32 };

static const char *slot_name(enum job_role role, int index, char ret_name[SLOT_BYTES])
{
    snprintf(ret_name, SLOT_BYTES, "%s-%d", job_role_lower(role), index);
    return ret_name;
}

/* Returns a number that cannot overflow, even from a damaged status. */
static int64_t sane(const json_t *entry, const char *field)
{
    int64_t value = doc_int(entry, field, 0);
    return 0 <= value && value < INT64_MAX / 4 ? value : 0;
}

int64_t control_not_before(const struct control_counters *counters, enum job_role role, int index,
                           int64_t now_unix_ms)
{
    assert(role < JOB_ROLE_COUNT && index >= 0);
    char slot[SLOT_BYTES];
    const json_t *replicas = json_object_get(counters->doc, "replicas");
    const json_t *entry = json_object_get(replicas, slot_name(role, index, slot));
    int64_t at = sane(entry, "at");
    return 0 < at && at <= now_unix_ms ? at + backoff_ms(sane(entry, "remakes")) : 0;
}

/* ---- one pod ---- */

static int64_t failed_at(const struct control_member *pod, int64_t now)
{
    struct control_failure failure = control_pod_failure(pod->object, true);
    bool known = failure.found && failure.at_unix_ms > 0 && failure.at_unix_ms < now;
    return known ? failure.at_unix_ms : now;
}

static bool is_of(const json_t *entry, const struct control_member *pod)
{
    return strcmp(doc_text(entry, "uid", ""), pod->uid) == 0;
}

/* Whether the pod is older than the one that was counted last: then the view of the pods is old. */
static bool is_older(const struct control_member *pod, const json_t *entry)
{
    const char *version = doc_text(pod->object, "metadata.resourceVersion", "");
    const char *counted = doc_text(entry, "version", "");
    return *version && *counted && text_compare_numbers(version, counted) <= 0;
}

static bool remakes(const struct control_observed *o, const struct control_member *pod)
{
    return o->job->max_restarts == JOB_UNSET && pod->phase == CONTROL_FAILED_PHASE &&
           o->job->replica[pod->role].restart_policy != JOB_NEVER;
}

static json_t *make_entry(struct build *b, const struct control_member *pod, const json_t *old,
                          int64_t failures)
{
    const char *version = doc_text(pod->object, "metadata.resourceVersion", NULL);
    json_t *entry = build_value(b, json_object());
    build_text(b, entry, "uid", pod->uid);
    build_text(b, entry, "version", version);
    build_int(b, entry, "failures", failures);
    if (sane(old, "remakes") > 0) {
        build_int(b, entry, "remakes", sane(old, "remakes"));
        build_int(b, entry, "at", sane(old, "at"));
    }
    return entry;
}

/* Counts once a pod that will be replaced. */
static void count_remake(struct build *b, json_t *entry, int64_t at)
{
    bool quiet = at - sane(entry, "at") > BACKOFF_RESET_MS;
    build_int(b, entry, "remakes", quiet ? 1 : sane(entry, "remakes") + 1);
    build_int(b, entry, "at", at);
    build_set(b, entry, "remade", json_true());
}

static void count_failures(struct build *b, struct control_counters *m,
                           const struct control_member *pod, int64_t new)
{
    int64_t room = INT32_MAX - m->failures;
    m->failures += new < room ? new : room;
    build_int(b, m->doc, "failures", m->failures);
    build_add(b, m->new_failures, json_string(pod->uid));
}

/* Returns 1 if a Worker of an elastic job hands its work back: that does not count as a failure of
 * the job. Its pod is replaced like others, with a longer pause each time. */
static int64_t count_excused(const struct control_observed *o, const struct control_member *pod)
{
    return o->job->coordinated && pod->role == JOB_WORKER && control_is_preempted(pod->object);
}

static void count_pod(struct build *b, struct control_counters *m, const struct control_observed *o,
                      const struct control_member *pod)
{
    char slot[SLOT_BYTES];
    const json_t *replicas = json_object_get(m->doc, "replicas");
    const json_t *old = json_object_get(replicas, slot_name(pod->role, pod->index, slot));
    bool again = is_of(old, pod);
    int64_t seen = control_count_failures(o->job, pod);
    int64_t counted = again ? sane(old, "failures") : 0;
    bool noted = again && doc_bool(old, "remade", false);
    bool remade = remakes(o, pod) && !noted;
    bool room = old || json_object_size(replicas) < COUNTERS_ENTRIES_MAX;
    if ((seen <= counted && !remade) || (!again && is_older(pod, old)) || !room) {
        return;
    }
    json_t *entry = make_entry(b, pod, old, seen > counted ? seen : counted);
    if (noted) {
        build_set(b, entry, "remade", json_true());
    } else if (remade) {
        count_remake(b, entry, failed_at(pod, o->view->now_unix_ms));
    }
    if (seen > counted) {
        count_failures(b, m, pod, seen - counted - count_excused(o, pod));
    }
    build_set(b, build_object_at(b, m->doc, "replicas"), slot, entry);
    m->changed = true;
}

/* ---- all of them ---- */

/* Whether the slot names a replica of the job, such as "worker-3" if there are four Workers. */
static bool names_replica(const struct job *job, const char *slot)
{
    for (enum job_role role = 0; role < JOB_ROLE_COUNT; role++) {
        const char *word = job_role_lower(role);
        size_t bytes = strlen(word);
        if (job->replica[role].present && strncmp(slot, word, bytes) == 0 && slot[bytes] == '-') {
            return strtoll(slot + bytes + 1, NULL, 10) < job->replica[role].replicas;
        }
    }
    return false;
}

/* Removes the entries of replicas that the job no longer has. Some are kept, because an old view
 * may show them again. */
static void forget_surplus(const struct job *job, json_t *replicas)
{
    size_t most = ENTRIES_SPARE;
    const char *slot;
    json_t *entry;
    void *next;
    for (enum job_role role = 0; role < JOB_ROLE_COUNT; role++) {
        most += job->replica[role].present ? (size_t)job->replica[role].replicas : 0;
    }
    json_object_foreach_safe (replicas, next, slot, entry) {
        if (json_object_size(replicas) <= most) {
            break;
        }
        if (!names_replica(job, slot)) {
            json_object_del(replicas, slot);
        }
    }
}

static json_t *read_doc(struct build *b, const struct control_observed *o)
{
    const json_t *stored = control_stored_counters(o->job->object);
    return stored ? build_value(b, json_deep_copy(stored)) : control_old_counters(b, o);
}

int control_count(const struct control_observed *o, struct control_counters *ret,
                  struct muster_err *err)
{
    struct build b = {0};
    struct control_counters m = {.doc = read_doc(&b, o),
                                 .new_failures = build_value(&b, json_array())};
    int64_t failures = sane(m.doc, "failures");
    m.failures = failures < INT32_MAX ? failures : INT32_MAX;
    for (size_t i = 0; i < o->pod_count && !b.failed; i++) {
        /* Pods that we end ourselves (they are terminating) do not count as failed. */
        if (o->pods[i].in_range && !o->pods[i].terminating) {
            count_pod(&b, &m, o, &o->pods[i]);
        }
    }
    if (m.changed) {
        forget_surplus(o->job, json_object_get(m.doc, "replicas"));
    }
    if (b.failed) {
        control_counters_done(&m);
        return muster_fail(err, MUSTER_ENOMEM, "no memory for a job's counters");
    }
    *ret = m;
    return 0;
}

int control_counters_set(struct control_counters *m, const char *field, json_t *value)
{
    m->changed = true;
    return json_object_set_new(m->doc, field, value) == 0 ? 0 : MUSTER_ENOMEM;
}

void control_counters_done(struct control_counters *m)
{
    json_decref(m->doc);
    json_decref(m->new_failures);
    *m = (struct control_counters){0};
}
