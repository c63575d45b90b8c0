/* Takes in events: they change what is known of a pod. Nothing is decided here. See pod.h. */
#include "base/backoff.h"
#include "base/text.h"
#include "pod/machine.h"

#include <assert.h>
#include <string.h>

enum {
    EXIT_KILLED = 137,
};

typedef void take_fn(struct pod *pod, struct container *c, const struct pod_event *event);

static take_fn take_nothing, take_scheduled, take_unschedulable, take_started, take_exited,
    take_start_failed, take_delete, take_adopted, take_lost;

static const struct {
    take_fn *take;
    bool of_container;
} events[] = {
    [POD_TICK] = {take_nothing, false},
    [POD_SCHEDULED] = {take_scheduled, false},
    [POD_UNSCHEDULABLE] = {take_unschedulable, false},
    [POD_STARTED] = {take_started, true},
    [POD_EXITED] = {take_exited, true},
    [POD_DELETE] = {take_delete, false},
    [POD_START_FAILED] = {take_start_failed, true},
    [POD_ADOPTED] = {take_adopted, false},
    [POD_LOST] = {take_lost, false},
};

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void pod_end(struct pod *pod, int64_t at_unix_ms, int64_t grace_ms, bool interrupt)
{
    assert(grace_ms >= 0);
    int64_t term_at = at_unix_ms + (interrupt ? grace_ms / 2 : 0);
    int64_t kill_at = at_unix_ms + grace_ms;
    pod->term_at_unix_ms = pod->ending ? sooner(term_at, pod->term_at_unix_ms) : term_at;
    pod->kill_at_unix_ms = pod->ending ? sooner(kill_at, pod->kill_at_unix_ms) : kill_at;
    pod->ending = true;
}

static int64_t when(const struct pod_event *event)
{
    return event->at_unix_ms ? event->at_unix_ms : event->now_unix_ms;
}

static void take_nothing(struct pod *pod, struct container *c, const struct pod_event *event)
{
    (void)pod;
    (void)c;
    (void)event;
}

static void schedule(struct pod *pod, int64_t at_unix_ms)
{
    if (!pod->scheduled) {
        pod->scheduled = true;
        pod->start_unix_ms = at_unix_ms;
    }
}

static void take_scheduled(struct pod *pod, struct container *c, const struct pod_event *event)
{
    (void)c;
    schedule(pod, event->now_unix_ms);
    pod->held = false;
}

static void take_unschedulable(struct pod *pod, struct container *c, const struct pod_event *event)
{
    (void)c;
    text_copy(pod->waits_for, sizeof pod->waits_for, event->message);
}

static void take_adopted(struct pod *pod, struct container *c, const struct pod_event *event)
{
    (void)c;
    (void)event;
    pod->held = false;
    for (size_t i = 0; i < pod->count; i++) {
        struct container *each = &pod->containers[i];
        if (each->state == CONTAINER_STARTING) {
            each->state = CONTAINER_WAITING; /* it has no record: it never started */
        }
    }
}

/* Makes `attempt` the current one. Returns false if it is an old one, whose events change
 * nothing. */
static bool reach(struct container *c, int attempt)
{
    bool old = attempt < c->attempt ||
               (attempt == c->attempt && (c->crashed || c->state == CONTAINER_TERMINATED));
    if (old) {
        return false;
    }
    if (attempt > c->attempt) {
        if (c->state == CONTAINER_TERMINATED) {
            c->last = c->end;
        }
        c->end = (struct container_end){0};
        c->attempt = attempt;
        c->state = CONTAINER_STARTING;
    }
    c->crashed = false;
    return true;
}

static void take_started(struct pod *pod, struct container *c, const struct pod_event *event)
{
    if (!reach(c, event->attempt) || c->state == CONTAINER_RUNNING) {
        return;
    }
    schedule(pod, when(event));
    c->state = CONTAINER_RUNNING;
    c->started_unix_ms = when(event);
    c->reason[0] = '\0';
    c->message[0] = '\0';
    c->start_retries = 0;
}

static void end_attempt(struct container *c, const struct pod_event *event, int code,
                        const char *reason, const char *message)
{
    assert(c->state != CONTAINER_TERMINATED);
    if (c->state != CONTAINER_RUNNING) {
        c->started_unix_ms = when(event);
    }
    c->state = CONTAINER_TERMINATED;
    c->reason[0] = '\0';
    c->message[0] = '\0';
    c->end = (struct container_end){.known = true,
                                    .attempt = c->attempt,
                                    .code = code,
                                    .started_unix_ms = c->started_unix_ms,
                                    .finished_unix_ms = when(event),
                                    .peak_memory_bytes = event->peak_memory_bytes};
    if (event->peak_memory_bytes > c->peak_memory_bytes) {
        c->peak_memory_bytes = event->peak_memory_bytes;
    }
    text_copy(c->end.reason, sizeof c->end.reason, reason);
    text_copy(c->end.message, sizeof c->end.message, message);
    bool rested = c->end.finished_unix_ms - c->end.started_unix_ms >= BACKOFF_RESET_MS;
    c->crashes = rested ? 1 : c->crashes + (c->crashes < INT32_MAX);
}

static void take_exited(struct pod *pod, struct container *c, const struct pod_event *event)
{
    if (!reach(c, event->attempt)) {
        return;
    }
    schedule(pod, when(event));
    const char *reason = event->code == 0 ? "Completed" : "Error";
    end_attempt(c, event, event->code, event->oom ? "OOMKilled" : reason, event->message);
}

/* A supervisor that is asked while it starts an attempt reports it as started: from then on it
 * counts as running, until the supervisor reports that it failed to start. */
static void take_start_failed(struct pod *pod, struct container *c, const struct pod_event *event)
{
    bool runs = c->state == CONTAINER_RUNNING && event->attempt == c->attempt;
    if (!reach(c, event->attempt) || (runs && event->code == 0)) {
        return;
    }
    schedule(pod, when(event));
    if (event->code > 0) {
        end_attempt(c, event, event->code, event->reason ? event->reason : "StartError",
                    event->message);
        return;
    }
    c->state = CONTAINER_WAITING;
    c->start_retries += c->start_retries < INT32_MAX;
    c->not_before_unix_ms = event->now_unix_ms + backoff_ms(c->start_retries + 1);
    text_copy(c->reason, sizeof c->reason, event->reason);
    text_copy(c->message, sizeof c->message, event->message);
}

static void take_delete(struct pod *pod, struct container *c, const struct pod_event *event)
{
    (void)c;
    bool own = event->grace_s < 0;
    int64_t grace_s = event->grace_s < INT32_MAX ? event->grace_s : INT32_MAX;
    pod->deleting = true;
    pod->held = pod->held && pod->scheduled; /* a pod that was never scheduled has no records */
    pod_end(pod, when(event), own ? pod->grace_ms : grace_s * 1000, event->interrupt);
}

static void take_lost(struct pod *pod, struct container *c, const struct pod_event *event)
{
    (void)c;
    pod->held = false;
    for (size_t i = 0; i < pod->count; i++) {
        if (pod_is_live(&pod->containers[i])) {
            end_attempt(&pod->containers[i], event, EXIT_KILLED, "ContainerStatusUnknown",
                        "The container could not be located when the pod was terminated");
        }
    }
    if (!pod_is_finished(pod)) {
        text_copy(pod->reason, sizeof pod->reason, event->reason ? event->reason : "NodeLost");
        text_copy(pod->message, sizeof pod->message, event->message);
    }
    pod_end(pod, event->now_unix_ms, 0, false);
}

void pod_take(struct pod *pod, const struct pod_event *event)
{
    assert(event->kind < sizeof events / sizeof events[0]);
    struct container *c = NULL;
    if (events[event->kind].of_container) {
        assert(event->container < pod->count && event->attempt >= 0);
        c = &pod->containers[event->container];
    }
    events[event->kind].take(pod, c, event);
}
