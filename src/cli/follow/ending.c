/* See ending.h. */
#include "cli/follow/ending.h"

#include "base/buf.h"
#include "base/time/age.h"
#include "base/time/clock.h"
#include "cli/follow/bad_ranks.h"
#include "control/control.h"
#include "control/verdict.h"
#include "job/annotations.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

enum {
    NOTICE_MS = 10000, /* after the end: who still runs is said */
    GPU_NOTICE_MS = 1000,
    NAMES_BYTES_MAX = 4096,
    NAMES_MAX = 8,
    GRACE_DEFAULT_S = 30,
    SIGNAL_BASE = 128,
};

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP};

/* Of those that have not ended, and unless `terminating` have not been told to either. */
static size_t count_running(const struct followed_job *j, bool terminating)
{
    size_t count = 0;
    const char *name;
    json_t *pod;
    json_object_foreach (j->pods, name, pod) {
        count += !follow_pod_ended(j, pod) &&
                 (terminating || !doc_at(pod, "metadata.deletionTimestamp"));
    }
    return count;
}

/* ---- Asking ---- */

/* Ends the job as the lease's closing would, but with our word why. False: it cannot be told (a
 * full disk); then nobody will say when it has ended either. */
static bool ask_to_stop(struct followed_job *j, const char *why, int signal)
{
    struct kube_ref ref = {kube_resource_find("pytorchjobs"), j->namespace, j->name, NULL};
    muster_auto(doc) json_t *patch =
        json_pack("{s:{s:{s:s, s:s*}}}", "metadata", "annotations", JOB_ANNOTATION_STOP, why,
                  JOB_ANNOTATION_STOP_SIGNAL, signal == SIGINT ? "SIGINT" : NULL);
    int r = kube_patch(j->follow->cli->kube, &ref, patch, NULL, &j->follow->cli->err);
    if (r < 0 && r != MUSTER_ENOENT) { /* one that was deleted ends as it is */
        screen_note(j->follow->screen, "cannot end job %s: %s", j->name, j->follow->cli->err.text);
        return false;
    }
    return true;
}

bool ending_stop(struct followed_job *j, const char *why)
{
    return ask_to_stop(j, why, SIGTERM);
}

static const char *reason_of(int signal)
{
    return signal == SIGINT    ? "interrupted (Ctrl-C)"
           : signal == SIGPIPE ? "the output of its muster run was closed"
                               : "its muster run was ended";
}

/* Whatever state it is in: its Master may have ended, and Workers run on. */
static void end_job(struct followed_job *j, int signal)
{
    j->cut_short = count_running(j, true) > 0;
    if ((j->over && !j->cut_short) || j->deleted) {
        return;
    }
    bool told = control_manages(j->object) && ask_to_stop(j, reason_of(signal), signal);
    j->untold_end = !told;
    j->follow->killed = j->follow->killed || !told;
}

static void kill_pods(struct followed_job *j)
{
    const char *name;
    json_t *pod;
    json_object_foreach (j->pods, name, pod) {
        struct kube_ref ref = {kube_resource_find("pods"), j->namespace, name, NULL};
        if (!follow_pod_ended(j, pod)) {
            kube_delete(j->follow->cli->kube, &ref, 0, NULL);
        }
    }
}

/* The longest grace period of what runs. */
static int64_t grace_s(const struct follow *f)
{
    int64_t longest = 0;
    for (size_t i = 0; i < f->job_count; i++) {
        const char *name;
        json_t *pod;
        json_object_foreach (f->jobs[i].pods, name, pod) {
            int64_t own = doc_int(pod, "spec.terminationGracePeriodSeconds", GRACE_DEFAULT_S);
            bool runs = !follow_pod_ended(&f->jobs[i], pod);
            longest = runs && own > longest ? own : longest;
        }
    }
    return longest;
}

static void say_ending(const struct follow *f, int signal)
{
    const char *again = signal == SIGINT ? "Ctrl-C" : signal == SIGTERM ? "SIGTERM" : "SIGHUP";
    int64_t grace = grace_s(f);
    if (signal != SIGPIPE && grace > 0) {
        screen_note(f->screen,
                    "ending what runs, within its grace period of %lld s (%s again: kill "
                    "at once)",
                    (long long)grace, again);
    } else if (signal != SIGPIPE) {
        screen_note(f->screen, "ending (%s again: kill at once)", again);
    }
}

void ending_hear(struct follow *f, int signal)
{
    enum interrupt_deed deed = interrupt_hear(&f->interrupt, signal, clock_ms());
    if (deed == INTERRUPT_NOTHING) {
        return;
    }
    kube_hurry(f->cli->kube);
    if (deed == INTERRUPT_END) {
        f->screen->hurried = true;
        say_ending(f, signal);
    }
    for (size_t i = 0; i < f->job_count; i++) {
        if (deed == INTERRUPT_END) {
            end_job(&f->jobs[i], signal);
        } else {
            kill_pods(&f->jobs[i]);
        }
    }
    f->killed = f->killed || deed == INTERRUPT_KILL;
}

/* ---- Signals ---- */

static void on_signal(uv_signal_t *handle, int number)
{
    ending_hear(handle->data, number);
}

/* nohup(1): what it starts is to outlive the terminal. */
static bool is_ignored(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

void ending_catch(struct follow *f)
{
    for (size_t i = 0; i < sizeof ending_signals / sizeof ending_signals[0]; i++) {
        int number = ending_signals[i];
        if (number != SIGHUP || !is_ignored(SIGHUP)) {
            uv_signal_t *handle = &f->signals[f->open_signals++];
            uv_signal_init(&f->cli->loop, handle);
            handle->data = f;
            uv_signal_start(handle, on_signal, number);
        }
    }
}

static void exit_now(int number)
{
    _exit(SIGNAL_BASE + number);
}

void ending_release(struct follow *f)
{
    const struct sigaction leave = {.sa_handler = exit_now};
    for (int i = 0; i < f->open_signals; i++) {
        int number = f->signals[i].signum;
        uv_signal_stop(&f->signals[i]);
        (void)sigaction(number, &leave, NULL);
    }
}

/* ---- After the end ---- */

static void name_running(const struct followed_job *j, struct buf *out)
{
    muster_auto(doc) json_t *pods = follow_pods(j);
    size_t named = 0;
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) {
        bool runs = !follow_pod_ended(j, pod) && !doc_at(pod, "metadata.deletionTimestamp");
        if (runs && named++ < NAMES_MAX) {
            buf_text(out, named > 1 ? ", " : "");
            bad_ranks_name(pod, out);
        }
    }
    if (named > NAMES_MAX) {
        buf_format(out, " and %zu more", named - NAMES_MAX);
    }
}

static void tell_who_runs(const struct followed_job *j)
{
    struct buf names;
    buf_init(&names, NAMES_BYTES_MAX);
    name_running(j, &names);
    screen_note(j->follow->screen,
                "job %s has succeeded, and %s %s not ended: it is waited for (--after-end DURATION "
                "bounds that, Ctrl-C ends it)",
                j->name, buf_str(&names), count_running(j, false) == 1 ? "has" : "have");
    buf_done(&names);
}

/* The controller's word about GPUs that ranks hold after the end. */
static void tell_gpu_grace(struct followed_job *j)
{
    muster_auto(doc) json_t *answer = NULL;
    const struct kube_ref events = {kube_resource_find("events"), j->namespace, NULL, NULL};
    if (kube_list(j->follow->cli->kube, &events,
                  &(struct kube_query){.fields = "reason=GPUGracePeriod"}, &answer, NULL) < 0) {
        return;
    }
    const char *uid = doc_text(j->object, "metadata.uid", "");
    size_t i;
    json_t *event;
    json_array_foreach (doc_at(answer, "items"), i, event) {
        if (strcmp(doc_text(event, "involvedObject.uid", ""), uid) == 0) {
            screen_note(j->follow->screen, "%s", doc_text(event, "message", ""));
        }
    }
}

static void end_stragglers(struct followed_job *j)
{
    char age[AGE_BYTES];
    screen_note(j->follow->screen, "job %s: ending what still runs %s after its end (--after-end)",
                j->name, age_words(j->follow->after_end_ms, age));
    if (!ending_stop(j, "--after-end of its muster run is over")) {
        j->follow->killed = true;
    }
}

/* Once each, when its time has come. */
static bool is_due(const struct followed_job *j, bool *done, int64_t after_ms)
{
    bool due = !*done && after_ms >= 0 && clock_ms() - j->over_ms >= after_ms;
    *done = *done || due;
    return due;
}

void ending_check(struct followed_job *j)
{
    bool goes_on = j->over && !j->deleted && !j->follow->interrupt.signal &&
                   verdict_of(j->object, NULL, false).end == VERDICT_SUCCEEDED &&
                   count_running(j, false) > 0;
    if (!goes_on) {
        return;
    }
    if (is_due(j, &j->gpus_told, GPU_NOTICE_MS)) {
        tell_gpu_grace(j);
    }
    if (is_due(j, &j->stragglers_ended, j->follow->after_end_ms)) {
        end_stragglers(j);
    } else if (is_due(j, &j->stragglers_told, NOTICE_MS)) {
        tell_who_runs(j);
    }
}
