/* See result.h: the last line and the JSON object. */
#include "cli/result.h"

#include "base/age.h"
#include "base/buf.h"
#include "base/clock.h"
#include "cli/places.h"
#include "cli/ranks.h"
#include "cli/verdict.h"

#include <signal.h>
#include <string.h>

enum { LINE_BYTES_MAX = 8 << 10, TAIL_LINES = 5, SIGNAL_BASE = 128 };

static struct verdict judge(const struct followed_job *j, const json_t *pods)
{
    struct verdict v = verdict_of(j->object, pods, j->deleted);
    if (j->follow->signal && v.end != VERDICT_SUCCEEDED) {
        v.exit_code = SIGNAL_BASE + j->follow->signal;
    }
    return v;
}

int result_exit_code(const struct followed_job *job)
{
    muster_auto(doc) json_t *pods = follow_pods(job);
    return judge(job, pods).exit_code;
}

static const char *log_file(const struct followed_job *j, const char *pod, const char *container)
{
    const json_t *logs = doc_at(places_of(j->places, pod, container), "logs");
    return json_string_value(json_array_get(logs, json_array_size(logs) - 1));
}

/* The line that most likely says what went wrong. */
static void add_last_line(const struct followed_job *j, const struct verdict *v, struct buf *out)
{
    const char *last = NULL;
    for (size_t i = 0; v->pod && i < TAIL_LINES; i++) {
        const char *line = podlogs_last_line(j->logs, v->pod, v->container, i);
        last = line ? line : last;
    }
    if (last) {
        buf_format(out, ": \"%.300s\"", last);
    }
}

static void say_head(const struct followed_job *j, const struct verdict *v, const json_t *pods)
{
    static const char *const ends[] = {
        [VERDICT_RUNNING] = "was killed",
        [VERDICT_SUCCEEDED] = "succeeded",
        [VERDICT_FAILED] = "failed",
        [VERDICT_DELETED] = "was deleted",
    };
    char lasted[AGE_BYTES];
    int64_t end_ms = j->over ? j->over_ms : clock_ms();
    struct buf why;
    buf_init(&why, LINE_BYTES_MAX);
    if (v->end == VERDICT_FAILED) {
        verdict_why(v, j->object, pods, &why);
        if (!v->stopped && !v->deadline) {
            add_last_line(j, v, &why);
        }
    }
    screen_note(j->follow->screen, "job %s %s after %s%s%s", j->name, ends[v->end],
                age_words(end_ms - j->started_ms, lasted), why.used ? ": " : "", buf_str(&why));
    buf_done(&why);
}

static bool is_volume(const json_t *pod, const char *name, const char *kind)
{
    size_t i;
    json_t *volume;
    json_array_foreach (doc_at(pod, "spec.volumes"), i, volume) {
        if (strcmp(doc_text(volume, "name", ""), name) == 0) {
            return json_object_get(volume, kind) != NULL;
        }
    }
    return false;
}

static void add_volumes(const json_t *pod, const json_t *place, json_t *seen, json_t *list)
{
    size_t i;
    json_t *mount;
    json_array_foreach (doc_at(place, "mounts"), i, mount) {
        const char *name = doc_text(mount, "name", "");
        const char *path = doc_text(mount, "hostPath", "");
        bool claim = is_volume(pod, name, "persistentVolumeClaim");
        if ((claim || is_volume(pod, name, "emptyDir")) && !json_object_get(seen, path)) {
            json_object_set_new(seen, path, json_true());
            json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:b}", "name", name, "pod",
                                                  doc_text(pod, "metadata.name", ""), "mountPath",
                                                  doc_text(mount, "mountPath", ""), "path", path,
                                                  "kept", claim));
        }
    }
}

/* What training wrote: claims and empty directories. Each folder once. */
static json_t *volumes_of(const struct followed_job *j, const json_t *pods)
{
    muster_auto(doc) json_t *seen = json_object();
    json_t *list = json_array();
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) {
        const char *container;
        json_t *place;
        json_object_foreach (json_object_get(j->places, doc_text(pod, "metadata.name", "")),
                             container, place) {
            add_volumes(pod, place, seen, list);
        }
    }
    return list;
}

json_t *result_volumes(const struct followed_job *job)
{
    muster_auto(doc) json_t *pods = follow_pods(job);
    return volumes_of(job, pods);
}

void result_say(const struct followed_job *job, const char *results)
{
    muster_auto(doc) json_t *pods = follow_pods(job);
    muster_auto(doc) json_t *volumes = volumes_of(job, pods);
    struct verdict v = judge(job, pods);
    say_head(job, &v, pods);
    size_t i;
    json_t *volume;
    json_array_foreach (volumes, i, volume) {
        if (doc_bool(volume, "kept", false)) {
            screen_note(job->follow->screen, "  %s is in %s", doc_text(volume, "mountPath", ""),
                        doc_text(volume, "path", ""));
        }
    }
    const json_t *shown = v.pod ? json_object_get(job->pods, v.pod) : json_array_get(pods, 0);
    const char *log = log_file(job, doc_text(shown, "metadata.name", ""),
                               v.pod && *v.container ? v.container : ranks_main_container(shown));
    if (log) {
        screen_note(job->follow->screen, "  logs: muster logs %s (%s)", job->name, log);
    }
    if (results) {
        screen_note(job->follow->screen, "  results are in %s", results);
    }
}

/* Exit code of the pod's main container: null while it has none. */
static json_t *replica_doc(const struct followed_job *j, const json_t *pod)
{
    const char *name = doc_text(pod, "metadata.name", "");
    const char *container = ranks_main_container(pod);
    const json_t *status = ranks_container_status(pod, container);
    const json_t *end = doc_at(status, "state.terminated");
    end = end ? end : doc_at(status, "lastState.terminated");
    long rank = ranks_number(pod);
    return json_pack("{s:s, s:o, s:s, s:o, s:s, s:I, s:s?}", "name", name, "rank",
                     rank < 0 ? json_null() : json_integer(rank), "state",
                     doc_text(pod, "status.phase", "Unknown"), "exitCode",
                     end ? json_integer(doc_int(end, "exitCode", 0)) : json_null(), "reason",
                     doc_text(end, "reason", ""), "restarts",
                     (json_int_t)doc_int(status, "restartCount", 0), "logFile",
                     log_file(j, name, container));
}

json_t *result_doc(const struct followed_job *job, const char *results)
{
    muster_auto(doc) json_t *pods = follow_pods(job);
    struct verdict v = judge(job, pods);
    struct buf why;
    buf_init(&why, LINE_BYTES_MAX);
    verdict_why(&v, job->object, pods, &why);
    json_t *replicas = json_array();
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) {
        json_array_append_new(replicas, replica_doc(job, pod));
    }
    int64_t end_ms = job->over ? job->over_ms : clock_ms();
    json_t *doc = json_pack(
        "{s:s, s:s, s:s, s:i, s:s, s:s, s:I, s:o, s:o, s:s?}", "name", job->name, "namespace",
        job->namespace, "state", v.state, "exitCode", v.exit_code, "reason", v.reason, "message",
        why.used ? buf_str(&why) : v.message, "durationMs", (json_int_t)(end_ms - job->started_ms),
        "replicas", replicas, "volumes", volumes_of(job, pods), "results", results);
    buf_done(&why);
    return doc;
}
