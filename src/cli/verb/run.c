/* muster run: runs a job, from its file to the last line.
 *
 * read and check → lease → create → follow → say how it ended. What a signal does before a job is
 * followed: follow/signals.h.
 */
#include "cli/command/verbs.h"

#include "base/err.h"
#include "base/file.h"
#include "base/system/random.h"
#include "base/time/clock.h"
#include "cli/follow/follow.h"
#include "cli/follow/replace.h"
#include "cli/follow/signals.h"
#include "cli/result/notify.h"
#include "cli/result/result.h"
#include "cli/result/results_folder.h"
#include "cli/submit/effect.h"
#include "cli/submit/input.h"
#include "cli/submit/owner.h"
#include "cli/submit/preflight.h"
#include "cli/submit/refusal.h"
#include "cli/submit/run_objects.h"
#include "cli/verb/run.h"
#include "job/annotations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEASE_BYTES = 16, LEASE_ID_BYTES = 64 };

struct runner {
    struct cli *cli;
    const char *format; /* -o */
    const char *results;
    const char *notify;            /* --notify's command */
    json_t *reports;               /* for it: the results of the jobs */
    int64_t after_end_ms;          /* --after-end; -1: not given */
    char lease_id[LEASE_ID_BYTES]; /* "run-PID-RANDOM": the supervisor watches the PID too */
    struct kube_lease *lease;
    struct objects objects;
    size_t jobs;
    struct screen screen;
    struct follow follow;
    struct input *input; /* of --stdin */
    bool reported;       /* the JSON object of -o json was printed */
};

static int take_lease(struct runner *runner)
{
    if (cli_on_cluster(runner->cli)) {
        return 0; /* a cluster's job outlives a command that is killed */
    }
    int used = snprintf(runner->lease_id, sizeof runner->lease_id, "run-%d-", (int)getpid());
    int r = random_hex(runner->lease_id + used, LEASE_BYTES, &runner->cli->err);
    return r < 0 ? r
                 : kube_lease_start(runner->cli->kube, runner->lease_id, &runner->lease,
                                    &runner->cli->err);
}

/* Creates an object that jobs use. Such objects stay between runs: if the object exists already, it
 * is updated. */
int run_put_support(struct cli *cli, const json_t *object)
{
    int r = objects_create(cli, object, NULL);
    if (r != MUSTER_EEXIST) {
        return r;
    }
    struct kube_ref ref = objects_ref(cli, object);
    if (strcmp(ref.resource->kind, "PersistentVolumeClaim") == 0) {
        return 0; /* its spec cannot change */
    }
    return refusal_explain(cli, object, kube_patch(cli->kube, &ref, object, NULL, &cli->err));
}

/* Creates a job. Signals are held as soon as the job may exist. */
static int create_job(struct runner *runner, const json_t *object, json_t **ret)
{
    signals_hold(true);
    int r = objects_create(runner->cli, object, ret);
    if (r < 0) {
        signals_hold(runner->follow.job_count > 0);
    }
    return r;
}

static int put_job(struct runner *runner, json_t *object)
{
    json_t *notes = NULL;
    muster_auto(doc) json_t *created = NULL;
    int r = objects_annotate(runner->cli, object, NULL);
    if (r < 0) {
        return r;
    }
    if (runner->lease) {
        notes = json_object_get(json_object_get(object, "metadata"), "annotations");
        json_object_set_new(notes, JOB_ANNOTATION_LEASE, json_string(runner->lease_id));
    }
    r = create_job(runner, object, &created);
    if (r == MUSTER_EEXIST) {
        r = replace_finished(runner->cli, object);
        r = r < 0 ? r : create_job(runner, object, &created);
    }
    if (r == 0) {
        owner_note(runner->cli, &runner->objects, created);
    }
    return r < 0 ? r : follow_add(&runner->follow, created, runner->jobs > 1);
}

/* Tries an object, without a lease and without deleting an older job: both come when all objects
 * are known to be accepted. */
int run_try(void *context, json_t *object)
{
    struct cli *cli = context;
    if (!objects_is_job(object)) {
        return run_put_support(cli, object);
    }
    int r = objects_annotate(cli, object, NULL);
    r = r < 0 ? r : objects_create(cli, object, NULL);
    if (r != MUSTER_EEXIST) {
        return r;
    }
    struct kube_ref ref = objects_ref(cli, object);
    muster_auto(doc) json_t *old = NULL;
    return replace_find(cli, &ref, &old);
}

/* The folder of a job's results: each of several jobs has a folder of its own in it. */
static char *results_of(const struct runner *runner, const char *job)
{
    return runner->jobs > 1 ? file_join(runner->results, job) : strdup(runner->results);
}

/* Checks the folders of results now, not when the training is over. */
static int check_results(const struct runner *runner)
{
    int r = 0;
    for (size_t i = 0; i < runner->objects.count && runner->results && r == 0; i++) {
        const json_t *object = runner->objects.list[i];
        muster_auto(free) char *folder = results_of(runner, doc_text(object, "metadata.name", ""));
        if (objects_is_job(object)) {
            r = folder ? results_folder_check(folder, &runner->cli->err)
                       : err_no_memory(&runner->cli->err);
        }
    }
    return r;
}

static int check_all(struct runner *runner)
{
    if (runner->jobs > FOLLOW_JOBS_MAX) {
        return muster_fail(&runner->cli->err, MUSTER_ETOOBIG,
                           "run: at most %d jobs at once; there are %zu", FOLLOW_JOBS_MAX,
                           runner->jobs);
    }
    int r = preflight_claims(runner->cli, &runner->objects);
    r = r < 0 ? r : preflight_objects(runner->cli, &runner->objects, run_try, runner->cli);
    return r < 0 ? r : check_results(runner);
}

static int put_all(struct runner *runner)
{
    int r = check_all(runner);
    for (size_t i = 0; i < runner->objects.count && r == 0 && !signals_held; i++) {
        json_t *object = runner->objects.list[i];
        r = objects_is_job(object) ? put_job(runner, object) : run_put_support(runner->cli, object);
    }
    return r == MUSTER_EINTERRUPTED ? 0 : r;
}

/* Explains errors after the controller has ended meanwhile (muster down): requests then fail in
 * many ways, and the next controller knows neither the lease nor the environment. */
static int explain_loss(struct runner *runner, int r)
{
    bool unanswered = r == MUSTER_EUNAVAIL || r == MUSTER_EDATA;
    if (!unanswered || !runner->lease || !kube_lease_was_lost(runner->lease)) {
        return r;
    }
    return muster_fail(&runner->cli->err, MUSTER_EAGAIN,
                       "the controller was ended while the job was created (muster down?); try "
                       "again");
}

static int save_results(const struct runner *runner, const struct followed_job *job)
{
    muster_auto(free) char *folder = results_of(runner, job->name);
    return folder ? result_copy(job, folder, &runner->cli->err) : err_no_memory(&runner->cli->err);
}

static int print_json(const struct runner *runner, int exit_code)
{
    muster_auto(doc) json_t *list = json_array();
    for (size_t i = 0; i < runner->follow.job_count; i++) {
        json_array_append_new(list, result_doc(&runner->follow.jobs[i], runner->results));
    }
    if (runner->jobs == 1) {
        return cli_print_doc(json_array_get(list, 0), "json", &runner->cli->err);
    }
    muster_auto(doc) json_t *all = json_pack("{s:i, s:O}", "exitCode", exit_code, "jobs", list);
    return cli_print_doc(all, "json", &runner->cli->err);
}

/* Saves and prints the results. Returns the worst exit code of all jobs. */
static int conclude(struct runner *runner)
{
    int worst = 0;
    int r = 0;
    for (size_t i = 0; i < runner->follow.job_count; i++) {
        const struct followed_job *job = &runner->follow.jobs[i];
        int code = result_exit_code(job);
        worst = code > worst ? code : worst;
        if (runner->results && r == 0) {
            r = save_results(runner, job);
        }
        result_say(job, r == 0 ? runner->results : NULL);
        if (runner->notify) {
            json_array_append_new(runner->reports, result_doc(job, runner->results));
        }
    }
    if (runner->format) {
        runner->reported = true;
        int unprinted = print_json(runner, worst);
        r = r < 0 ? r : unprinted;
    }
    if (runner->follow.output_lost && r == 0 && worst == 0) {
        r = muster_fail(&runner->cli->err, MUSTER_EIO, "the logs were not written here to the end");
    }
    if (r < 0 && worst != 0) {
        cli_say("%s", runner->cli->err.text); /* the job's own exit code says more */
        return worst;
    }
    return r < 0 ? r : worst;
}

/* Starts the input of --stdin. A user who types at a prompt must see it as it is, so no line is
 * drawn again. */
static void start_input(struct runner *runner)
{
    const struct followed_job *job = &runner->follow.jobs[0];
    if (args_has(&runner->cli->args, "stdin") && args_value(&runner->cli->args, "stdin")) {
        runner->screen.view.prompts = isatty(STDIN_FILENO);
        runner->screen.view.terminal = runner->screen.view.terminal && !runner->screen.view.prompts;
        runner->input = input_start(runner->cli, job->namespace, job->name);
    }
}

static int run_jobs(struct runner *runner)
{
    int r = runner->cli->kube ? 0 : cli_connect(runner->cli, KUBE_START);
    if (r == 0) {
        kube_hurry_when(runner->cli->kube, &signals_held);
        r = take_lease(runner);
    }
    if (r == 0) {
        screen_init(&runner->screen, runner->format ? STDERR_FILENO : STDOUT_FILENO);
        follow_init(&runner->follow, runner->cli, &runner->screen,
                    args_flag(&runner->cli->args, "quiet"));
        runner->follow.after_end_ms = runner->after_end_ms;
        r = explain_loss(runner, put_all(runner));
        if (r == 0) {
            start_input(runner);
            follow_run(&runner->follow);
            input_stop(runner->input);
            r = conclude(runner);
        }
        follow_done(&runner->follow);
        screen_done(&runner->screen);
    }
    kube_lease_stop(runner->lease);
    return r;
}

/* The object for -o json if no job was made: its reader gets one object in any case. */
static json_t *describe_failure(int exit_code, const char *reason, const char *message)
{
    return json_pack("{s:n, s:s, s:i, s:s, s:s, s:[], s:[], s:n}", "name", "state", "Error",
                     "exitCode", exit_code, "reason", reason, "message", message, "replicas",
                     "badRanks", "results");
}

static void print_failure(const struct runner *runner, int r)
{
    muster_auto(doc) json_t *doc =
        describe_failure(muster_code_exit(r), muster_code_name(r), runner->cli->err.text);
    if (runner->results) {
        json_object_set_new(doc, "results", json_string(runner->results));
    }
    cli_print_doc(doc, "json", NULL);
}

/* Reads --after-end. It is refused if every rank must succeed, because no rank then runs after the
 * job's end. */
static int read_after_end(struct runner *runner)
{
    struct cli *cli = runner->cli;
    runner->after_end_ms = -1;
    if (!args_has(&cli->args, "after-end")) {
        return 0;
    }
    if (args_flag(&cli->args, "after-end") &&
        (args_flag(&cli->args, "ranks") || args_flag(&cli->args, "all-ranks"))) {
        return muster_fail(
            &cli->err, MUSTER_EINVAL,
            "run: --after-end limits Workers that go on after their Master; with %s the "
            "job ends with its last rank (--timeout limits the whole job)",
            args_flag(&cli->args, "ranks") ? "-n" : "--all-ranks");
    }
    return args_duration(&cli->args, "after-end", &runner->after_end_ms, &cli->err);
}

static int read_options(struct runner *runner, bool dry_run)
{
    struct cli *cli = runner->cli;
    const char *verb = cli->args.command->name;
    runner->results = args_value(&cli->args, "results");
    runner->notify = args_value(&cli->args, "notify");
    int r = args_choice(&cli->args, "output", &runner->format, &cli->err);
    if (r == 0 && !dry_run && runner->format && strcmp(runner->format, "yaml") == 0) {
        r = muster_fail(&cli->err, MUSTER_EINVAL, "%s: -o yaml goes with --dry-run", verb);
    }
    if (r == 0 && runner->notify && !*runner->notify) {
        r = muster_fail(&cli->err, MUSTER_EINVAL, "%s: --notify needs a command", verb);
        runner->notify = NULL;
    }
    r = r < 0 ? r : read_after_end(runner);
    return r < 0 ? r : effect_check_dry_run(cli);
}

int cli_run(struct cli *cli)
{
    return run_and_follow(cli, run_objects_read);
}

int run_and_follow(struct cli *cli, run_read *read)
{
    struct runner *runner = calloc(1, sizeof *runner);
    if (!runner) {
        return err_no_memory(&cli->err);
    }
    runner->cli = cli;
    runner->reports = json_array();
    bool dry_run = args_flag(&cli->args, "dry-run");
    int r = read_options(runner, dry_run);
    if (r == 0 && !dry_run) {
        signals_catch(runner->format ? describe_failure : NULL);
    }
    r = r < 0 ? r : read(cli, &runner->objects, &runner->jobs);
    if (r == 0) {
        r = dry_run
                ? run_objects_print(cli, &runner->objects, runner->format ? runner->format : "yaml")
                : run_jobs(runner);
    }
    if (r < 0 && runner->format && !dry_run && !runner->reported) {
        print_failure(runner, r);
    }
    if (runner->notify && !dry_run) {
        const json_t *job =
            runner->objects.count ? runner->objects.list[runner->objects.count - 1] : NULL;
        notify_all(cli, runner->notify, runner->reports, doc_text(job, "metadata.name", ""), r);
    }
    json_decref(runner->reports);
    objects_done(&runner->objects);
    free(runner);
    return r;
}
