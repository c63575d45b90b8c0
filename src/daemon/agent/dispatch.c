/* The agent's main loop: takes each event from the queue to the step, and carries out the step's
 * effects. See agent.h; what is decided, and why, is in step.h.
 *
 * What happens outside (the store, supervisors, timers) is only posted, and so is what an effect
 * leads to: the step and its effects are never entered from within themselves.
 */
#include "daemon/agent/internal.h"

#include "daemon/machine/node.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS_MAX = 1024, REMOVALS_MAX = 1024 };

/* ---- Effects ---- */

static int make(struct agent *agent, const json_t *object, const struct agent_effect *effect,
                struct muster_err *err)
{
    struct agent_pod *pod = NULL;
    int r = agent_pod_new(agent, effect->pod, object, &pod, err);
    if (r < 0) {
        return r;
    }
    r = agent_job_open(agent, effect->job, pod->object, &pod->job, err);
    if (r < 0) {
        agent_pod_free(pod);
    }
    return r;
}

static void admit(struct agent *agent, const struct agent_item *item,
                  const struct agent_effect *effect)
{
    struct muster_err err = MUSTER_ERR_INIT;
    int r = make(agent, item->object, effect, &err);
    if (r < 0) {
        log_event(LOG_ERROR, "agent.start", "%s: %s", doc_text(item->object, "metadata.name", "?"),
                  err.text);
        agent_note(agent, item->object, true, "FailedCreatePodSandBox", err.text);
    }
    const struct agent_event answer = {.kind = r < 0 ? AGENT_REFUSED : AGENT_ADMITTED,
                                       .pod = effect->pod};
    agent_post(&agent->queue, &answer);
}

static void feed_lost(struct agent_pod *pod)
{
    const char *why = pod->job->why ? pod->job->why : "";
    const struct pod_event lost = {.kind = POD_LOST, .reason = "SupervisorLost", .message = why};
    agent_note(pod->agent, pod->object, true, "SupervisorLost", why);
    agent_pod_feed(pod, &lost);
}

static void feed(struct agent_pod *pod, const struct agent_item *item,
                 const struct agent_effect *effect)
{
    switch (effect->food) {
    case AGENT_FEED_NEWS: agent_pod_feed(pod, &item->news); return;
    case AGENT_FEED_ADOPTED: agent_pod_feed(pod, &(struct pod_event){.kind = POD_ADOPTED}); return;
    case AGENT_FEED_SCHEDULED:
        agent_pod_feed(pod, &(struct pod_event){.kind = POD_SCHEDULED});
        return;
    case AGENT_FEED_DELETE:
        agent_pod_feed_delete(pod, effect->grace_s, effect->deadline_unix_ms);
        return;
    case AGENT_FEED_LOST: feed_lost(pod); return;
    }
    assert(!"unreachable");
}

/* Closes a job, then looks at its pods: those that came while it was ending have waited for
 * this. */
static void close_job(struct agent *agent, struct agent_job *job)
{
    muster_auto(free) char *uid = strdup(job->uid);
    agent_give_back_rest(job);
    agent_job_free(job);
    if (uid) {
        agent_look_at_pods_of(agent, uid);
    } else {
        agent_retry_soon(agent);
    }
}

static void carry_out(struct agent *agent, const struct agent_item *item,
                      const struct agent_effect *effect)
{
    struct agent_pod *pod = agent_pod_of(agent, effect->pod);
    struct agent_job *job = agent_job_of(agent, effect->job);
    switch (effect->kind) {
    case AGENT_ADMIT: admit(agent, item, effect); return;
    case AGENT_DISCARD: agent_discard(agent, item); return;
    case AGENT_FEED: feed(pod, item, effect); return;
    case AGENT_PLACE: agent_place(pod); return;
    case AGENT_TELL_WAITS:
        agent_note(agent, pod->object, true, "FailedScheduling", item->text);
        return;
    case AGENT_WRITE: agent_pod_write(pod); return;
    case AGENT_KEEP: agent_pod_keep(pod); return;
    case AGENT_REMOVE: agent_pod_remove(pod); return;
    case AGENT_LET_GO: agent_pod_let_go(pod); return;
    case AGENT_END_JOB: agent_job_end(job); return;
    case AGENT_CLOSE_JOB: close_job(agent, job); return;
    case AGENT_RETRY_SOON: agent_retry_soon(agent); return;
    case AGENT_LOOK_AGAIN: agent_look_again(agent); return;
    }
    assert(!"unreachable");
}

/* Writes the Node object again after somebody deleted it: the node is this machine, which exists as
 * long as the agent. Must not be called from within the watch. */
static void register_again(struct agent *agent)
{
    struct muster_err err = MUSTER_ERR_INIT;
    int r = node_register(agent->options.store, agent->options.gpus, &err);
    agent->node_gone = r < 0;
    if (r < 0) {
        log_event(LOG_WARN, "agent.node", "%s", err.text);
    }
}

static void handle(void *data, struct agent_item *item)
{
    struct agent *agent = data;
    if (agent->node_gone) {
        register_again(agent);
    }
    if (item->look && !agent_look(agent, item)) {
        return;
    }
    const struct agent_effects *effects = agent_step(&agent->state, &item->event);
    for (size_t i = 0; i < effects->count; i++) {
        carry_out(agent, item, &effects->list[i]);
    }
}

/* ---- Changes of the store ---- */

static void on_change(void *arg, const struct store_change *change)
{
    agent_look_at_pod(arg, change->key.namespace, change->key.name);
}

static void on_job(void *arg, const struct store_change *change)
{
    agent_job_changed(arg, change->object);
}

/* The node may have been uncordoned: the agent tries again to place the pods that wait. */
static void on_node(void *arg, const struct store_change *change)
{
    struct agent *agent = arg;
    const struct agent_event changed = {.kind = AGENT_ROOM_MADE};
    agent->node_gone =
        change->kind == STORE_DELETED && strcmp(change->key.name, agent->options.node_name) == 0;
    agent_post(&agent->queue, &changed);
}

/* ---- Life ---- */

static int open_parts(struct agent *agent, struct muster_err *err)
{
    struct store *store = agent->options.store;
    const struct store_watch_options pods = {.resource = "pods", .after_version = STORE_FROM_NOW};
    const struct store_watch_options jobs = {.resource = "pytorchjobs",
                                             .after_version = STORE_FROM_NOW};
    const struct store_watch_options nodes = {.resource = "nodes", .after_version = STORE_FROM_NOW};
    int r = agent_state_init(&agent->state) ? 0 : err_no_memory(err);
    r = r < 0 ? r : disk_new(agent->options.loop, RECORDS_MAX, &agent->records, err);
    r = r < 0 ? r : disk_new(agent->options.loop, REMOVALS_MAX, &agent->removals, err);
    r = r < 0 ? r : store_watch(store, &pods, on_change, agent, &agent->watch, err);
    r = r < 0 ? r : store_watch(store, &jobs, on_job, agent, &agent->job_watch, err);
    r = r < 0 ? r : store_watch(store, &nodes, on_node, agent, &agent->node_watch, err);
    r = r < 0 ? r : agent_look_at_all(agent, err);
    if (r == 0) {
        agent_orphans_end(agent);
    }
    return r;
}

int agent_new(const struct agent_options *options, struct agent **ret, struct muster_err *err)
{
    struct agent *agent = calloc(1, sizeof *agent);
    if (!agent) {
        return err_no_memory(err);
    }
    agent->options = *options;
    agent->retry.data = agent;
    uv_timer_init(options->loop, &agent->retry);
    int r = agent_queue_init(&agent->queue, options->loop, handle, agent, err);
    r = r < 0 ? r : open_parts(agent, err);
    if (r < 0) {
        agent_free(agent);
        return r;
    }
    *ret = agent;
    return 0;
}

static void free_self(uv_handle_t *handle)
{
    free(handle->data);
}

static void close_retry(uv_handle_t *handle)
{
    struct agent_queue *queue = handle->data;
    struct agent *agent = queue->data;
    uv_close((uv_handle_t *)&agent->retry, free_self);
}

static void stop_watching(struct agent *agent)
{
    if (agent->watch) {
        store_unwatch(agent->watch);
    }
    if (agent->job_watch) {
        store_unwatch(agent->job_watch);
    }
    if (agent->node_watch) {
        store_unwatch(agent->node_watch);
    }
}

struct agent *agent_free(struct agent *agent)
{
    if (!agent) {
        return NULL;
    }
    stop_watching(agent);
    agent_stacks_done(agent);
    agent_orphans_free(agent);
    struct agent_pod *pod, *next_pod;
    HASH_ITER (hh, agent->pods, pod, next_pod) {
        agent_pod_free(pod);
    }
    struct agent_job *job, *next_job;
    HASH_ITER (hh, agent->jobs, job, next_job) {
        agent_job_free(job);
    }
    disk_free(agent->records);
    disk_free(agent->removals);
    agent_state_done(&agent->state);
    agent_queue_close(&agent->queue, close_retry);
    return NULL;
}

size_t agent_live_pods(const struct agent *agent)
{
    return agent_state_pods(&agent->state) + agent->queue.count;
}
