/* muster logs: one pod's, or those of a job's ranks. */
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
    struct pod_set set;            /* the pods as they are now, those that are gone as well */
    char *run;                     /* with --run: its path at the API */
    json_t *job;                   /* whose end ends --follow, or NULL */
    bool job_over;
    bool pods_over;
    json_t *pods; /* followed: uid -> whether it has ended */
};

static int read_parameters(struct reader *r)
{
    const struct args *args = &r->cli->args;
    int64_t tail = -1;
    int64_t since_ms = -1;
    int failed = args_number(args, "tail", 0, INT_MAX, &tail, &r->cli->err);
    if (failed == 0) {
        failed = args_duration(args, "since", &since_ms, &r->cli->err);
    }
    size_t used = 0;
    if (tail >= 0) {
        used += (size_t)snprintf(r->parameters + used, PARAMETERS_BYTES - used, "&tailLines=%lld",
                                 (long long)tail);
    }
    if (since_ms >= 0) {
        used += (size_t)snprintf(r->parameters + used, PARAMETERS_BYTES - used,
                                 "&sinceSeconds=%lld", (long long)(since_ms + 999) / 1000);
    }
    return failed;
}

/* By -l, or all of them. */
static int choose_by_labels(struct reader *r, bool earlier)
{
    struct cli *cli = r->cli;
    const char *labels = args_value(&cli->args, "selector");
    if (!labels && !args_flag(&cli->args, "all")) {
        return muster_fail(&cli->err, MUSTER_EINVAL,
                           "logs: give a job, a pod, -l SELECTOR or --all");
    }
    snprintf(r->selector, sizeof r->selector, "%s", labels ? labels : "");
    const struct pod_set_query query = {.labels = labels, .earlier = earlier};
    return pod_set_get(cli, cli_namespace(cli), &query, &r->set);
}

/* Of an earlier run; its pods' prefixes are those they had. */
static int choose_run(struct reader *r, int64_t run)
{
    struct cli *cli = r->cli;
    muster_auto(free) char *job = NULL;
    if (cli->args.operand_count == 0 || args_flag(&cli->args, "follow")) {
        return muster_fail(&cli->err, MUSTER_EINVAL,
                           "logs: --run is of one job, and over: muster logs JOB --run N");
    }
    int failed = runs_find_pods(cli, cli->args.operands[0], run, &r->set, &job);
    if (failed < 0) {
        return failed;
    }
    const char *word = strrchr(cli->args.operands[0], '/');
    word = word ? word + 1 : cli->args.operands[0];
    if (strcmp(word, job) != 0) { /* a single pod: its bytes as they are */
        snprintf(r->fields, sizeof r->fields, "metadata.name=%s", word);
    }
    r->run = runs_path(cli, job, run);
    return r->run ? 0 : err_no_memory(&cli->err);
}

/* Which pods: by -l, all of them, a job's, or one. */
static int choose_pods(struct reader *r)
{
    const struct args *args = &r->cli->args;
    int64_t run = 0;
    int bad = args_number(args, "run", 1, INT_MAX, &run, &r->cli->err);
    if (bad < 0 || run > 0) {
        return bad < 0 ? bad : choose_run(r, run);
    }
    bool earlier = args_flag(args, "all") && !args_flag(args, "previous");
    if (args->operand_count == 0) {
        return choose_by_labels(r, earlier);
    }
    int failed = pod_set_find(r->cli, args->operands[0], earlier, &r->set, &r->job);
    if (failed < 0) {
        return failed;
    }
    if (r->job) {
        snprintf(r->selector, sizeof r->selector, "training.kubeflow.org/job-name=%s",
                 doc_text(r->job, "metadata.name", ""));
    } else {
        snprintf(r->fields, sizeof r->fields, "metadata.name=%s",
                 doc_text(json_array_get(r->set.pods, 0), "metadata.name", ""));
    }
    return 0;
}

static int new_logs(struct reader *r, bool follow)
{
    const struct args *args = &r->cli->args;
    bool several = !*r->fields || args_flag(args, "all");
    bool timestamps = args_flag(args, "timestamps");
    struct pod_logs_options options = {
        .parameters = *r->parameters ? r->parameters + 1 : NULL,
        .container = args_value(args, "container"),
        .all = args_flag(args, "all"),
        .previous = args_flag(args, "previous"),
        .follow = follow,
        .prefixes = several,
        .raw = !several,
        .by_time = several || timestamps,
        .timestamps = timestamps,
        .as_written = args_flag(args, "as-written"),
        .run = r->run,
        .ends_with_start = *r->fields != '\0',
    };
    r->logs = pod_logs_new(r->cli, &r->screen, &options);
    return r->logs ? 0 : err_no_memory(&r->cli->err);
}

/* All at once: their lines are put into the order of their times. */
static int print_now(struct reader *r)
{
    if (json_array_size(r->set.pods) == 0) {
        fprintf(stderr, "No pods.\n");
    }
    size_t i;
    json_t *pod;
    json_array_foreach (r->set.pods, i, pod) {
        pod_logs_pod(r->logs, pod, pod_set_is_gone(&r->set, pod));
    }
    while (!pod_logs_idle(r->logs) && !r->screen.write_errno) {
        uv_run(&r->cli->loop, UV_RUN_ONCE);
    }
    return pod_logs_error(r->logs, &r->cli->err);
}

/* A job that ended, or a pod that is gone, will say no more. */
static bool may_say_more(const struct reader *r)
{
    if (r->job) {
        return !job_is_finished(r->job);
    }
    return !*r->fields || !pod_set_is_gone(&r->set, json_array_get(r->set.pods, 0));
}

static bool is_over(const json_t *pod)
{
    const char *phase = doc_text(pod, "status.phase", "");
    return strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
}

static void pod_changed(void *context, enum kube_change change, const json_t *pod)
{
    struct reader *r = context;
    bool gone = change == KUBE_DELETED;
    json_object_set_new(r->pods, doc_text(pod, "metadata.uid", ""),
                        json_boolean(gone || is_over(pod)));
    pod_logs_pod(r->logs, pod, gone);
    r->pods_over = true;
    const char *uid;
    json_t *over;
    json_object_foreach (r->pods, uid, over) {
        r->pods_over = r->pods_over && json_is_true(over);
    }
}

static void job_changed(void *context, enum kube_change change, const json_t *job)
{
    struct reader *r = context;
    r->job_over = change == KUBE_DELETED || job_is_finished(job);
}

/* Until the single pod's containers were read, the job has ended, or all chosen pods have. */
static bool is_done(const struct reader *r)
{
    bool over = r->job ? r->job_over : r->pods_over;
    return r->screen.write_errno || (over && pod_logs_idle(r->logs)) ||
           (*r->fields && pod_logs_read_one(r->logs));
}

static int follow(struct reader *r)
{
    const char *namespace = cli_namespace(r->cli);
    struct kube_ref pods = {kube_resource_find("pods"), namespace, NULL, NULL};
    struct kube_ref job = {kube_resource_find("pytorchjobs"), namespace,
                           doc_text(r->job, "metadata.name", ""), NULL};
    struct kube_query query = {.labels = *r->selector ? r->selector : NULL,
                               .fields = *r->fields ? r->fields : NULL};
    struct kube_watch *pod_watch = NULL;
    struct kube_watch *job_watch = NULL;
    muster_auto(doc) json_t *seen = json_object();
    r->pods = seen;
    int failed =
        kube_watch_start(r->cli->kube, &pods, &query, &(struct kube_watch_events){pod_changed, r},
                         &pod_watch, &r->cli->err);
    if (failed == 0 && r->job) {
        failed =
            kube_watch_start(r->cli->kube, &job, NULL, &(struct kube_watch_events){job_changed, r},
                             &job_watch, &r->cli->err);
    }
    while (failed == 0 && !is_done(r)) {
        uv_run(&r->cli->loop, UV_RUN_ONCE);
    }
    kube_watch_stop(pod_watch);
    kube_watch_stop(job_watch);
    return failed;
}

int cli_logs(struct cli *cli)
{
    struct reader r = {.cli = cli};
    int failed = cli_expect_operands(cli, 0, 1);
    if (failed == 0) {
        failed = read_parameters(&r);
    }
    if (failed == 0) {
        failed = cli_connect(cli, KUBE_START);
    }
    if (failed == 0) {
        failed = choose_pods(&r);
    }
    bool following = args_flag(&cli->args, "follow") && may_say_more(&r);
    screen_init(&r.screen, STDOUT_FILENO);
    if (failed == 0) {
        failed = new_logs(&r, following);
    }
    if (failed == 0) {
        failed = following ? follow(&r) : print_now(&r);
    }
    screen_drain(&r.screen);
    if (failed == 0 && r.screen.write_errno && r.screen.write_errno != EPIPE) {
        failed = muster_fail(&cli->err, MUSTER_EIO, "cannot write the logs: %s",
                             strerror(r.screen.write_errno));
    }
    pod_logs_free(r.logs);
    screen_done(&r.screen);
    pod_set_done(&r.set);
    free(r.run);
    json_decref(r.job);
    return failed;
}
