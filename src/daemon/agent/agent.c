/* The agent: which pods there are, and telling each about changes. See agent.h.
 *
 * Store callbacks only note the pod's key; the work is done from the loop.
 */
#include "daemon/agent/internal.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/log.h"
#include "base/stamp.h"

#include <string.h>

enum { RETRY_MS = 1000 };

static void on_idle(uv_idle_t *idle);

static void look_at(struct agent *agent, const char *namespace, const char *name)
{
    muster_auto(free) char *key = NULL;
    if (asprintf(&key, "%s/%s", namespace, name) < 0) {
        key = NULL;
        return;
    }
    json_object_set_new(agent->changed, key, json_true());
    uv_idle_start(&agent->idle, on_idle);
}

static void on_change(void *arg, const struct store_change *change)
{
    look_at(arg, change->key.namespace, change->key.name);
}

static void on_job(void *arg, const struct store_change *change)
{
    agent_job_changed(arg, change->object);
}

/* A pod that was deleted and made again has the same name and another uid: the former has no object
 * any more. */
static void forget_others(struct agent *agent, const char *namespace, const char *name,
                          const char *uid)
{
    struct agent_pod *pod, *next;
    HASH_ITER (hh, agent->pods, pod, next) {
        bool named = strcmp(pod->name, name) == 0 && strcmp(pod->namespace, namespace) == 0;
        if (named && strcmp(pod->uid, uid) != 0) {
            agent_pod_delete(pod, 0, STAMP_NONE);
        }
    }
}

static bool is_over(const json_t *pod)
{
    const char *phase = doc_text(pod, "status.phase", "");
    return strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
}

/* A deleted pod that nothing runs for: nobody but us takes it away. */
static void remove_object(struct agent *agent, const json_t *pod)
{
    const struct store_key key = {"pods", doc_text(pod, "metadata.namespace", ""),
                                  doc_text(pod, "metadata.name", "")};
    const struct store_delete_options now = {.uid = doc_text(pod, "metadata.uid", NULL)};
    struct muster_err err = {0};
    int r = store_delete(agent->options.store, key, &now, NULL, &err);
    if (r < 0 && r != MUSTER_ENOENT) {
        log_event(LOG_ERROR, "agent.remove", "%s: %s", key.name, err.text);
        agent_retry_soon(agent);
    }
}

static void start(struct agent *agent, json_t *object)
{
    struct muster_err err = {0};
    if (agent_pod_start(agent, object, &err) < 0) {
        log_event(LOG_ERROR, "agent.start", "%s: %s", doc_text(object, "metadata.name", "?"),
                  err.text);
        agent_event(agent, object, true, "FailedCreatePodSandBox", err.text);
        agent_retry_soon(agent);
    }
}

static struct agent_pod *find(const struct agent *agent, const json_t *object)
{
    struct agent_pod *pod = NULL;
    HASH_FIND_STR(agent->pods, doc_text(object, "metadata.uid", ""), pod);
    return pod;
}

/* Its status was written before anything of it was started (pod/pod.h). */
static bool may_have_run(const json_t *pod)
{
    return doc_at(pod, "status.startTime") != NULL;
}

/* A pod that was being deleted when the controller before us died still has its processes, and what
 * is left of its grace period. */
static void look_present(struct agent *agent, json_t *object)
{
    bool deleting = doc_at(object, "metadata.deletionTimestamp") != NULL;
    if (!find(agent, object) && deleting && (is_over(object) || !may_have_run(object))) {
        remove_object(agent, object);
        return;
    }
    if (!find(agent, object) && !is_over(object)) {
        start(agent, object);
    }
    struct agent_pod *pod = find(agent, object);
    if (pod && deleting) {
        int64_t own_s = doc_int(object, "spec.terminationGracePeriodSeconds", 30);
        agent_pod_delete(pod, doc_int(object, "metadata.deletionGracePeriodSeconds", own_s),
                         stamp_read(doc_text(object, "metadata.deletionTimestamp", NULL)));
    }
}

static void look(struct agent *agent, const char *key)
{
    muster_auto(free) char *namespace = strdup(key);
    char *slash = namespace ? strchr(namespace, '/') : NULL;
    if (!slash) {
        return;
    }
    *slash = '\0';
    const char *name = slash + 1;
    muster_auto(doc) json_t *object = NULL;
    struct muster_err err = {0};
    int r =
        store_get(agent->options.store, (struct store_key){"pods", namespace, name}, &object, &err);
    if (r < 0 && r != MUSTER_ENOENT) { /* who cannot tell ends nothing */
        log_event(LOG_ERROR, "agent.look", "pod %s: %s", key, err.text);
        agent_retry_soon(agent);
        return;
    }
    forget_others(agent, namespace, name, doc_text(object, "metadata.uid", ""));
    if (object) {
        look_present(agent, object);
    }
}

static void on_idle(uv_idle_t *idle)
{
    struct agent *agent = idle->data;
    json_t *changed = agent->changed;
    agent->changed = json_object();
    const char *key;
    json_t *value;
    json_object_foreach (changed, key, value) {
        look(agent, key);
    }
    json_decref(changed);
    if (json_object_size(agent->changed) == 0) {
        uv_idle_stop(idle);
    }
}

void agent_retry_waiting(struct agent *agent)
{
    struct agent_pod *pod, *next;
    HASH_ITER (hh, agent->pods, pod, next) {
        if (pod->adopted && !pod->scheduled) {
            agent_pod_schedule(pod);
        }
    }
}

static struct agent_pod *first_in_debt(const struct agent *agent)
{
    struct agent_pod *pod = agent->pods;
    while (pod && !pod->owes_status && !pod->owes_removal) {
        pod = pod->hh.next;
    }
    return pod;
}

/* Also at those whose object may be gone: a list does not have them. */
static void look_at_known(struct agent *agent)
{
    struct agent_pod *pod, *next;
    HASH_ITER (hh, agent->pods, pod, next) {
        look_at(agent, pod->namespace, pod->name);
    }
}

/* From the beginning after each: settling one may be the end of others. */
static void on_retry(uv_timer_t *timer)
{
    struct agent *agent = timer->data;
    struct agent_pod *pod;
    while ((pod = first_in_debt(agent)) != NULL && agent_pod_settle(pod)) {
    }
    look_at_known(agent);
    if (agent_look_at_all(agent, NULL) < 0) {
        agent_retry_soon(agent);
    }
}

void agent_retry_soon(struct agent *agent)
{
    if (!uv_is_active((uv_handle_t *)&agent->retry)) {
        uv_timer_start(&agent->retry, on_retry, RETRY_MS, 0);
    }
}

/* Pods that are over and stay are most of them on a machine that has run a while. */
static int look_at_list(struct agent *agent, const struct store_query *query,
                        struct muster_err *err)
{
    struct store_page page = {0};
    int r = store_list(agent->options.store, query, &page, err);
    if (r < 0) {
        return r;
    }
    size_t i;
    json_t *pod;
    json_array_foreach (page.items, i, pod) {
        if (!is_over(pod) || doc_at(pod, "metadata.deletionTimestamp")) {
            look_at(agent, doc_text(pod, "metadata.namespace", ""),
                    doc_text(pod, "metadata.name", ""));
        }
    }
    store_page_done(&page);
    return 0;
}

int agent_look_at_all(struct agent *agent, struct muster_err *err)
{
    return look_at_list(agent, &(struct store_query){.resource = "pods"}, err);
}

void agent_look_at_pods_of(struct agent *agent, const char *job_uid)
{
    const struct store_query query = {.resource = "pods", .owner_uid = job_uid};
    if (!job_uid || look_at_list(agent, &query, NULL) < 0) {
        agent_retry_soon(agent);
    }
}

static void free_self(uv_handle_t *handle)
{
    struct agent *agent = handle->data;
    json_decref(agent->changed);
    free(agent);
}

int agent_new(const struct agent_options *options, struct agent **ret, struct muster_err *err)
{
    struct agent *agent = calloc(1, sizeof *agent);
    if (!agent) {
        return err_no_memory(err);
    }
    agent->options = *options;
    agent->changed = json_object();
    agent->idle.data = agent->retry.data = agent;
    uv_idle_init(options->loop, &agent->idle);
    uv_timer_init(options->loop, &agent->retry);
    const struct store_watch_options pods = {.resource = "pods", .after_version = STORE_FROM_NOW};
    int r = store_watch(options->store, &pods, on_change, agent, &agent->watch, err);
    const struct store_watch_options jobs = {.resource = "pytorchjobs",
                                             .after_version = STORE_FROM_NOW};
    r = r < 0 ? r : store_watch(options->store, &jobs, on_job, agent, &agent->job_watch, err);
    r = r < 0 ? r : agent_look_at_all(agent, err);
    if (r < 0) {
        agent_free(agent);
        return r;
    }
    *ret = agent;
    return 0;
}

static void close_retry(uv_handle_t *handle)
{
    struct agent *agent = handle->data;
    uv_close((uv_handle_t *)&agent->retry, free_self);
}

struct agent *agent_free(struct agent *agent)
{
    if (!agent) {
        return NULL;
    }
    if (agent->watch) {
        store_unwatch(agent->watch);
    }
    if (agent->job_watch) {
        store_unwatch(agent->job_watch);
    }
    agent_stacks_done(agent);
    struct agent_pod *pod, *next_pod;
    HASH_ITER (hh, agent->pods, pod, next_pod) {
        agent_pod_free(pod);
    }
    struct agent_job *job, *next_job;
    HASH_ITER (hh, agent->jobs, job, next_job) {
        agent_job_free(job);
    }
    uv_close((uv_handle_t *)&agent->idle, close_retry);
    return NULL;
}

size_t agent_live_pods(const struct agent *agent)
{
    return HASH_COUNT(agent->pods) + json_object_size(agent->changed);
}
