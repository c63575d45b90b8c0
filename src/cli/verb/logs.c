/* muster logs: prints the log of one pod, or those of a job's ranks. */
#include "cli/command/verbs.h"

#include "base/err.h"
#include "cli/log/pod_logs.h"
#include "cli/pod/pod_set.h"
#include "cli/pod/runs.h"
#include "job/job.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PARAMETERS_BYTES = 256, SELECTOR_BYTES = 256 };

struct reader {
    struct cli *cli;
    struct screen screen;
    struct pod_logs *logs;
    char parameters[PARAMETERS_BYTES];
    char selector[SELECTOR_BYTES]; /* of the pods to read; "" for a single pod */
    char fields[SELECTOR_BYTES];   /* the single pod's name */
    struct pod_set set;            /* the pods as they are now, and those that were deleted */
    char *run;                     /* with --run: its path at the API */
    json_t *job;                   /* the job whose end ends --follow, or NULL */
    bool job_over;
    bool pods_over;
    json_t *pods; /* followed: uid -> whether it has ended */
};

static int read_parameters(struct reader *reader)
{
    const struct args *args = &reader->cli->args;
    int64_t tail = -1;
    int64_t since_ms = -1;
    int r = args_number(args, "tail", -1, INT_MAX, &tail, &reader->cli->err);
    if (r == 0) {
        r = args_duration(args, "since", &since_ms, &reader->cli->err);
    }
    size_t used = 0;
    if (tail >= 0) {
        used += (size_t)snprintf(reader->parameters + used, PARAMETERS_BYTES - used,
                                 "&tailLines=%lld", (long long)tail);
    }
    if (since_ms >= 0) {
        used += (size_t)snprintf(reader->parameters + used, PARAMETERS_BYTES - used,
                                 "&sinceSeconds=%lld", (long long)(since_ms + 999) / 1000);
    }
    return r;
}

/* Chooses pods by -l, or all of them. */
static int choose_by_labels(struct reader *reader, bool earlier)
{
    struct cli *cli = reader->cli;
    const char *labels = args_value(&cli->args, "selector");
    if (!labels && !args_flag(&cli->args, "all")) {
        return muster_fail(&cli->err, MUSTER_EINVAL,
                           "logs: give a job, a pod, -l SELECTOR or --all");
    }
    snprintf(reader->selector, sizeof reader->selector, "%s", labels ? labels : "");
    const struct pod_set_query query = {.labels = labels, .earlier = earlier};
    return pod_set_get(cli, cli_namespace(cli), &query, &reader->set);
}

/* Chooses the pods of an earlier run; they keep their prefixes. */
static int choose_run(struct reader *reader, int64_t run)
{
    struct cli *cli = reader->cli;
    muster_auto(free) char *job = NULL;
    if (cli->args.operand_count == 0 || args_flag(&cli->args, "follow")) {
        return muster_fail(
            &cli->err, MUSTER_EINVAL,
            "logs: --run shows a run of one job that is over: muster logs JOB --run N");
    }
    int r = runs_find_pods(cli, cli->args.operands[0], run, &reader->set, &job);
    if (r < 0) {
        return r;
    }
    const char *word = strrchr(cli->args.operands[0], '/');
    word = word ? word + 1 : cli->args.operands[0];
    if (strcmp(word, job) != 0) { /* a single pod: its bytes as they are */
        snprintf(reader->fields, sizeof reader->fields, "metadata.name=%s", word);
    }
    reader->run = runs_path(cli, job, run);
    return reader->run ? 0 : err_no_memory(&cli->err);
}

/* Chooses pods: by -l, all of them, a job's, or one. */
static int choose_pods(struct reader *reader)
{
    const struct args *args = &reader->cli->args;
    int64_t run = 0;
    int r = args_number(args, "run", 1, INT_MAX, &run, &reader->cli->err);
    if (r < 0 || run > 0) {
        return r < 0 ? r : choose_run(reader, run);
    }
    bool earlier = args_flag(args, "all") && !args_flag(args, "previous");
    if (args->operand_count == 0) {
        return choose_by_labels(reader, earlier);
    }
    int failed = pod_set_find(reader->cli, args->operands[0], earlier, &reader->set, &reader->job);
    if (failed < 0) {
        return failed;
    }
    if (reader->job) {
        snprintf(reader->selector, sizeof reader->selector, "training.kubeflow.org/job-name=%s",
                 doc_text(reader->job, "metadata.name", ""));
    } else {
        snprintf(reader->fields, sizeof reader->fields, "metadata.name=%s",
                 doc_text(json_array_get(reader->set.pods, 0), "metadata.name", ""));
    }
    return 0;
}

static int new_logs(struct reader *reader, bool follow)
{
    const struct args *args = &reader->cli->args;
    bool several = !*reader->fields || args_flag(args, "all");
    bool timestamps = args_flag(args, "timestamps");
    struct pod_logs_options options = {
        .parameters = *reader->parameters ? reader->parameters + 1 : NULL,
        .container = args_value(args, "container"),
        .all = args_flag(args, "all"),
        .previous = args_flag(args, "previous"),
        .follow = follow,
        .prefixes = several,
        .raw = !several,
        .by_time = several || timestamps,
        .timestamps = timestamps,
        .as_written = args_flag(args, "as-written"),
        .run = reader->run,
        .ends_with_start = *reader->fields != '\0',
    };
    reader->logs = pod_logs_new(reader->cli, &reader->screen, &options);
    return reader->logs ? 0 : err_no_memory(&reader->cli->err);
}

/* Prints all logs at once, with their lines in the order of their times. */
static int print_now(struct reader *reader)
{
    if (json_array_size(reader->set.pods) == 0) {
        fprintf(stderr, "No pods.\n");
    }
    size_t i;
    json_t *pod;
    json_array_foreach (reader->set.pods, i, pod) {
        pod_logs_pod(reader->logs, pod, pod_set_is_gone(&reader->set, pod));
    }
    while (!pod_logs_idle(reader->logs) && !reader->screen.write_errno) {
        uv_run(&reader->cli->loop, UV_RUN_ONCE);
    }
    return pod_logs_error(reader->logs, &reader->cli->err);
}

/* Whether there may be more output: not after a job has ended, or a pod was deleted. */
static bool may_say_more(const struct reader *reader)
{
    if (reader->job) {
        return !job_is_finished(reader->job);
    }
    return !*reader->fields || !pod_set_is_gone(&reader->set, json_array_get(reader->set.pods, 0));
}

static bool is_over(const json_t *pod)
{
    const char *phase = doc_text(pod, "status.phase", "");
    return strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
}

static void pod_changed(void *context, enum kube_change change, const json_t *pod)
{
    struct reader *reader = context;
    bool gone = change == KUBE_DELETED;
    json_object_set_new(reader->pods, doc_text(pod, "metadata.uid", ""),
                        json_boolean(gone || is_over(pod)));
    pod_logs_pod(reader->logs, pod, gone);
    reader->pods_over = true;
    const char *uid;
    json_t *over;
    json_object_foreach (reader->pods, uid, over) {
        reader->pods_over = reader->pods_over && json_is_true(over);
    }
}

static void job_changed(void *context, enum kube_change change, const json_t *job)
{
    struct reader *reader = context;
    reader->job_over = change == KUBE_DELETED || job_is_finished(job);
}

/* Whether the single pod's containers were read, the job has ended, or all chosen pods have ended.
 */
static bool is_done(const struct reader *reader)
{
    bool over = reader->job ? reader->job_over : reader->pods_over;
    return reader->screen.write_errno || (over && pod_logs_idle(reader->logs)) ||
           (*reader->fields && pod_logs_read_one(reader->logs));
}

static int follow(struct reader *reader)
{
    const char *namespace = cli_namespace(reader->cli);
    struct kube_ref pods = {kube_resource_find("pods"), namespace, NULL, NULL};
    struct kube_ref job = {kube_resource_find("pytorchjobs"), namespace,
                           doc_text(reader->job, "metadata.name", ""), NULL};
    struct kube_query query = {.labels = *reader->selector ? reader->selector : NULL,
                               .fields = *reader->fields ? reader->fields : NULL};
    struct kube_watch *pod_watch = NULL;
    struct kube_watch *job_watch = NULL;
    muster_auto(doc) json_t *seen = json_object();
    reader->pods = seen;
    int r = kube_watch_start(reader->cli->kube, &pods, &query,
                             &(struct kube_watch_events){pod_changed, reader}, &pod_watch,
                             &reader->cli->err);
    if (r == 0 && reader->job) {
        r = kube_watch_start(reader->cli->kube, &job, NULL,
                             &(struct kube_watch_events){job_changed, reader}, &job_watch,
                             &reader->cli->err);
    }
    while (r == 0 && !is_done(reader)) {
        uv_run(&reader->cli->loop, UV_RUN_ONCE);
    }
    kube_watch_stop(pod_watch);
    kube_watch_stop(job_watch);
    return r;
}

int cli_logs(struct cli *cli)
{
    struct reader reader = {.cli = cli};
    int r = cli_expect_operands(cli, 0, 1);
    if (r == 0) {
        r = read_parameters(&reader);
    }
    if (r == 0) {
        r = cli_connect(cli, KUBE_START);
    }
    if (r == 0) {
        r = choose_pods(&reader);
    }
    bool following = args_flag(&cli->args, "follow") && may_say_more(&reader);
    screen_init(&reader.screen, STDOUT_FILENO);
    if (r == 0) {
        r = new_logs(&reader, following);
    }
    if (r == 0) {
        r = following ? follow(&reader) : print_now(&reader);
    }
    screen_drain(&reader.screen);
    if (r == 0 && reader.screen.write_errno && reader.screen.write_errno != EPIPE) {
        r = muster_fail(&cli->err, MUSTER_EIO, "cannot write the logs: %s",
                        strerror(reader.screen.write_errno));
    }
    pod_logs_free(reader.logs);
    screen_done(&reader.screen);
    pod_set_done(&reader.set);
    free(reader.run);
    json_decref(reader.job);
    return r;
}
