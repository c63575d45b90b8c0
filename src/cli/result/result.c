/* See result.h: the last line and the JSON object. */
#include "cli/result/result.h"

#include "base/buf.h"
#include "base/text.h"
#include "base/time/age.h"
#include "base/time/clock.h"
#include "cli/follow/bad_ranks.h"
#include "cli/pod/places.h"
#include "cli/pod/ranks.h"
#include "cli/result/resume.h"
#include "cli/show/bytes.h"
#include "cli/show/short_path.h"
#include "cli/submit/restarts.h"
#include "control/control.h"
#include "control/verdict.h"

#include <ctype.h>
#include <signal.h>
#include <string.h>

enum { LINE_BYTES_MAX = 8 << 10, TAIL_LINES = 5, SIGNAL_BASE = 128 };

/* Whether a signal ended anything that still ran. If nothing did, the job's own verdict counts. */
static bool was_cut_short(const struct followed_job *j, const struct verdict *v)
{
    bool by_itself = v->end == VERDICT_SUCCEEDED || (v->end == VERDICT_FAILED && !v->stopped);
    return j->follow->interrupt.signal && (j->cut_short || !by_itself);
}

static struct verdict judge(const struct followed_job *j, const json_t *pods)
{
    struct verdict v = verdict_of(j->object, pods, j->deleted);
    if (was_cut_short(j, &v)) {
        v.exit_code = SIGNAL_BASE + j->follow->interrupt.signal;
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

/* Whether the line is not just decoration: torchrun, and Python for a group of exceptions, draw a
 * rule below the error; Python lists its modules after a crash; its resource tracker reports what
 * dead processes have left. */
static bool says_something(const char *line)
{
    static const char modules[] = "Extension modules: ",
                      tracker[] = "resource_tracker: There appear";
    if (strncmp(line, modules, sizeof modules - 1) == 0 || strstr(line, tracker)) {
        return false;
    }
    while (*line && !isalnum((unsigned char)*line) && (unsigned char)*line < 0x80) {
        line++;
    }
    return *line != '\0';
}

/* The line that most likely says what went wrong; NULL if there is none. */
static const char *last_line(const struct followed_job *j, const char *pod, const char *container)
{
    const char *last = NULL;
    for (size_t i = 0; i < TAIL_LINES; i++) {
        const char *line = pod_logs_last_line(j->logs, pod, container, i);
        last = line && (!last || says_something(line)) ? line : last;
    }
    return last;
}

/* Adds the last line, unless the verdict has it already, as for a coordinator. */
static void add_last_line(const struct followed_job *j, const struct verdict *v, const json_t *pods,
                          struct buf *out)
{
    const char *last = v->pod ? last_line(j, v->pod, v->container) : NULL;
    const char *said = control_first_failure(j->object, pods).message;
    if (last && !(said && *said && strstr(last, said))) {
        buf_format(out, ": \"%.300s\"", last);
    }
}

static json_t *bad_ranks(const struct followed_job *j, const json_t *pods)
{
    const struct bad_ranks_seen seen = {j->stopped, j->late, j->untold_end};
    return bad_ranks_list(j->object, pods, &seen);
}

/* The ranks that failed, each with its last line. */
static json_t *bad_ranks_with_lines(const struct followed_job *j, const json_t *pods)
{
    json_t *list = bad_ranks(j, pods);
    size_t i;
    json_t *entry;
    json_array_foreach (list, i, entry) {
        const char *container = doc_text(entry, "container", "");
        const char *line = *container ? last_line(j, doc_text(entry, "name", ""), container) : NULL;
        if (line) {
            json_object_set_new(entry, "lastLine", json_string(line));
        }
    }
    return list;
}

/* Adds the ranks that did not succeed: all of them if the job succeeded, and if it failed those
 * that failed after the first. Why the rest of a failed job was stopped is clear. */
static void add_bad_ranks(const struct followed_job *j, const struct verdict *v, const json_t *pods,
                          struct buf *out)
{
    bool succeeded = v->end == VERDICT_SUCCEEDED;
    muster_auto(doc) json_t *list = succeeded ? bad_ranks_with_lines(j, pods) : bad_ranks(j, pods);
    if (succeeded && v->exit_code != 0) {
        buf_format(out, ", then SIG%s ended what ran", sigabbrev_np(j->follow->interrupt.signal));
    }
    if (succeeded) {
        bad_ranks_say(list, NULL, NULL, "; ", out);
    } else if (v->end == VERDICT_FAILED) {
        bad_ranks_say(list, "Failed", v->stopped || v->deadline ? NULL : v->pod, "; also ", out);
    }
}

static struct trouble_view view_of(const struct followed_job *j)
{
    return (struct trouble_view){j->object, j->logs};
}

/* Prints that the job's end was not seen. The supervisor watches this process: once it is gone, the
 * supervisor ends what runs, and nobody sees that. */
static void say_not_seen(const struct followed_job *j)
{
    screen_note(j->follow->screen,
                "job %s: its end was not seen, its ranks may still run: the job's supervisor kills "
                "them as soon as this command has ended (muster get pods; muster down --force "
                "ends a controller that hangs, and all jobs)",
                j->name);
}

/* Adds why the job failed. The sentence about a coordinator that failed names no rank, so no last
 * line can follow. */
static void add_why_failed(const struct followed_job *j, const struct verdict *v,
                           const json_t *pods, struct buf *why)
{
    verdict_why(v, j->object, pods, why);
    if (!v->stopped && !v->deadline && v->pod && text_has_name(buf_str(why), v->pod)) {
        add_last_line(j, v, pods, why);
    }
    const json_t *last = v->pod ? json_object_get(j->pods, v->pod) : NULL;
    trouble_add_first(&j->trouble, view_of(j), last, v->stopped, why);
}

static void say_head(const struct followed_job *j, const struct verdict *v, const json_t *pods)
{
    if (v->end == VERDICT_RUNNING && j->untold_end) {
        say_not_seen(j);
        return;
    }
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
        buf_text(&why, ": ");
        add_why_failed(j, v, pods, &why);
    }
    add_bad_ranks(j, v, pods, &why);
    screen_note(j->follow->screen, "job %s %s after %s%s", j->name, ends[v->end],
                age_words(end_ms - j->started_ms, lasted), buf_str(&why));
    buf_done(&why);
}

static bool is_volume(const json_t *pod, const char *name, const char *kind)
{
    return json_object_get(doc_find(doc_at(pod, "spec.volumes"), "name", name), kind) != NULL;
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

/* Lists the volumes that training wrote to, claims and empty directories, each folder once. */
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

/* Prints how to read the logs, and how much of long logs was rotated away. */
static void say_logs(const struct followed_job *j, const json_t *pods)
{
    char size[BYTES_TEXT];
    bool kept = false;
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) {
        const char *name = doc_text(pod, "metadata.name", "");
        const json_t *place = places_of(j->places, name, ranks_main_container(pod));
        int64_t rotated = doc_int(place, "logBytesRotated", 0);
        kept = kept || json_array_size(doc_at(place, "logs")) > 0;
        if (rotated > 0) {
            screen_note(j->follow->screen, "  the first %s of %s's log were rotated away",
                        bytes_text((uint64_t)rotated, size), name);
        }
    }
    if (kept) {
        screen_note(j->follow->screen, "  logs: muster logs %s", j->name);
    }
}

/* Prints where volumes, results and logs are, and a hint; the verdict comes last (say_head). */
static void say_places(const struct followed_job *job, const struct verdict *v, const char *results)
{
    muster_auto(doc) json_t *pods = follow_pods(job);
    muster_auto(doc) json_t *volumes = volumes_of(job, pods);
    const char *hint = trouble_hint(view_of(job), v->pod, v->container);
    char path[SHORT_PATH_BYTES];
    size_t i;
    json_t *volume;
    json_array_foreach (volumes, i, volume) {
        if (doc_bool(volume, "kept", false)) {
            screen_note(job->follow->screen, "  %s is in %s", doc_text(volume, "mountPath", ""),
                        short_path(doc_text(volume, "path", ""), path));
        }
    }
    if (results) {
        screen_note(job->follow->screen, "  results are in %s", short_path(results, path));
    }
    say_logs(job, pods);
    if (hint) {
        screen_note(job->follow->screen, "  hint: %s", hint);
    }
}

/* Looks for the checkpoint of a job that did not end well. */
static void find_checkpoint(const struct followed_job *job, const struct verdict *v,
                            const json_t *pods, struct resume *ret)
{
    *ret = (struct resume){0};
    if (v->end != VERDICT_SUCCEEDED) {
        muster_auto(doc) json_t *volumes = volumes_of(job, pods);
        resume_find(job, pods, volumes, ret);
    }
}

void result_say(const struct followed_job *job, const char *results)
{
    muster_auto(doc) json_t *pods = follow_pods(job);
    struct verdict v = judge(job, pods);
    struct resume resume;
    find_checkpoint(job, &v, pods, &resume);
    say_places(job, &v, results);
    resume_say(job, &resume);
    say_head(job, &v, pods);
}

/* Describes one rank. The exit code is that of the pod's main container, null while it has none. */
static json_t *replica_doc(const struct followed_job *j, const json_t *pod)
{
    const struct bad_ranks_seen seen = {j->stopped, j->late, j->untold_end};
    const char *name = doc_text(pod, "metadata.name", "");
    const char *container = ranks_main_container(pod);
    const json_t *status = ranks_container_status(pod, container);
    const json_t *end = doc_at(status, "state.terminated");
    end = end ? end : doc_at(status, "lastState.terminated");
    long rank = ranks_number(pod);
    int64_t peak = doc_int(status, "peakMemoryBytes", 0);
    return json_pack("{s:s, s:o, s:s, s:o, s:s, s:I, s:o, s:s?}", "name", name, "rank",
                     rank < 0 ? json_null() : json_integer(rank), "state",
                     bad_ranks_state(j->object, pod, &seen), "exitCode",
                     end ? json_integer(doc_int(end, "exitCode", 0)) : json_null(), "reason",
                     doc_text(end, "reason", ""), "restarts",
                     (json_int_t)doc_int(status, "restartCount", 0), "peakMemoryBytes",
                     peak > 0 ? json_integer(peak) : json_null(), "logFile",
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
        "{s:s, s:s, s:s, s:i, s:s, s:s, s:I, s:o, s:o, s:o, s:s?}", "name", job->name, "namespace",
        job->namespace, "state", v.state, "exitCode", v.exit_code, "reason", v.reason, "message",
        why.used ? buf_str(&why) : v.message, "durationMs", (json_int_t)(end_ms - job->started_ms),
        "replicas", replicas, "badRanks", bad_ranks_with_lines(job, pods), "volumes",
        volumes_of(job, pods), "results", results);
    struct resume resume;
    find_checkpoint(job, &v, pods, &resume);
    json_object_set_new(doc, "checkpoint", *resume.path ? json_string(resume.path) : json_null());
    json_object_set_new(doc, "restarts", json_integer(restarts_of(job->object)));
    buf_done(&why);
    return doc;
}
