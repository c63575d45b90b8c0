/* One pod: feeds its machine, carries out the machine's effects, and writes the pod's status. See
 * internal.h. */
#include "daemon/agent/internal.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/log.h"
#include "base/time/clock.h"
#include "base/time/timestamp.h"
#include "daemon/object/jobs.h"
#include "job/annotations.h"

#include <assert.h>
#include <signal.h>
#include <string.h>

/* ---- What its machine asks for ---- */

/* Does nothing if the supervisor is gone: the event that says so will come. */
static void start_container(struct agent_pod *pod, const struct pod_effect *effect)
{
    struct muster_err err = MUSTER_ERR_INIT;
    if (!pod->job->over && agent_start_container(pod, effect, &err) < 0) {
        const struct pod_event failed = {.kind = POD_START_FAILED,
                                         .container = effect->container,
                                         .attempt = effect->attempt,
                                         .reason = "CreateContainerConfigError",
                                         .message = err.text};
        agent_post_news(&pod->agent->queue, pod->number, &failed);
    }
}

/* Returns the job that owns the pod: a new reference, or NULL if it cannot be read. Only extras
 * depend on it; a signal is sent without it too. */
static json_t *owner_if_readable(const struct agent_pod *pod)
{
    json_t *job = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    if (jobs_fetch_owner(pod->agent->options.store, pod->object, &job, &err) < 0) {
        log_event(LOG_WARN, "agent.owner", "%s: %s", pod->name, err.text);
    }
    return job;
}

/* Whether the pod or its job is past a deadline: then the user wants to know what hangs. */
static bool is_past_deadline(const struct agent_pod *pod)
{
    muster_auto(doc) json_t *status = pod_status(pod->machine);
    muster_auto(doc) json_t *job = owner_if_readable(pod);
    return strcmp(doc_text(status, "reason", ""), "DeadlineExceeded") == 0 ||
           jobs_is_past_deadline(job, clock_unix_ms());
}

static void signal_container(struct agent_pod *pod, const struct pod_effect *effect)
{
    muster_auto(free) char *id = agent_attempt_id(pod, effect);
    struct muster_err err = MUSTER_ERR_INIT;
    if (effect->first && effect->signal != SIGKILL) {
        char text[160];
        snprintf(text, sizeof text, "Stopping container %s",
                 pod_container_name(pod->machine, effect->container));
        agent_note(pod->agent, pod->object, false, "Killing", text);
    }
    int r = !id ? 0
            : is_past_deadline(pod)
                ? process_job_explain(pod->job->process, id, effect->signal, &err)
                : process_job_signal(pod->job->process, id, effect->signal, &err);
    if (r < 0) {
        log_event(LOG_WARN, "agent.signal", "%s: %s", id, err.text);
    }
}

static bool write_status(struct agent_pod *pod)
{
    muster_auto(doc) json_t *status = pod_status(pod->machine);
    muster_auto(doc) json_t *object = json_pack(
        "{s:s, s:s, s:{s:s, s:s, s:s}, s:O}", "apiVersion", "v1", "kind", "Pod", "metadata", "name",
        pod->name, "namespace", pod->namespace, "uid", pod->uid, "status", status);
    struct muster_err err = MUSTER_ERR_INIT;
    int r = object ? store_update(pod->agent->options.store, "pods", object, STORE_STATUS_ONLY,
                                  NULL, &err)
                   : err_no_memory(&err);
    if (!agent_is_settled(r)) {
        log_event(LOG_ERROR, "agent.status", "%s: %s", pod->name, err.text);
    }
    return agent_is_settled(r);
}

static void on_timer(uv_timer_t *timer)
{
    const struct agent_pod *pod = timer->data;
    const struct pod_event tick = {.kind = POD_TICK};
    agent_post_news(&pod->agent->queue, pod->number, &tick);
}

static void wake_at(struct agent_pod *pod, int64_t at_unix_ms)
{
    int64_t delay = at_unix_ms - clock_unix_ms();
    uv_update_time(pod->agent->options.loop);
    uv_timer_start(&pod->timer, on_timer, delay > 0 ? (uint64_t)delay : 0, 0);
}

static enum agent_status status_after(struct agent_pod *pod)
{
    return write_status(pod) ? AGENT_STATUS_TAKEN : AGENT_STATUS_OWED;
}

static void carry_out(struct agent_pod *pod, const struct pod_effect *effect,
                      struct agent_event *answer)
{
    switch (effect->kind) {
    case POD_START: start_container(pod, effect); return;
    case POD_SIGNAL: signal_container(pod, effect); return;
    case POD_STATUS: answer->status = status_after(pod); return;
    case POD_WAKE_AT: wake_at(pod, effect->at_unix_ms); return;
    case POD_GONE: answer->gone = true; return;
    }
    assert(!"unreachable");
}

/* ---- Feeding ---- */

void agent_pod_feed(struct agent_pod *pod, const struct pod_event *event)
{
    struct pod_event now = *event;
    struct pod_effects effects;
    struct agent_event answer = {.kind = AGENT_FED, .pod = pod->number};
    now.now_unix_ms = clock_unix_ms();
    if (event->kind == POD_START_FAILED) {
        agent_note(pod->agent, pod->object, true, "Failed", event->message);
    }
    pod_step(pod->machine, &now, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        carry_out(pod, &effects.list[i], &answer);
    }
    answer.finished = pod_is_finished(pod->machine);
    agent_post(&pod->agent->queue, &answer);
}

/* Returns when the deletion was asked for. The deadline was rounded down to seconds, so a second is
 * added: no grace period gets shorter by this. */
static int64_t asked_at(int64_t now_unix_ms, int64_t grace_s, int64_t deadline_unix_ms)
{
    int64_t at =
        deadline_unix_ms == TIMESTAMP_NONE ? now_unix_ms : deadline_unix_ms + 1000 - grace_s * 1000;
    return at < now_unix_ms ? at : now_unix_ms;
}

/* Whether the job was ended by Ctrl-C: then its ranks get SIGINT first and may handle
 * KeyboardInterrupt. */
static bool begins_with_interrupt(const struct agent_pod *pod)
{
    muster_auto(doc) json_t *job = owner_if_readable(pod);
    const char *signal = job && jobs_annotation(job, JOB_ANNOTATION_STOP)
                             ? jobs_annotation(job, JOB_ANNOTATION_STOP_SIGNAL)
                             : NULL;
    return signal && strcmp(signal, "SIGINT") == 0;
}

void agent_pod_feed_delete(struct agent_pod *pod, int64_t grace_s, int64_t deadline_unix_ms)
{
    const struct pod_event deleted = {.kind = POD_DELETE,
                                      .at_unix_ms =
                                          asked_at(clock_unix_ms(), grace_s, deadline_unix_ms),
                                      .grace_s = grace_s,
                                      .interrupt = begins_with_interrupt(pod)};
    agent_pod_feed(pod, &deleted);
}

void agent_pod_write(struct agent_pod *pod)
{
    const struct agent_event answer = {
        .kind = AGENT_WROTE, .pod = pod->number, .status = status_after(pod)};
    agent_post(&pod->agent->queue, &answer);
}

/* ---- Life ---- */

static void free_self(uv_handle_t *handle)
{
    struct agent_pod *pod = handle->data;
    pod_free(pod->machine);
    json_decref(pod->object);
    free(pod);
}

void agent_pod_free(struct agent_pod *pod)
{
    HASH_DEL(pod->agent->pods, pod);
    uv_close((uv_handle_t *)&pod->timer, free_self);
}

struct agent_pod *agent_pod_of(const struct agent *agent, int64_t number)
{
    struct agent_pod *pod = NULL;
    HASH_FIND(hh, agent->pods, &number, sizeof number, pod);
    return pod;
}

static struct agent_pod *new_pod(struct agent *agent, int64_t number, json_t *object,
                                 struct muster_err *err)
{
    const struct pod_place place = {agent->options.node_name, "127.0.0.1", "127.0.0.1"};
    struct pod *machine = pod_new(object, &place, err);
    struct agent_pod *pod = machine ? calloc(1, sizeof *pod) : NULL;
    if (!pod) {
        pod_free(machine);
        return NULL;
    }
    pod->agent = agent;
    pod->number = number;
    pod->machine = machine;
    pod->object = json_incref(object);
    pod->uid = doc_text(object, "metadata.uid", "");
    pod->namespace = doc_text(object, "metadata.namespace", "");
    pod->name = doc_text(object, "metadata.name", "");
    pod->timer.data = pod;
    uv_timer_init(agent->options.loop, &pod->timer);
    HASH_ADD(hh, agent->pods, number, sizeof pod->number, pod);
    return pod;
}

/* Binds the pod to this node as a scheduler does, by setting spec.nodeName. */
static json_t *bind_to_node(struct agent *agent, const json_t *object, struct muster_err *err)
{
    json_t *bound = NULL;
    muster_auto(doc) json_t *changed = json_deep_copy(object);
    if (doc_at(object, "spec.nodeName")) {
        return json_incref((json_t *)object);
    }
    if (!changed || doc_set_text(changed, "spec.nodeName", agent->options.node_name) < 0) {
        err_no_memory(err);
        return NULL;
    }
    return store_update(agent->options.store, "pods", changed, STORE_BUT_STATUS, &bound, err) < 0
               ? NULL
               : bound;
}

int agent_pod_new(struct agent *agent, int64_t number, const json_t *object, struct agent_pod **ret,
                  struct muster_err *err)
{
    struct muster_err why = MUSTER_ERR_INIT;
    (void)err_no_memory(&why);
    muster_auto(doc) json_t *bound = bind_to_node(agent, object, &why);
    struct agent_pod *pod = bound ? new_pod(agent, number, bound, &why) : NULL;
    if (!pod) {
        return muster_fail(err, why.code, "%s", why.text);
    }
    *ret = pod;
    return 0;
}
