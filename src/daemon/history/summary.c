/* See summary.h. */
#include "daemon/history/summary.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/shell_words.h"
#include "base/time/timestamp.h"
#include "control/verdict.h"

#include <string.h>

enum { TEXT_BYTES_MAX = 4096 };

static const json_t *main_container(const json_t *containers, const char *name_path)
{
    const json_t *pytorch = doc_find(containers, name_path, "pytorch");
    return pytorch ? pytorch : json_array_get(containers, 0);
}

static json_t *replica(const json_t *pod)
{
    const json_t *status = main_container(doc_at(pod, "status.containerStatuses"), "name");
    const json_t *ended = doc_at(status, "state.terminated");
    ended = ended ? ended : doc_at(status, "lastState.terminated");
    json_t *code = ended ? json_integer(doc_int(ended, "exitCode", 0)) : json_null();
    return json_pack("{s:s, s:s, s:s, s:o, s:I}", "name", doc_text(pod, "metadata.name", ""), "uid",
                     doc_text(pod, "metadata.uid", ""), "state",
                     doc_text(pod, "status.phase", "Pending"), "exitCode", code, "restarts",
                     (json_int_t)doc_int(status, "restartCount", 0));
}

/* Adds the word quoted for a shell. "$$" is Kubernetes' way to write "$". */
static void add_word(const char *word, struct buf *out)
{
    struct buf own;
    buf_init(&own, TEXT_BYTES_MAX);
    for (const char *at = word; *at; at++) {
        buf_add(&own, at, 1);
        at += at[0] == '$' && at[1] == '$';
    }
    buf_text(out, out->used ? " " : "");
    shell_quote(buf_str(&own), out);
    buf_done(&own);
}

static void add_words(const json_t *words, struct buf *out)
{
    size_t i;
    json_t *word;
    json_array_foreach (words, i, word) {
        add_word(json_is_string(word) ? json_string_value(word) : "", out);
    }
}

/* Adds the command of the Master, or of the Workers if there is no Master. A very long command is
 * cut: job.json has all of it. */
static void add_command(const json_t *job, struct buf *out)
{
    const json_t *specs = doc_at(job, "spec.pytorchReplicaSpecs");
    const json_t *spec = doc_at(specs, "Master");
    spec = spec ? spec : doc_at(specs, "Worker");
    const json_t *container = main_container(doc_at(spec, "template.spec.containers"), "name");
    add_words(doc_at(container, "command"), out);
    add_words(doc_at(container, "args"), out);
}

static int set_end(json_t *doc, const json_t *job, const json_t *pods)
{
    struct verdict v = verdict_of(job, pods, false);
    struct buf why;
    buf_init(&why, TEXT_BYTES_MAX);
    if (v.end == VERDICT_FAILED) {
        verdict_why(&v, job, pods, &why);
    }
    int r = doc_set_text(doc, "state", v.state);
    r = r < 0 ? r
              : doc_set(doc, "exitCode",
                        v.end == VERDICT_RUNNING || v.stopped ? json_null()
                                                              : json_integer(v.exit_code));
    r = r < 0 ? r : doc_set_text(doc, "reason", v.reason);
    r = r < 0 ? r : doc_set_text(doc, "message", buf_str(&why));
    buf_done(&why);
    return r;
}

static json_t *timestamp_or_null(const char *text)
{
    return text && *text ? json_string(text) : json_null();
}

static int set_times(json_t *doc, const json_t *job, int64_t now_unix_ms)
{
    const char *started = doc_text(job, "status.startTime", NULL);
    const char *finished = doc_text(job, "status.completionTime", NULL);
    int64_t from = timestamp_read(started);
    int64_t to = finished ? timestamp_read(finished) : now_unix_ms;
    bool known = from != TIMESTAMP_NONE && to != TIMESTAMP_NONE && to >= from;
    int r = doc_set(doc, "started", timestamp_or_null(started));
    r = r < 0 ? r : doc_set(doc, "finished", timestamp_or_null(finished));
    return r < 0 ? r : doc_set(doc, "durationMs", known ? json_integer(to - from) : json_null());
}

/* Counts the names: a pod that was made again belongs to the same rank. */
static json_int_t count_ranks(const json_t *pods)
{
    muster_auto(doc) json_t *names = json_object();
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) {
        json_object_set_new(names, doc_text(pod, "metadata.name", ""), json_true());
    }
    return (json_int_t)json_object_size(names);
}

json_t *history_summary(const json_t *job, const json_t *pods, int64_t run, int64_t now_unix_ms)
{
    muster_auto(doc) json_t *doc = json_pack(
        "{s:I, s:s, s:s, s:s, s:I, s:[]}", "run", (json_int_t)run, "namespace",
        doc_text(job, "metadata.namespace", ""), "name", doc_text(job, "metadata.name", ""), "uid",
        doc_text(job, "metadata.uid", ""), "ranks", count_ranks(pods), "replicas");
    struct buf command;
    buf_init(&command, TEXT_BYTES_MAX);
    add_command(job, &command);
    int r = doc ? doc_set_text(doc, "command", buf_str(&command)) : MUSTER_ENOMEM;
    buf_done(&command);
    r = r < 0 ? r : set_end(doc, job, pods);
    r = r < 0 ? r : set_times(doc, job, now_unix_ms);
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) {
        r = r < 0 ? r : json_array_append_new(json_object_get(doc, "replicas"), replica(pod));
    }
    return r < 0 ? NULL : muster_take(doc);
}
