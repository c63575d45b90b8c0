/* See stop.h. */
#include "cli/follow/stop.h"

#include "base/time/clock.h"
#include "cli/follow/signals.h"
#include "control/control.h"
#include "control/verdict.h"
#include "job/annotations.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { GRACE_DEFAULT_S = 30, SIGNAL_BASE = 128, HEARD_MS = 5000 };

/* ---- Asking ---- */

/* Whether every rank had succeeded before the job was asked to end: then the job has succeeded. */
static bool had_succeeded(const json_t *job)
{
    const json_t *annotations = doc_at((json_t *)(uintptr_t)job, "metadata.annotations");
    const char *policy =
        json_string_value(json_object_get(annotations, JOB_ANNOTATION_SUCCESS_POLICY));
    return policy && strcmp(policy, "AllRanks") == 0 &&
           verdict_of(job, NULL, false).end == VERDICT_SUCCEEDED;
}

/* Ends the job as the end of its lease would, but with our reason. False: the request failed (a
 * full disk); then the job's end cannot be reported either. */
static bool ask_to_stop(struct followed_job *j, const char *why, int signal)
{
    struct kube_ref ref = {kube_resource_find("pytorchjobs"), j->namespace, j->name, NULL};
    muster_auto(doc) json_t *patch =
        json_pack("{s:{s:{s:s, s:s*}}}", "metadata", "annotations", JOB_ANNOTATION_STOP, why,
                  JOB_ANNOTATION_STOP_SIGNAL, signal == SIGINT ? "SIGINT" : NULL);
    muster_auto(doc) json_t *answer = NULL;
    int r = kube_patch(j->follow->cli->kube, &ref, patch, &answer, &j->follow->cli->err);
    if (r < 0 && r != MUSTER_ENOENT) { /* a deleted job ends anyway */
        screen_note(j->follow->screen, "cannot end job %s: %s", j->name, j->follow->cli->err.text);
        return false;
    }
    /* Our view of the job may be older: the watch reports its end a moment later. */
    j->cut_short = j->cut_short && !(r == 0 && had_succeeded(answer));
    j->stop_asked_ms = cli_on_cluster(j->follow->cli) ? clock_ms() : 0;
    return true;
}

void stop_check(struct followed_job *j)
{
    struct cli *cli = j->follow->cli;
    const struct kube_ref ref = {kube_resource_find("pytorchjobs"), j->namespace, j->name, NULL};
    if (!j->stop_asked_ms || j->over || clock_ms() - j->stop_asked_ms < HEARD_MS) {
        return;
    }
    j->stop_asked_ms = 0;
    screen_note(j->follow->screen,
                "the cluster's operator does not end job %s when asked to: it is deleted", j->name);
    int r = kube_delete(cli->kube, &ref, -1, &cli->err);
    if (r < 0 && r != MUSTER_ENOENT) {
        screen_note(j->follow->screen, "cannot delete job %s: %s", j->name, cli->err.text);
        j->follow->killed = true;
    }
}

bool stop_job(struct followed_job *j, const char *why)
{
    return ask_to_stop(j, why, SIGTERM);
}

static const char *reason_of(int signal)
{
    return signal == SIGINT    ? "interrupted (Ctrl-C)"
           : signal == SIGPIPE ? "the output of its muster run was closed"
                               : "its muster run was ended";
}

/* Ends the job in any state: its Master may have ended while Workers still run. */
static void end_job(struct followed_job *j, int signal)
{
    j->cut_short = follow_count_running(j, true) > 0;
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

/* The longest grace period of the pods that run. */
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

void stop_hear(struct follow *f, int signal)
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

static volatile sig_atomic_t came; /* a signal, perhaps before the loop handles it */
static void (*handlers_of_loop[SIGNALS_COUNT])(int);

static void on_signal(uv_signal_t *handle, int number)
{
    stop_hear(handle->data, number);
}

/* The loop does not turn while a request waits for its answer: the request must see the signal. */
static void note(int number)
{
    came = number;
    for (size_t i = 0; i < SIGNALS_COUNT; i++) {
        if (signals_ending[i] == number) {
            handlers_of_loop[i](number);
        }
    }
}

static void note_before_loop(size_t i)
{
    struct sigaction action;
    if (sigaction(signals_ending[i], NULL, &action) == 0 && action.sa_handler != note) {
        handlers_of_loop[i] = action.sa_handler;
        action.sa_handler = note;
        (void)sigaction(signals_ending[i], &action, NULL);
    }
}

void stop_catch(struct follow *f)
{
    for (size_t i = 0; i < SIGNALS_COUNT; i++) {
        int number = signals_ending[i];
        if (signals_is_heard(number)) {
            uv_signal_t *handle = &f->signals[f->open_signals++];
            uv_signal_init(&f->cli->loop, handle);
            handle->data = f;
            uv_signal_start(handle, on_signal, number);
            note_before_loop(i);
        }
    }
    kube_hurry_when(f->cli->kube, &came);
    if (signals_held) {
        stop_hear(f, signals_held);
    }
}

static void exit_now(int number)
{
    _exit(SIGNAL_BASE + number);
}

void stop_release(struct follow *f)
{
    const struct sigaction leave = {.sa_handler = exit_now};
    for (int i = 0; i < f->open_signals; i++) {
        int number = f->signals[i].signum;
        uv_signal_stop(&f->signals[i]);
        (void)sigaction(number, &leave, NULL);
    }
}
