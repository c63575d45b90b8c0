/* muster run: a job from its file to its last line.
 *
 * read and check → lease → create → follow → say how it ended. What a signal does before a job is
 * followed: follow/signals.h.
 */
#include "cli/command/verbs.h"

#include "base/err.h"
#include "base/file.h"
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
#include <sys/random.h>
#include <unistd.h>

enum { LEASE_BYTES = 16, LEASE_ID_BYTES = 64 };

struct runner {
    struct cli *cli;
    const char *format; /* -o */
    const char *results;
    const char *notify;            /* --notify's command */
    json_t *reports;               /* for it: what became of each job */
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

static int take_lease(struct runner *r)
{
    unsigned char bytes[LEASE_BYTES];
    if (cli_on_cluster(r->cli)) {
        return 0; /* a cluster's job outlives a command that is killed */
    }
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
        return muster_fail(&r->cli->err, MUSTER_EOS, "the system gives no random numbers");
    }
    int used = snprintf(r->lease_id, sizeof r->lease_id, "run-%d-", (int)getpid());
    for (size_t i = 0; i < sizeof bytes; i++) {
        snprintf(r->lease_id + used + 2 * i, 3, "%02x", bytes[i]);
    }
    return kube_lease_start(r->cli->kube, r->lease_id, &r->lease, &r->cli->err);
}

/* What jobs use stays between runs: what is there already is brought up to date. */
int run_put_support(struct cli *cli, const json_t *object)
{
    int failed = objects_create(cli, object, NULL);
    if (failed != MUSTER_EEXIST) {
        return failed;
    }
    struct kube_ref ref = objects_ref(cli, object);
    if (strcmp(ref.resource->kind, "PersistentVolumeClaim") == 0) {
        return 0; /* its spec cannot change */
    }
    return refusal_explain(cli, object, kube_patch(cli->kube, &ref, object, NULL, &cli->err));
}

/* A signal is held as soon as the job may be there. */
static int create_job(struct runner *r, const json_t *object, json_t **ret)
{
    signals_hold(true);
    int failed = objects_create(r->cli, object, ret);
    if (failed < 0) {
        signals_hold(r->follow.job_count > 0);
    }
    return failed;
}

static int put_job(struct runner *r, json_t *object)
{
    json_t *notes = NULL;
    muster_auto(doc) json_t *created = NULL;
    int failed = objects_annotate(r->cli, object, NULL);
    if (failed < 0) {
        return failed;
    }
    if (r->lease) {
        notes = json_object_get(json_object_get(object, "metadata"), "annotations");
        json_object_set_new(notes, JOB_ANNOTATION_LEASE, json_string(r->lease_id));
    }
    failed = create_job(r, object, &created);
    if (failed == MUSTER_EEXIST) {
        failed = replace_finished(r->cli, object);
        failed = failed < 0 ? failed : create_job(r, object, &created);
    }
    if (failed == 0) {
        owner_note(r->cli, &r->objects, created);
    }
    return failed < 0 ? failed : follow_add(&r->follow, created, r->jobs > 1);
}

/* Neither a lease nor the end of an older job: those come when all is known to be accepted. */
int run_try(void *context, json_t *object)
{
    struct cli *cli = context;
    if (!objects_is_job(object)) {
        return run_put_support(cli, object);
    }
    int failed = objects_annotate(cli, object, NULL);
    failed = failed < 0 ? failed : objects_create(cli, object, NULL);
    if (failed != MUSTER_EEXIST) {
        return failed;
    }
    struct kube_ref ref = objects_ref(cli, object);
    muster_auto(doc) json_t *old = NULL;
    return replace_find(cli, &ref, &old);
}

/* With several jobs each has a folder of its own in it. */
static char *results_of(const struct runner *r, const char *job)
{
    return r->jobs > 1 ? file_join(r->results, job) : strdup(r->results);
}

/* Found now, not when the training is over. */
static int check_results(const struct runner *r)
{
    int failed = 0;
    for (size_t i = 0; i < r->objects.count && r->results && failed == 0; i++) {
        const json_t *object = r->objects.list[i];
        muster_auto(free) char *folder = results_of(r, doc_text(object, "metadata.name", ""));
        if (objects_is_job(object)) {
            failed =
                folder ? results_folder_check(folder, &r->cli->err) : err_no_memory(&r->cli->err);
        }
    }
    return failed;
}

static int check_all(struct runner *r)
{
    if (r->jobs > FOLLOW_JOBS_MAX) {
        return muster_fail(&r->cli->err, MUSTER_ETOOBIG,
                           "run: at most %d jobs at once; there are %zu", FOLLOW_JOBS_MAX, r->jobs);
    }
    int failed = preflight_claims(r->cli, &r->objects);
    failed = failed < 0 ? failed : preflight_objects(r->cli, &r->objects, run_try, r->cli);
    return failed < 0 ? failed : check_results(r);
}

static int put_all(struct runner *r)
{
    int failed = check_all(r);
    for (size_t i = 0; i < r->objects.count && failed == 0 && !signals_held; i++) {
        json_t *object = r->objects.list[i];
        failed = objects_is_job(object) ? put_job(r, object) : run_put_support(r->cli, object);
    }
    return failed == MUSTER_EINTERRUPTED ? 0 : failed;
}

static int save_results(const struct runner *r, const struct followed_job *job)
{
    muster_auto(free) char *folder = results_of(r, job->name);
    return folder ? result_copy(job, folder, &r->cli->err) : err_no_memory(&r->cli->err);
}

static int print_json(const struct runner *r, int exit_code)
{
    muster_auto(doc) json_t *list = json_array();
    for (size_t i = 0; i < r->follow.job_count; i++) {
        json_array_append_new(list, result_doc(&r->follow.jobs[i], r->results));
    }
    if (r->jobs == 1) {
        return cli_print_doc(json_array_get(list, 0), "json", &r->cli->err);
    }
    muster_auto(doc) json_t *all = json_pack("{s:i, s:O}", "exitCode", exit_code, "jobs", list);
    return cli_print_doc(all, "json", &r->cli->err);
}

/* The worst exit code of all jobs. */
static int conclude(struct runner *r)
{
    int worst = 0;
    int failed = 0;
    for (size_t i = 0; i < r->follow.job_count; i++) {
        const struct followed_job *job = &r->follow.jobs[i];
        int code = result_exit_code(job);
        worst = code > worst ? code : worst;
        if (r->results && failed == 0) {
            failed = save_results(r, job);
        }
        result_say(job, failed == 0 ? r->results : NULL);
        if (r->notify) {
            json_array_append_new(r->reports, result_doc(job, r->results));
        }
    }
    if (r->format) {
        r->reported = true;
        int unprinted = print_json(r, worst);
        failed = failed < 0 ? failed : unprinted;
    }
    if (r->follow.output_lost && failed == 0 && worst == 0) {
        failed = muster_fail(&r->cli->err, MUSTER_EIO, "the logs were not written here to the end");
    }
    if (failed < 0 && worst != 0) {
        cli_say("%s", r->cli->err.text); /* the job's own exit code says more */
        return worst;
    }
    return failed < 0 ? failed : worst;
}

/* Whoever types at a prompt sees it as it is, in its place: no lines that are drawn again. */
static void start_input(struct runner *r)
{
    const struct followed_job *job = &r->follow.jobs[0];
    if (args_has(&r->cli->args, "stdin") && args_value(&r->cli->args, "stdin")) {
        r->screen.view.prompts = isatty(STDIN_FILENO);
        r->screen.view.terminal = r->screen.view.terminal && !r->screen.view.prompts;
        r->input = input_start(r->cli, job->namespace, job->name);
    }
}

static int run_jobs(struct runner *r)
{
    int failed = r->cli->kube ? 0 : cli_connect(r->cli, KUBE_START);
    if (failed == 0) {
        kube_hurry_when(r->cli->kube, &signals_held);
        failed = take_lease(r);
    }
    if (failed == 0) {
        screen_init(&r->screen, r->format ? STDERR_FILENO : STDOUT_FILENO);
        follow_init(&r->follow, r->cli, &r->screen, args_flag(&r->cli->args, "quiet"));
        r->follow.after_end_ms = r->after_end_ms;
        failed = put_all(r);
        if (failed == 0) {
            start_input(r);
            follow_run(&r->follow);
            input_stop(r->input);
            failed = conclude(r);
        }
        follow_done(&r->follow);
        screen_done(&r->screen);
    }
    kube_lease_stop(r->lease);
    return failed;
}

/* With -o json a reader gets its one object also when no job came to be. */
static json_t *describe_failure(int exit_code, const char *reason, const char *message)
{
    return json_pack("{s:n, s:s, s:i, s:s, s:s, s:[], s:[], s:n}", "name", "state", "Error",
                     "exitCode", exit_code, "reason", reason, "message", message, "replicas",
                     "badRanks", "results");
}

static void print_failure(const struct runner *r, int failed)
{
    muster_auto(doc) json_t *doc =
        describe_failure(muster_code_exit(failed), muster_code_name(failed), r->cli->err.text);
    if (r->results) {
        json_object_set_new(doc, "results", json_string(r->results));
    }
    cli_print_doc(doc, "json", NULL);
}

/* Where every rank must end well none runs after the end. */
static int read_after_end(struct runner *r)
{
    struct cli *cli = r->cli;
    r->after_end_ms = -1;
    if (!args_has(&cli->args, "after-end")) {
        return 0;
    }
    if (args_flag(&cli->args, "after-end") &&
        (args_flag(&cli->args, "ranks") || args_flag(&cli->args, "all-ranks"))) {
        return muster_fail(&cli->err, MUSTER_EINVAL,
                           "run: --after-end bounds Workers that go on after their Master; with %s "
                           "the job is not over before its last rank (--timeout bounds it whole)",
                           args_flag(&cli->args, "ranks") ? "-n" : "--all-ranks");
    }
    return args_duration(&cli->args, "after-end", &r->after_end_ms, &cli->err);
}

static int read_options(struct runner *r, bool dry_run)
{
    struct cli *cli = r->cli;
    const char *verb = cli->args.command->name;
    r->results = args_value(&cli->args, "results");
    r->notify = args_value(&cli->args, "notify");
    int failed = args_choice(&cli->args, "output", &r->format, &cli->err);
    if (failed == 0 && !dry_run && r->format && strcmp(r->format, "yaml") == 0) {
        failed = muster_fail(&cli->err, MUSTER_EINVAL, "%s: -o yaml goes with --dry-run", verb);
    }
    if (failed == 0 && r->notify && !*r->notify) {
        failed = muster_fail(&cli->err, MUSTER_EINVAL, "%s: --notify needs a command", verb);
        r->notify = NULL;
    }
    failed = failed < 0 ? failed : read_after_end(r);
    return failed < 0 ? failed : effect_check_dry_run(cli);
}

int cli_run(struct cli *cli)
{
    return run_and_follow(cli, run_objects_read);
}

int run_and_follow(struct cli *cli, run_read *read)
{
    struct runner *r = calloc(1, sizeof *r);
    if (!r) {
        return err_no_memory(&cli->err);
    }
    r->cli = cli;
    r->reports = json_array();
    bool dry_run = args_flag(&cli->args, "dry-run");
    int failed = read_options(r, dry_run);
    if (failed == 0 && !dry_run) {
        signals_catch(r->format ? describe_failure : NULL);
    }
    failed = failed < 0 ? failed : read(cli, &r->objects, &r->jobs);
    if (failed == 0) {
        failed = dry_run ? run_objects_print(cli, &r->objects, r->format ? r->format : "yaml")
                         : run_jobs(r);
    }
    if (failed < 0 && r->format && !dry_run && !r->reported) {
        print_failure(r, failed);
    }
    if (r->notify && !dry_run) {
        const json_t *job = r->objects.count ? r->objects.list[r->objects.count - 1] : NULL;
        notify_all(cli, r->notify, r->reports, doc_text(job, "metadata.name", ""), failed);
    }
    json_decref(r->reports);
    objects_done(&r->objects);
    free(r);
    return failed;
}
