/* See follow.h. */
#include "cli/follow/follow.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/time/clock.h"
#include "cli/follow/after_end.h"
#include "cli/follow/progress.h"
#include "cli/follow/stop.h"
#include "cli/follow/warnings.h"
#include "cli/pod/places.h"
#include "cli/pod/ranks.h"
#include "cli/pod/runs.h"
#include "cli/submit/restarts.h"
#include "control/observe.h"
#include "control/verdict.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NOTES_BYTES_MAX = 64 << 10,
    SELECTOR_BYTES = 256,
    TICK_MS = 250,
    DRAIN_MS = 5000,  /* for logs to end after the last pod */
    COUNTS_MS = 2000, /* for the job's counts to agree with its pods */
    LAST_MS = 500,    /* for what other ranks still print after a failure */
    TAKEN_MS = 10000, /* for an operator to write something about the job */
};

static void say(struct follow *f, struct buf *lines)
{
    for (const char *at = buf_str(lines); *at;) {
        size_t length = strcspn(at, "\n");
        screen_note(f->screen, "%.*s", (int)length, at);
        at += length + (at[length] == '\n');
    }
    buf_done(lines);
}

/* True when a container of the pod has ended since `before`, and is restarted. */
static bool was_restarted(const json_t *before, const json_t *after)
{
    size_t i;
    json_t *status;
    json_array_foreach (doc_at(after, "status.containerStatuses"), i, status) {
        const json_t *end = doc_at(status, "lastState.terminated");
        const json_t *known = doc_at(ranks_container_status(before, doc_text(status, "name", "")),
                                     "lastState.terminated");
        if (end && !json_equal((json_t *)end, (json_t *)known)) {
            return true;
        }
    }
    return false;
}

/* Notes that the pod is deleted before its end, or is restarted after the end of its job. */
static void mark_end(struct followed_job *j, const json_t *before, const json_t *pod)
{
    const char *uid = doc_text(pod, "metadata.uid", "");
    if (doc_at(pod, "metadata.deletionTimestamp") && !follow_pod_ended(j, before ? before : pod)) {
        json_object_set_new(j->stopped, uid, json_true());
    }
    if (j->over && before && was_restarted(before, pod)) {
        json_object_set_new(j->late, uid, json_true());
    }
}

static void pod_changed(void *context, enum kube_change change, const json_t *pod)
{
    struct followed_job *j = context;
    const char *name = doc_text(pod, "metadata.name", "");
    const json_t *before = json_object_get(j->pods, name);
    const char *uid = doc_text(pod, "metadata.uid", "");
    if (!control_owns(doc_text(j->object, "metadata.uid", ""), pod)) {
        return; /* it belongs to an older job of this name, which may take its time to end */
    }
    struct buf notes;
    buf_init(&notes, NOTES_BYTES_MAX);
    const json_t *any_before = before;
    if (before && strcmp(doc_text(before, "metadata.uid", ""), uid) != 0) {
        before = NULL; /* the pod was made again under the same name */
        json_object_del(j->places, name);
    }
    if (change != KUBE_DELETED) {
        progress_pod(before, pod, j->group[0], j->follow->quiet, &notes);
    }
    const struct trouble_view view = {j->object, j->logs};
    trouble_pod(&j->trouble, view, any_before, pod, &notes);
    say(j->follow, &notes);
    mark_end(j, before, pod);
    json_object_set(j->pods, name, (json_t *)(uintptr_t)pod);
    if (change == KUBE_DELETED) {
        json_object_set_new(j->gone, uid, json_true());
    }
    pod_logs_pod(j->logs, pod, change == KUBE_DELETED);
    j->untold = places_learn(j->follow->cli, pod, j->places) || j->untold;
}

static void job_changed(void *context, enum kube_change change, const json_t *job)
{
    struct followed_job *j = context;
    j->seen = true;
    if (strcmp(doc_text(job, "metadata.uid", ""), doc_text(j->object, "metadata.uid", "")) != 0) {
        j->deleted = true; /* another job has its name now */
    } else {
        struct buf notes;
        buf_init(&notes, NOTES_BYTES_MAX);
        progress_job(j->object, job, j->follow->quiet, &notes);
        if (!j->follow->quiet) {
            restarts_tell(j->object, job, &notes);
        }
        say(j->follow, &notes);
        json_decref(j->object);
        j->object = json_incref((json_t *)(uintptr_t)job);
        j->deleted = j->deleted || change == KUBE_DELETED;
    }
    if (!j->over && verdict_of(j->object, NULL, j->deleted).end != VERDICT_RUNNING) {
        j->over = true;
        j->over_ms = clock_ms();
    }
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer; /* uv_run returns, and follow_run checks what is due */
}

void follow_init(struct follow *follow, struct cli *cli, struct screen *screen, bool quiet)
{
    *follow = (struct follow){.cli = cli, .screen = screen, .quiet = quiet, .after_end_ms = -1};
    uv_timer_init(&cli->loop, &follow->tick);
    uv_timer_start(&follow->tick, on_tick, TICK_MS, TICK_MS);
}

/* Reads from the history how a job ended that was deleted before its watch began, because the watch
 * will not report it. */
static void catch_up(struct followed_job *j)
{
    muster_auto(doc) json_t *run = runs_find_uid(j->follow->cli, j->namespace, j->name,
                                                 doc_text(j->object, "metadata.uid", ""));
    size_t i;
    json_t *pod;
    json_array_foreach (doc_at(run, "pods"), i, pod) {
        pod_changed(j, KUBE_MODIFIED, pod);
        pod_changed(j, KUBE_DELETED, pod);
    }
    job_changed(j, KUBE_DELETED, run ? doc_at(run, "job") : j->object);
}

static int start_watches(struct followed_job *j)
{
    struct cli *cli = j->follow->cli;
    char labels[SELECTOR_BYTES];
    snprintf(labels, sizeof labels, "training.kubeflow.org/job-name=%s", j->name);
    struct kube_query query = {.labels = labels};
    struct kube_ref pods = {kube_resource_find("pods"), j->namespace, NULL, NULL};
    struct kube_ref job = {kube_resource_find("pytorchjobs"), j->namespace, j->name, NULL};
    int r = kube_watch_start(cli->kube, &pods, &query, &(struct kube_watch_events){pod_changed, j},
                             &j->pod_watch, &cli->err);
    r = r < 0 ? r
              : kube_watch_start(cli->kube, &job, NULL, &(struct kube_watch_events){job_changed, j},
                                 &j->job_watch, &cli->err);
    if (r == 0 && !j->seen) {
        catch_up(j);
    }
    return r < 0 ? r : stall_notes_start(&j->stalls, cli, j->follow->screen, j->object);
}

int follow_add(struct follow *follow, const json_t *job, bool several)
{
    if (follow->job_count == FOLLOW_JOBS_MAX) {
        return muster_fail(&follow->cli->err, MUSTER_ETOOBIG, "more than %d jobs at once",
                           FOLLOW_JOBS_MAX);
    }
    struct followed_job *j = &follow->jobs[follow->job_count++];
    *j = (struct followed_job){
        .follow = follow, .started_ms = clock_ms(), .unstarted_ms = clock_ms()};
    j->object = json_deep_copy(job);
    j->name = strdup(doc_text(job, "metadata.name", ""));
    j->namespace = strdup(doc_text(job, "metadata.namespace", "default"));
    j->pods = json_object();
    j->gone = json_object();
    j->stopped = json_object();
    j->late = json_object();
    j->places = json_object();
    j->told = json_object();
    trouble_init(&j->trouble);
    if (several && j->name) {
        snprintf(j->group, sizeof j->group, "%s ", j->name);
    }
    struct pod_logs_options options = {
        .all = true, .follow = true, .prefixes = true, .group = j->group};
    j->logs = pod_logs_new(follow->cli, follow->screen, &options);
    if (!j->object || !j->name || !j->namespace || !j->pods || !j->gone || !j->stopped ||
        !j->places || !j->told || !j->trouble.storm.remade || !j->logs) {
        return err_no_memory(&follow->cli->err);
    }
    return start_watches(j);
}

static bool pods_ended(const struct followed_job *j)
{
    const char *name;
    json_t *pod;
    json_object_foreach (j->pods, name, pod) {
        if (!follow_pod_ended(j, pod)) {
            return false;
        }
    }
    return true;
}

/* The time until which to wait for the pods and logs of a job that has ended. Ranks of a job that
 * succeeded run to their end (cleanPodPolicy None; after_end_check reports and bounds this). Ranks
 * of a job that was deleted, or that somebody else stops (muster down), have their grace period.
 * The ranks that a failed job leaves are ended with the lease. A user who asked for the end by a
 * signal waits for it, and may ask again. */
static int64_t give_up_ms(const struct followed_job *j)
{
    bool succeeded = verdict_of(j->object, NULL, j->deleted).end == VERDICT_SUCCEEDED;
    bool stopped = follow_is_stopped(j);
    if (j->follow->interrupt.signal || ((succeeded || stopped) && !j->pods_ended_ms) ||
        follow_deleted_end(j)) {
        return INT64_MAX;
    }
    if (succeeded || ((j->deleted || stopped) && j->pods_ended_ms)) {
        return j->pods_ended_ms + DRAIN_MS;
    }
    return j->over_ms + (pod_logs_settled(j->logs) ? LAST_MS : DRAIN_MS);
}

/* Whether the job's counts agree with its pods, which have all ended. The counts are updated a
 * moment later, and the report at the end must be consistent. */
static bool counts_settled(const struct followed_job *j)
{
    const char *role;
    json_t *entry;
    json_object_foreach (doc_at(j->object, "status.replicaStatuses"), role, entry) {
        if (doc_int(entry, "active", 0) > 0) {
            return j->deleted || clock_ms() - j->pods_ended_ms > COUNTS_MS;
        }
    }
    return true;
}

static bool is_done(struct followed_job *j)
{
    if (!pods_ended(j)) {
        j->pods_ended_ms = 0;
    } else if (!j->pods_ended_ms) {
        j->pods_ended_ms = clock_ms();
    }
    bool ended = j->pods_ended_ms && pod_logs_idle(j->logs) && counts_settled(j);
    return j->over && (ended || clock_ms() > give_up_ms(j));
}

static bool all_done(struct follow *f)
{
    for (size_t i = 0; i < f->job_count; i++) {
        if (!is_done(&f->jobs[i])) {
            return false;
        }
    }
    return true;
}

/* Ends the run if the reader of our output has gone, because nobody waits for it then. A full disk,
 * however, is no reason to end a training: its logs are kept elsewhere, too. */
static void check_output(struct follow *f)
{
    int why = f->screen->write_errno;
    if (why == EPIPE && !f->interrupt.signal) {
        stop_hear(f, SIGPIPE);
    } else if (why && why != EPIPE && !f->output_lost) {
        f->output_lost = true;
        screen_note(f->screen,
                    "cannot write the logs here: %s; the job goes on, and muster logs "
                    "prints them",
                    strerror(why));
    }
}

/* Ends jobs that wait for something that this machine does not have: they would wait for ever. */
static void end_hopeless(struct follow *f)
{
    for (size_t i = 0; i < f->job_count; i++) {
        struct followed_job *j = &f->jobs[i];
        if (!j->over && trouble_is_hopeless(&j->trouble, clock_ms())) {
            (void)stop_job(j, j->trouble.hopeless);
        }
    }
}

/* Warns, once, that no operator has written anything about a job: a cluster may have none. */
static void tell_if_untaken(struct followed_job *j)
{
    if (!j->untaken_told && cli_on_cluster(j->follow->cli) && !j->over &&
        !doc_at(j->object, "status.conditions") && clock_ms() - j->started_ms > TAKEN_MS) {
        j->untaken_told = true;
        screen_note(j->follow->screen,
                    "warning: for %d s no operator has looked at job %s: does one run in the "
                    "cluster, and for namespace %s?",
                    TAKEN_MS / 1000, j->name, j->namespace);
    }
}

void follow_run(struct follow *follow)
{
    stop_catch(follow);
    while (!all_done(follow) && !follow->killed) {
        uv_run(&follow->cli->loop, UV_RUN_ONCE);
        warnings_isolation(follow, TICK_MS);
        check_output(follow);
        end_hopeless(follow);
        warnings_disk(follow);
        for (size_t i = 0; i < follow->job_count; i++) {
            after_end_check(&follow->jobs[i]);
            tell_if_untaken(&follow->jobs[i]);
            warnings_unstarted(&follow->jobs[i]);
            stop_check(&follow->jobs[i]);
        }
    }
    if (!follow->killed) {
        warnings_isolation(follow, 0);
    }
    for (size_t i = 0; i < follow->job_count && !follow->killed; i++) {
        struct followed_job *j = &follow->jobs[i];
        pod_logs_finish(j->logs); /* the controller may be too busy to send them in time */
        places_refresh(follow->cli, j->pods, j->places);
    }
    screen_drain(follow->screen);
    stop_release(follow);
}

void follow_done(struct follow *follow)
{
    uv_close((uv_handle_t *)&follow->tick, NULL);
    for (int i = 0; i < follow->open_signals; i++) {
        uv_close((uv_handle_t *)&follow->signals[i], NULL);
    }
    for (size_t i = 0; i < follow->job_count; i++) {
        struct followed_job *j = &follow->jobs[i];
        pod_logs_free(j->logs);
        kube_watch_stop(j->pod_watch);
        kube_watch_stop(j->job_watch);
        stall_notes_stop(&j->stalls);
        json_decref(j->object);
        json_decref(j->pods);
        json_decref(j->gone);
        json_decref(j->stopped);
        json_decref(j->late);
        json_decref(j->places);
        json_decref(j->told);
        trouble_done(&j->trouble);
        free(j->name);
        free(j->namespace);
    }
    uv_run(&follow->cli->loop, UV_RUN_NOWAIT); /* the handles live in *follow */
}
