/* What a kubelet decides for one pod, as a machine. Each event is first taken in (events.c). Then
 * the machine decides what to do from all that is known. See pod.h. */
#include "base/backoff.h"
#include "base/doc.h"
#include "base/text.h"
#include "pod/machine.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { GRACE_DEFAULT_S = 30 };

static int64_t seconds(const json_t *spec, const char *field, int64_t fallback)
{
    int64_t s = doc_int(spec, field, fallback);
    return (s < 0 ? 0 : s > INT32_MAX ? INT32_MAX : s) * 1000;
}

static enum pod_restart read_restart(const json_t *spec)
{
    const char *word = doc_text(spec, "restartPolicy", "Always");
    if (strcmp(word, "Never") == 0) {
        return POD_RESTART_NEVER;
    }
    return strcmp(word, "OnFailure") == 0 ? POD_RESTART_ON_FAILURE : POD_RESTART_ALWAYS;
}

/* Since Kubernetes 1.35 a container with restart rules has its own policy, for exits that no rule
 * names. */
static enum pod_restart restart_of(const struct pod *pod, const json_t *container, bool init)
{
    return !init && doc_at(container, "restartPolicyRules") ? read_restart(container)
                                                            : pod->restart;
}

static bool read_containers(struct pod *pod, const char *list, bool init)
{
    size_t index;
    json_t *spec;
    json_array_foreach (doc_at(pod->object, list), index, spec) {
        if (pod->count == POD_CONTAINERS_MAX) {
            return false;
        }
        pod->containers[pod->count++] = (struct container){.spec = spec,
                                                           .name = doc_text(spec, "name", ""),
                                                           .restart = restart_of(pod, spec, init),
                                                           .init = init};
        pod->init_count += init;
    }
    return true;
}

struct pod *pod_new(json_t *object, const struct pod_place *place, struct muster_err *err)
{
    struct pod *pod = calloc(1, sizeof *pod);
    if (!pod) {
        muster_fail(err, MUSTER_ENOMEM, "no memory for a pod");
        return NULL;
    }
    pod->object = json_incref(object);
    text_copy(pod->node_name, sizeof pod->node_name, place->node_name);
    text_copy(pod->host_ip, sizeof pod->host_ip, place->host_ip);
    text_copy(pod->pod_ip, sizeof pod->pod_ip, place->pod_ip);
    const json_t *spec = doc_at(object, "spec");
    pod->restart = read_restart(spec);
    pod->grace_ms = seconds(spec, "terminationGracePeriodSeconds", GRACE_DEFAULT_S);
    pod->deadline_ms = seconds(spec, "activeDeadlineSeconds", 0);
    bool fits = read_containers(pod, "spec.initContainers", true) &&
                read_containers(pod, "spec.containers", false);
    if (!fits || pod->count == pod->init_count) {
        muster_fail(err, MUSTER_EDATA, "pod %s: must have 1 to %d containers",
                    doc_text(object, "metadata.name", ""), POD_CONTAINERS_MAX);
        return pod_free(pod);
    }
    pod->held = true;
    pod_restore(pod);
    return pod;
}

struct pod *pod_free(struct pod *pod)
{
    if (pod) {
        json_decref(pod->object);
        free(pod);
    }
    return NULL;
}

size_t pod_container_count(const struct pod *pod)
{
    return pod->count;
}

const json_t *pod_container(const struct pod *pod, size_t container)
{
    assert(container < pod->count);
    return pod->containers[container].spec;
}

const char *pod_container_name(const struct pod *pod, size_t container)
{
    assert(container < pod->count);
    return pod->containers[container].name;
}

static void emit(struct pod_effects *fx, struct pod_effect effect)
{
    assert(fx->count < POD_EFFECTS_MAX);
    fx->list[fx->count++] = effect;
}

static void start(struct pod *pod, size_t index, struct pod_effects *fx)
{
    struct container *c = &pod->containers[index];
    assert(c->state == CONTAINER_WAITING && pod->scheduled && !pod->ending);
    if (c->crashed) {
        c->attempt++;
        c->crashed = false;
    }
    c->state = CONTAINER_STARTING;
    c->asked = POD_ASKED_NOTHING;
    emit(fx, (struct pod_effect){.kind = POD_START, .container = index, .attempt = c->attempt});
}

/* If the attempt ended and another one will follow, makes the container wait for its back-off. */
static void settle(struct pod *pod, struct container *c)
{
    if (c->state == CONTAINER_TERMINATED && pod_restarts(pod, c, c->end.code)) {
        c->last = c->end;
        c->crashed = true;
        c->state = CONTAINER_WAITING;
        c->not_before_unix_ms = c->end.finished_unix_ms + backoff_ms(c->crashes);
    }
}

/* Starts the containers that may start; returns when to call it again. */
static int64_t start_due(struct pod *pod, size_t from, size_t to, int64_t now,
                         struct pod_effects *fx)
{
    int64_t wake = INT64_MAX;
    for (size_t i = from; i < to; i++) {
        struct container *c = &pod->containers[i];
        settle(pod, c);
        if (c->state != CONTAINER_WAITING) {
            continue;
        }
        if (c->not_before_unix_ms <= now) {
            start(pod, i, fx);
        } else if (c->not_before_unix_ms < wake) {
            wake = c->not_before_unix_ms;
        }
    }
    return wake;
}

/* Runs the init containers one after the other, then the main ones together. */
static int64_t run_containers(struct pod *pod, int64_t now, struct pod_effects *fx)
{
    for (size_t i = 0; i < pod->init_count; i++) {
        struct container *c = &pod->containers[i];
        if (c->state != CONTAINER_TERMINATED || pod_restarts(pod, c, c->end.code)) {
            return start_due(pod, i, i + 1, now, fx);
        }
        if (c->end.code != 0) {
            return INT64_MAX; /* the policy is Never: the pod has failed */
        }
    }
    return start_due(pod, pod->init_count, pod->count, now, fx);
}

static void ask_container(struct pod *pod, size_t index, enum pod_asked ask, struct pod_effects *fx)
{
    static const int signals[] = {
        [POD_ASKED_INT] = SIGINT, [POD_ASKED_TERM] = SIGTERM, [POD_ASKED_KILL] = SIGKILL};
    struct container *c = &pod->containers[index];
    if (c->state == CONTAINER_RUNNING && c->asked < ask) {
        emit(fx, (struct pod_effect){.kind = POD_SIGNAL,
                                     .container = index,
                                     .attempt = c->attempt,
                                     .signal = signals[ask],
                                     .first = c->asked == POD_ASKED_NOTHING});
        c->asked = ask;
    }
}

/* Returns how running containers are to be asked to end now; *ret_next: when the next way is due,
 * INT64_MAX after the last. */
static enum pod_asked ask_due(const struct pod *pod, int64_t now, int64_t *ret_next)
{
    assert(pod->ending && pod->term_at_unix_ms <= pod->kill_at_unix_ms);
    if (now >= pod->kill_at_unix_ms) {
        *ret_next = INT64_MAX;
        return POD_ASKED_KILL;
    }
    bool term = now >= pod->term_at_unix_ms;
    *ret_next = term ? pod->kill_at_unix_ms : pod->term_at_unix_ms;
    return term ? POD_ASKED_TERM : POD_ASKED_INT;
}

static int64_t end_containers(struct pod *pod, int64_t now, struct pod_effects *fx)
{
    int64_t next;
    enum pod_asked ask = ask_due(pod, now, &next);
    for (size_t i = 0; i < pod->count; i++) {
        ask_container(pod, i, ask, fx);
    }
    if (pod_any_live(pod)) {
        return next;
    }
    if (pod->deleting && !pod->gone) {
        pod->gone = true;
        emit(fx, (struct pod_effect){.kind = POD_GONE});
    }
    return INT64_MAX;
}

static int64_t check_deadline(struct pod *pod, int64_t now)
{
    if (pod->deadline_ms == 0 || !pod->scheduled || pod->ending || pod_is_finished(pod)) {
        return INT64_MAX;
    }
    int64_t at = pod->start_unix_ms + pod->deadline_ms;
    if (now < at) {
        return at;
    }
    text_copy(pod->reason, sizeof pod->reason, "DeadlineExceeded");
    text_copy(pod->message, sizeof pod->message,
              "Pod was active on the node longer than the specified deadline");
    pod_end(pod, now, pod->grace_ms, false);
    return INT64_MAX;
}

static int64_t move_on(struct pod *pod, int64_t now, struct pod_effects *fx)
{
    int64_t deadline = check_deadline(pod, now);
    int64_t wake = INT64_MAX;
    if (pod->ending) {
        wake = end_containers(pod, now, fx);
    } else if (pod->scheduled) {
        wake = run_containers(pod, now, fx);
    }
    return deadline < wake ? deadline : wake;
}

static void turn_conditions(struct pod *pod, int64_t now)
{
    for (enum pod_condition i = 0; i < POD_CONDITIONS; i++) {
        bool value = pod_condition_now(pod, i);
        if (value != pod->conditions[i] || pod->turned_unix_ms[i] == 0) {
            pod->conditions[i] = value;
            pod->turned_unix_ms[i] = now;
        }
    }
}

/* Puts status and timer before effects that the driver may answer at once with another event (a
 * start that fails), so that the status and timer of that event come last. */
static void put_first(struct pod_effects *fx, bool status, int64_t wake_unix_ms)
{
    const struct pod_effects deeds = *fx;
    fx->count = 0;
    if (status) {
        emit(fx, (struct pod_effect){.kind = POD_STATUS});
    }
    if (wake_unix_ms != INT64_MAX) {
        emit(fx, (struct pod_effect){.kind = POD_WAKE_AT, .at_unix_ms = wake_unix_ms});
    }
    for (size_t i = 0; i < deeds.count; i++) {
        emit(fx, deeds.list[i]);
    }
}

void pod_step(struct pod *pod, const struct pod_event *event, struct pod_effects *ret_effects)
{
    *ret_effects = (struct pod_effects){.count = 0};
    json_t *before = pod_status(pod);
    pod_take(pod, event);
    int64_t wake = pod->held ? INT64_MAX : move_on(pod, event->now_unix_ms, ret_effects);
    turn_conditions(pod, event->now_unix_ms);
    json_t *after = pod_status(pod);
    put_first(ret_effects, !json_equal(before, after) && !pod->gone, wake);
    assert(!pod_check_invariants(pod, ret_effects));
    json_decref(before);
    json_decref(after);
}

void pod_trace(const struct pod_effects *fx, struct buf *out)
{
    for (size_t i = 0; i < fx->count; i++) {
        const struct pod_effect *e = &fx->list[i];
        switch (e->kind) {
        case POD_START: buf_format(out, "start %zu attempt %d\n", e->container, e->attempt); break;
        case POD_SIGNAL:
            buf_format(out, "signal %zu attempt %d SIG%s\n", e->container, e->attempt,
                       sigabbrev_np(e->signal));
            break;
        case POD_STATUS: buf_text(out, "status\n"); break;
        case POD_WAKE_AT: buf_format(out, "wake %lld\n", (long long)e->at_unix_ms); break;
        case POD_GONE: buf_text(out, "gone\n"); break;
        }
    }
}

const char *pod_check_invariants(const struct pod *pod, const struct pod_effects *fx)
{
    for (size_t i = 0; i < fx->count; i++) {
        const struct pod_effect *e = &fx->list[i];
        if (e->kind == POD_START && (pod->ending || !pod->scheduled)) {
            return "starts a container of a pod that ends, or has no place";
        }
        if (e->kind == POD_START && e->container >= pod->init_count && !pod_init_done(pod)) {
            return "starts a container before the init containers are done";
        }
        if (e->kind == POD_GONE && pod_any_live(pod)) {
            return "is gone while a container lives";
        }
    }
    return pod_is_finished(pod) && pod_any_live(pod) ? "is finished while a container lives" : NULL;
}
