/* One pod: feeds its machine, carries the effects out, writes its status. See internal.h. */
#include "daemon/agent/internal.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/stamp.h"
#include "daemon/history/remains.h"
#include "daemon/machine/admission.h"
#include "daemon/machine/podman.h"
#include "daemon/object/jobs.h"
#include "job/annotations.h"

#include <assert.h>
#include <signal.h>
#include <string.h>

/* ---- Effects ---- */

/* A failure is fed to the pod's machine at once. */
static void start_container(struct agent_pod *pod, const struct pod_effect *effect)
{
    struct muster_err err = {0};
    if (agent_start_container(pod, effect, &err) < 0) {
        const struct pod_event failed = {.kind = POD_START_FAILED,
                                         .now_unix_ms = clock_unix_ms(),
                                         .container = effect->container,
                                         .attempt = effect->attempt,
                                         .reason = "CreateContainerConfigError",
                                         .message = err.text};
        agent_event(pod->agent, pod->object, true, "Failed", err.text);
        agent_pod_feed(pod, &failed);
    }
}

/* For what the job only adds to: without it a signal is still sent. New reference or NULL. */
static json_t *owner_if_readable(const struct agent_pod *pod)
{
    json_t *job = NULL;
    struct muster_err err = {0};
    if (jobs_fetch_owner(pod->agent->options.store, pod->object, &job, &err) < 0) {
        log_event(LOG_WARN, "agent.owner", "%s: %s", pod->name, err.text);
    }
    return job;
}

/* What hangs until a deadline is what its user wants to know. */
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
    struct muster_err err = {0};
    if (effect->first && effect->signal != SIGKILL) {
        char text[160];
        snprintf(text, sizeof text, "Stopping container %s",
                 pod_container_name(pod->machine, effect->container));
        agent_event(pod->agent, pod->object, false, "Killing", text);
    }
    int r = !id ? 0
            : is_past_deadline(pod)
                ? process_job_explain(pod->job->process, id, effect->signal, &err)
                : process_job_signal(pod->job->process, id, effect->signal, &err);
    if (r < 0) {
        log_event(LOG_WARN, "agent.signal", "%s: %s", id, err.text);
    }
}

/* Done, or not to be done any more; a full disk is neither. */
static bool is_settled(int r)
{
    return r == 0 || r == MUSTER_ENOENT || r == MUSTER_ECONFLICT;
}

static bool write_status(struct agent_pod *pod)
{
    muster_auto(doc) json_t *status = pod_status(pod->machine);
    muster_auto(doc) json_t *object = json_pack(
        "{s:s, s:s, s:{s:s, s:s, s:s}, s:O}", "apiVersion", "v1", "kind", "Pod", "metadata", "name",
        pod->name, "namespace", pod->namespace, "uid", pod->uid, "status", status);
    struct muster_err err = {0};
    int r = object ? store_update(pod->agent->options.store, "pods", object, STORE_STATUS_ONLY,
                                  NULL, &err)
                   : err_no_memory(&err);
    if (!is_settled(r)) {
        log_event(LOG_ERROR, "agent.status", "%s: %s", pod->name, err.text);
    }
    return is_settled(r);
}

static void on_timer(uv_timer_t *timer)
{
    struct agent_pod *pod = timer->data;
    const struct pod_event tick = {.kind = POD_TICK, .now_unix_ms = clock_unix_ms()};
    agent_pod_feed(pod, &tick);
}

static void wake_at(struct agent_pod *pod, int64_t at_unix_ms)
{
    int64_t delay = at_unix_ms - clock_unix_ms();
    uv_update_time(pod->agent->options.loop);
    uv_timer_start(&pod->timer, on_timer, delay > 0 ? (uint64_t)delay : 0, 0);
}

static void give_back_gpus(struct agent_pod *pod)
{
    const char *ids = placement_gpus(&pod->job->placement, pod->uid);
    if (ids) {
        gpus_give_back(pod->agent->options.gpus, ids);
        (void)placement_set_gpus(&pod->job->placement, pod->uid, NULL, NULL);
        agent_retry_waiting(pod->agent);
    }
}

static void forget_containers(const struct agent_pod *pod)
{
    for (size_t i = 0; i < pod_container_count(pod->machine); i++) {
        char name[PODMAN_NAME_BYTES];
        podman_name(pod->uid, pod_container_name(pod->machine, i), name);
        podman_remove(pod->agent->options.loop, name);
    }
}

/* Finished or gone: nothing of it runs any more. What its emptyDirs held goes with it; its logs
 * stay with the job. */
static void let_go(struct agent_pod *pod)
{
    struct agent_job *job = pod->job;
    muster_auto(free) char *folder = NULL;
    if (asprintf(&folder, "%s/pods/%s", job->folder, pod->uid) >= 0) {
        (void)file_remove(folder, NULL);
    }
    if (job->in_podman) {
        forget_containers(pod);
    }
    give_back_gpus(pod);
    agent_pod_free(pod);
    agent_job_leave(job);
}

/* Whose the logs in the job's folder are is known after the pod was deleted, too. */
static void keep_remains(const struct agent_pod *pod)
{
    struct muster_err err = {0};
    muster_auto(doc) json_t *status = pod_status(pod->machine);
    if (remains_keep(pod->job->folder, pod->object, status, &err) < 0) {
        log_event(LOG_WARN, "agent.remains", "%s: %s", pod->name, err.text);
    }
}

static bool remove_object(struct agent_pod *pod)
{
    const struct store_key key = {"pods", pod->namespace, pod->name};
    const struct store_delete_options now = {.uid = pod->uid};
    struct muster_err err = {0};
    int r = store_delete(pod->agent->options.store, key, &now, NULL, &err);
    if (!is_settled(r)) {
        log_event(LOG_ERROR, "agent.remove", "%s: %s", pod->name, err.text);
    }
    return is_settled(r);
}

static void carry_out(struct agent_pod *pod, const struct pod_effect *effect)
{
    switch (effect->kind) {
    case POD_START: start_container(pod, effect); return;
    case POD_SIGNAL: signal_container(pod, effect); return;
    case POD_STATUS: pod->owes_status = !write_status(pod); return;
    case POD_WAKE_AT: wake_at(pod, effect->at_unix_ms); return;
    case POD_GONE:
        keep_remains(pod);
        pod->owes_removal = !remove_object(pod);
        return;
    }
    assert(!"unreachable");
}

/* A pod that is over stays until the store knows it: nobody else would tell it. */
static void look_whether_over(struct agent_pod *pod)
{
    bool finished = pod_is_finished(pod->machine) && !pod->deleting;
    if (pod->owes_status || pod->owes_removal) {
        agent_retry_soon(pod->agent);
    } else if (pod->gone || finished) {
        if (!pod->gone) {
            keep_remains(pod);
        }
        let_go(pod);
    }
}

bool agent_pod_settle(struct agent_pod *pod)
{
    pod->owes_status = pod->owes_status && !write_status(pod);
    pod->owes_removal = pod->owes_removal && !remove_object(pod);
    bool settled = !pod->owes_status && !pod->owes_removal;
    look_whether_over(pod);
    return settled;
}

/* A start that fails feeds the machine again from within, so the last one out looks whether the pod
 * is over. */
void agent_pod_feed(struct agent_pod *pod, const struct pod_event *event)
{
    struct pod_effects effects;
    assert(pod->job && pod->job->pod_count > 0);
    pod->depth++;
    pod_step(pod->machine, event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        pod->gone = pod->gone || effects.list[i].kind == POD_GONE;
        carry_out(pod, &effects.list[i]);
    }
    if (--pod->depth == 0) {
        look_whether_over(pod);
    }
}

bool agent_pod_alive(const struct agent *agent, const struct agent_pod *pod)
{
    for (const struct agent_pod *at = agent->pods; at; at = at->hh.next) {
        if (at == pod) {
            return true;
        }
    }
    return false;
}

/* ---- Life ---- */

void agent_pod_schedule(struct agent_pod *pod)
{
    if (pod->deleting) {
        return;
    }
    struct gpus *gpus = pod->agent->options.gpus;
    int64_t wanted = pod->job->no_gpus ? 0 : admission_gpus_wanted(doc_at(pod->object, "spec"));
    struct muster_err err = {0};
    char ids[GPUS_MAX * GPUS_ID_BYTES];
    int r = 0;
    if (wanted > 0 && !placement_gpus(&pod->job->placement, pod->uid)) {
        bool pool[GPUS_MAX];
        (void)gpus_pool(gpus, pod->job->visible_gpus, pool);
        r = gpus_take(gpus, (size_t)wanted, pod->job->share_gpus, pool, ids, sizeof ids, &err);
        r = r < 0 ? r : placement_set_gpus(&pod->job->placement, pod->uid, ids, &err);
    }
    if (r < 0) {
        if (!pod->held_back) {
            pod->held_back = true;
            agent_event(pod->agent, pod->object, true, "FailedScheduling", err.text);
        }
        return;
    }
    pod->scheduled = true;
    const struct pod_event scheduled = {.kind = POD_SCHEDULED, .now_unix_ms = clock_unix_ms()};
    agent_pod_feed(pod, &scheduled);
}

/* When the deletion was asked for. The deadline's fraction of a second was cut off: a second more
 * makes nobody's grace shorter. */
static int64_t asked_at(int64_t now_unix_ms, int64_t grace_s, int64_t deadline_unix_ms)
{
    int64_t at =
        deadline_unix_ms == STAMP_NONE ? now_unix_ms : deadline_unix_ms + 1000 - grace_s * 1000;
    return at < now_unix_ms ? at : now_unix_ms;
}

/* Ended by Ctrl-C: its ranks may handle KeyboardInterrupt. */
static bool begins_with_interrupt(const struct agent_pod *pod)
{
    muster_auto(doc) json_t *job = owner_if_readable(pod);
    const char *signal =
        job && jobs_note(job, JOB_NOTE_STOP) ? jobs_note(job, JOB_NOTE_STOP_SIGNAL) : NULL;
    return signal && strcmp(signal, "SIGINT") == 0;
}

void agent_pod_delete(struct agent_pod *pod, int64_t grace_s, int64_t deadline_unix_ms)
{
    assert(grace_s >= 0);
    if (pod->deleting && grace_s >= pod->grace_s) {
        return; /* told before */
    }
    pod->deleting = true;
    pod->grace_s = grace_s;
    int64_t now = clock_unix_ms();
    const struct pod_event deleted = {.kind = POD_DELETE,
                                      .now_unix_ms = now,
                                      .at_unix_ms = asked_at(now, grace_s, deadline_unix_ms),
                                      .grace_s = grace_s,
                                      .interrupt = begins_with_interrupt(pod)};
    agent_pod_feed(pod, &deleted);
}

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

static struct agent_pod *new_pod(struct agent *agent, json_t *object, struct muster_err *err)
{
    const struct pod_place place = {agent->options.node_name, "127.0.0.1", "127.0.0.1"};
    struct pod *machine = pod_new(object, &place, err);
    struct agent_pod *pod = machine ? calloc(1, sizeof *pod) : NULL;
    if (!pod) {
        pod_free(machine);
        return NULL;
    }
    pod->agent = agent;
    pod->machine = machine;
    pod->object = json_incref(object);
    pod->uid = doc_text(object, "metadata.uid", "");
    pod->namespace = doc_text(object, "metadata.namespace", "");
    pod->name = doc_text(object, "metadata.name", "");
    pod->timer.data = pod;
    uv_timer_init(agent->options.loop, &pod->timer);
    HASH_ADD_KEYPTR(hh, agent->pods, pod->uid, strlen(pod->uid), pod);
    return pod;
}

/* Binding is what a scheduler does: spec.nodeName. */
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

int agent_pod_start(struct agent *agent, json_t *object, struct muster_err *err)
{
    if (agent_job_is_ending(agent, object)) {
        return 0; /* it is looked at again when the supervisor has left */
    }
    struct muster_err why = {.code = MUSTER_ENOMEM, .text = "out of memory"};
    muster_auto(doc) json_t *bound = bind_to_node(agent, object, &why);
    struct agent_pod *pod = bound ? new_pod(agent, bound, &why) : NULL;
    if (!pod) {
        return muster_fail(err, why.code, "%s", why.text);
    }
    int r = agent_job_enter(agent, pod, err);
    if (r < 0) {
        agent_pod_free(pod);
    }
    return r;
}
