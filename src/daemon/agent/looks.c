/* Turns what the store has into events for the step. See internal.h. */
#include "daemon/agent/internal.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/log.h"
#include "base/time/timestamp.h"
#include "daemon/object/jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RETRY_MS = 1000 };

/* ---- Which pods to look at ---- */

void agent_look_at_pod(struct agent *agent, const char *namespace, const char *name)
{
    muster_auto(free) char *key = NULL;
    if (asprintf(&key, "%s/%s", namespace, name) < 0) {
        key = NULL;
        agent_retry_soon(agent);
        return;
    }
    agent_post_look(&agent->queue, key);
}

static bool is_over(const json_t *pod)
{
    const char *phase = doc_text(pod, "status.phase", "");
    return strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
}

/* Posts a look at each pod of the list, except at those that are over and not deleted: on a machine
 * that has run for a while these are most of the pods. */
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
            agent_look_at_pod(agent, doc_text(pod, "metadata.namespace", ""),
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
    if (look_at_list(agent, &query, NULL) < 0) {
        agent_retry_soon(agent);
    }
}

void agent_look_again(struct agent *agent)
{
    for (const struct agent_pod *pod = agent->pods; pod; pod = pod->hh.next) {
        agent_look_at_pod(agent, pod->namespace, pod->name);
    }
    if (agent_look_at_all(agent, NULL) < 0) {
        agent_retry_soon(agent);
    }
}

static void on_retry(uv_timer_t *timer)
{
    struct agent *agent = timer->data;
    agent_post(&agent->queue, &(struct agent_event){.kind = AGENT_RETRY});
}

void agent_retry_soon(struct agent *agent)
{
    if (!uv_is_active((uv_handle_t *)&agent->retry)) {
        uv_timer_start(&agent->retry, on_retry, RETRY_MS, 0);
    }
}

/* ---- What the store has ---- */

static int read_object(struct agent *agent, const char *key, json_t **ret, struct muster_err *err)
{
    const char *slash = strchr(key, '/');
    muster_auto(free) char *namespace = slash ? strndup(key, (size_t)(slash - key)) : NULL;
    if (!namespace) {
        return MUSTER_ENOMEM;
    }
    return store_get(agent->options.store, (struct store_key){"pods", namespace, slash + 1}, ret,
                     err);
}

bool agent_look(struct agent *agent, struct agent_item *item)
{
    struct muster_err err = MUSTER_ERR_INIT;
    int r = read_object(agent, item->look, &item->object, &err);
    if (r < 0 && r != MUSTER_ENOENT) { /* without an answer nothing is ended */
        log_event(LOG_ERROR, "agent.look", "pod %s: %s", item->look, err.text);
        agent_retry_soon(agent);
        return false;
    }
    const json_t *pod = item->object;
    struct agent_seen *seen = &item->event.seen;
    item->event.kind = AGENT_SEEN;
    *seen = (struct agent_seen){.key = item->look};
    if (pod) {
        int64_t own_s = doc_int(pod, "spec.terminationGracePeriodSeconds", 30);
        seen->uid = doc_text(pod, "metadata.uid", "");
        seen->job = jobs_folder_uid(pod);
        seen->over = is_over(pod);
        seen->deleting = doc_at(pod, "metadata.deletionTimestamp") != NULL;
        /* The status was written before any process of the pod was started (pod/pod.h). */
        seen->may_have_run = doc_at(pod, "status.startTime") != NULL;
        seen->grace_s = doc_int(pod, "metadata.deletionGracePeriodSeconds", own_s);
        seen->deadline_unix_ms = timestamp_read(doc_text(pod, "metadata.deletionTimestamp", NULL));
    }
    return true;
}

void agent_discard(struct agent *agent, const struct agent_item *item)
{
    const struct store_key key = {"pods", doc_text(item->object, "metadata.namespace", ""),
                                  doc_text(item->object, "metadata.name", "")};
    const struct store_delete_options now = {.uid = item->event.seen.uid};
    struct muster_err err = MUSTER_ERR_INIT;
    int r = store_delete(agent->options.store, key, &now, NULL, &err);
    if (r < 0 && r != MUSTER_ENOENT) {
        log_event(LOG_ERROR, "agent.remove", "%s: %s", key.name, err.text);
        agent_retry_soon(agent);
    }
}
