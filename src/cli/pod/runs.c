/* See runs.h. */
#include "cli/pod/runs.h"

#include "base/err.h"
#include "base/time/age.h"
#include "cli/pod/pod_name.h"
#include "cli/pod/ranks.h"
#include "cli/show/event_list.h"
#include "cli/show/table.h"
#include "job/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELL_BYTES = 64, RANK_COLUMNS = 5, SAME_NAME_MAX = 10 };

/* ---- Asking for one ---- */

char *runs_path(const struct cli *cli, const char *job, int64_t run)
{
    char *path = NULL;
    return asprintf(&path, "/muster/v1/history/%s/%s/%" PRId64, cli_namespace(cli), job, run) < 0
               ? NULL
               : path;
}

int runs_check(struct cli *cli, const struct target *job)
{
    const char *verb = cli->args.command->name;
    if (job->resource && strcmp(job->resource->kind, "PyTorchJob") != 0) {
        return muster_fail(&cli->err, MUSTER_EINVAL, "%s: only jobs have runs", verb);
    }
    const char *fault = job->name ? job_text_fault(SCHEMA_SUBDOMAIN, job->name) : NULL;
    return fault ? muster_fail(&cli->err, MUSTER_EINVAL, "%s: the job's name %s", verb, fault) : 0;
}

int runs_get(struct cli *cli, const char *job, int64_t run, json_t **ret)
{
    muster_auto(free) char *path = runs_path(cli, job, run);
    return path ? kube_call(cli->kube, "GET", path, NULL, ret, &cli->err)
                : err_no_memory(&cli->err);
}

/* Gets a document; NULL, without a message, if it cannot be read. Frees the path. */
static json_t *get(struct cli *cli, char *path)
{
    json_t *answer = NULL;
    if (path) {
        (void)kube_call(cli->kube, "GET", path, NULL, &answer, NULL);
    }
    free(path);
    return answer;
}

static json_t *list_runs(struct cli *cli, const char *namespace, const char *name)
{
    char *path = NULL;
    return get(cli, asprintf(&path, "/muster/v1/history?limit=%d&namespace=%s&job=%s",
                             SAME_NAME_MAX, namespace, name) < 0
                        ? NULL
                        : path);
}

static json_t *get_run(struct cli *cli, const char *namespace, const char *name, int64_t run)
{
    char *path = NULL;
    return get(cli, asprintf(&path, "/muster/v1/history/%s/%s/%" PRId64, namespace, name, run) < 0
                        ? NULL
                        : path);
}

json_t *runs_find_uid(struct cli *cli, const char *namespace, const char *name, const char *uid)
{
    muster_auto(doc) json_t *list = cli_on_cluster(cli) ? NULL : list_runs(cli, namespace, name);
    size_t i;
    json_t *summary;
    json_array_foreach (doc_at(list, "runs"), i, summary) {
        muster_auto(doc) json_t *run = get_run(cli, namespace, name, doc_int(summary, "run", 0));
        if (strcmp(doc_text(run, "job.metadata.uid", ""), uid) == 0) {
            return muster_take(run);
        }
    }
    return NULL;
}

static json_t *named(const json_t *pods, const char *name)
{
    json_t *chosen = json_array();
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) {
        if (!name || strcmp(doc_text(pod, "metadata.name", ""), name) == 0) {
            json_array_append(chosen, pod);
        }
    }
    return chosen;
}

/* Gets the run of the job of that name, else of the job that the pod of that name belongs to. */
static int get_of_word(struct cli *cli, const char *word, int64_t run, char **ret_job,
                       bool *ret_pod, json_t **ret)
{
    muster_auto(free) char *job = strdup(word);
    int r = job ? runs_get(cli, job, run, ret) : err_no_memory(&cli->err);
    const struct muster_err why = cli->err;
    muster_auto(free) char *of_pod = r == MUSTER_ENOENT ? pod_name_job(word) : NULL;
    *ret_pod = of_pod && runs_get(cli, of_pod, run, ret) == 0;
    if (*ret_pod) {
        *ret_job = muster_take(of_pod);
        return 0;
    }
    if (r < 0) {
        cli->err = why;
        return r;
    }
    *ret_job = muster_take(job);
    return 0;
}

int runs_find_pods(struct cli *cli, const char *word, int64_t run, struct pod_set *ret,
                   char **ret_job)
{
    struct target target;
    muster_auto(doc) json_t *answer = NULL;
    muster_auto(free) char *job = NULL;
    bool is_pod = false;
    int r = target_read(cli, word, &target);
    if (r == 0 && target.resource && strcmp(target.resource->kind, "Pod") == 0) {
        target.resource = NULL; /* "pod/mnist-worker-0" is as good as the name alone */
    }
    r = r < 0 ? r : runs_check(cli, &target);
    r = r < 0 ? r : get_of_word(cli, target.name, run, &job, &is_pod, &answer);
    if (r < 0) {
        return r;
    }
    muster_auto(doc) json_t *pods = named(doc_at(answer, "pods"), is_pod ? target.name : NULL);
    muster_auto(doc) json_t *gone = json_object();
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) {
        json_object_set_new(gone, doc_text(pod, "metadata.uid", ""), json_true());
    }
    if (is_pod && json_array_size(pods) == 0) {
        return muster_fail(&cli->err, MUSTER_ENOENT, "run %" PRId64 " of job %s had no pod %s", run,
                           job, target.name);
    }
    *ret = (struct pod_set){ranks_sort(pods), muster_take(gone)};
    *ret_job = muster_take(job);
    return 0;
}

/* ---- The table ---- */

static void lasted(const json_t *summary, char ret[CELL_BYTES])
{
    int64_t ms = doc_int(summary, "durationMs", -1);
    if (ms < 0) {
        snprintf(ret, CELL_BYTES, "-");
    } else {
        char text[AGE_BYTES];
        snprintf(ret, CELL_BYTES, "%s", age_text(ms, text));
    }
}

static json_t *exit_cell(const json_t *doc)
{
    const json_t *code = doc_at(doc, "exitCode");
    return code ? json_sprintf("%" PRId64, doc_int(doc, "exitCode", 0)) : json_string("-");
}

static json_t *row_of(const json_t *summary)
{
    char duration[CELL_BYTES], run[CELL_BYTES];
    bool current = doc_bool(summary, "current", false);
    snprintf(run, sizeof run, "%" PRId64 "%s", doc_int(summary, "run", 0),
             current ? " (current)" : "");
    lasted(summary, duration);
    return json_pack("{s:[s, s, s, o, s, s, I, s, s], s:{s:{s:s}}}", "cells", run,
                     doc_text(summary, "name", ""), doc_text(summary, "state", ""),
                     exit_cell(summary), doc_text(summary, "started", "-"), duration,
                     (json_int_t)doc_int(summary, "ranks", 0), doc_text(summary, "message", ""),
                     doc_text(summary, "command", ""), "object", "metadata", "namespace",
                     doc_text(summary, "namespace", ""));
}

json_t *runs_table(const json_t *runs)
{
    static const char *const names[] = {"Run",      "Name",  "State", "Exit",   "Started",
                                        "Duration", "Ranks", "Why",   "Command"};
    json_t *columns = json_array();
    json_t *rows = json_array();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        bool wide = i + 1 == sizeof names / sizeof names[0];
        json_array_append_new(columns, json_pack("{s:s, s:s, s:i}", "name", names[i], "type",
                                                 "string", "priority", wide ? 1 : 0));
    }
    size_t i;
    json_t *summary;
    json_array_foreach (runs, i, summary) {
        json_array_append_new(rows, row_of(summary));
    }
    return json_pack("{s:s, s:o, s:o}", "kind", "Table", "columnDefinitions", columns, "rows",
                     rows);
}

/* ---- One run ---- */

static json_t *rank_row(const json_t *replica, const json_t *pods)
{
    char rank[CELL_BYTES] = "-";
    const json_t *pod = doc_find(pods, "metadata.uid", doc_text(replica, "uid", ""));
    long number = pod ? ranks_number(pod) : -1;
    if (number >= 0) {
        snprintf(rank, sizeof rank, "%ld", number);
    }
    return json_pack("{s:[s, s, s, o, I]}", "cells", rank, doc_text(replica, "name", ""),
                     doc_text(replica, "state", ""), exit_cell(replica),
                     (json_int_t)doc_int(replica, "restarts", 0));
}

static void describe_ranks(const json_t *summary, const json_t *pods, struct buf *out)
{
    static const char *const names[RANK_COLUMNS] = {"Rank", "Pod", "State", "Exit", "Restarts"};
    muster_auto(doc) json_t *table = json_pack("{s:[], s:[]}", "columnDefinitions", "rows");
    struct table how = {.headers = true};
    for (size_t i = 0; i < RANK_COLUMNS; i++) {
        json_array_append_new(
            doc_at(table, "columnDefinitions"),
            json_pack("{s:s, s:s, s:i}", "name", names[i], "type", "string", "priority", 0));
    }
    size_t i;
    json_t *replica;
    json_array_foreach (doc_at(summary, "replicas"), i, replica) {
        json_array_append_new(doc_at(table, "rows"), rank_row(replica, pods));
    }
    buf_text(out, "\n");
    table_print(&how, table, out);
}

static void line(struct buf *out, const char *label, const char *text)
{
    if (*text) {
        buf_format(out, "%-10s %s\n", label, text);
    }
}

void runs_describe(const json_t *run, int64_t now_unix_ms, struct buf *out)
{
    const json_t *summary = doc_at(run, "summary");
    char duration[CELL_BYTES];
    lasted(summary, duration);
    muster_auto(doc) json_t *code = exit_cell(summary);
    buf_format(out, "%-10s %" PRId64 "\n", "Run:", doc_int(summary, "run", 0));
    line(out, "Job:", doc_text(summary, "name", ""));
    line(out, "Namespace:", doc_text(summary, "namespace", ""));
    line(out, "State:", doc_text(summary, "state", ""));
    line(out, "Exit code:", json_string_value(code));
    line(out, "Why:", doc_text(summary, "message", ""));
    line(out, "Started:", doc_text(summary, "started", ""));
    line(out, "Finished:", doc_text(summary, "finished", ""));
    line(out, "Duration:", duration);
    line(out, "Command:", doc_text(summary, "command", ""));
    int64_t dropped = doc_int(summary, "logBytesDropped", 0);
    if (dropped > 0) {
        buf_format(out, "%-10s the oldest %" PRId64 " bytes were left out (MUSTER_HISTORY_BYTES)\n",
                   "Logs:", dropped);
    }
    describe_ranks(summary, doc_at(run, "pods"), out);
    muster_auto(doc) json_t *events = event_list_sort(doc_at(run, "events"));
    if (json_array_size(events) > 0) {
        buf_text(out, "\n");
        event_list_describe(events, now_unix_ms, out);
    }
}
