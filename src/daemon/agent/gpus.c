/* Decides which GPUs a pod gets, and whether the node accepts it. See internal.h. */
#include "daemon/agent/internal.h"

#include "base/doc.h"
#include "daemon/machine/node.h"
#include "job/gpus.h"

static int take(struct agent_pod *pod, int64_t wanted, struct muster_err *err)
{
    struct gpus *gpus = pod->agent->options.gpus;
    char ids[GPUS_MAX * GPUS_ID_BYTES];
    bool pool[GPUS_MAX];
    (void)gpus_pool(gpus, pod->job->visible_gpus, pool);
    int r = gpus_take(gpus, (size_t)wanted, pod->job->share_gpus, pool, ids, sizeof ids, err);
    return r < 0 ? r : placement_set_gpus(&pod->job->placement, pod->uid, ids, err);
}

void agent_place(struct agent_pod *pod)
{
    struct muster_err err = MUSTER_ERR_INIT;
    int64_t wanted = pod->job->no_gpus ? 0 : job_gpus_of_pod(doc_at(pod->object, "spec"));
    bool has = placement_gpus(&pod->job->placement, pod->uid) != NULL;
    int r = has ? 0 : node_takes(pod->agent->options.store, pod->object, &err);
    r = r == 0 && wanted > 0 && !has ? take(pod, wanted, &err) : r;
    const struct agent_event answer = {.kind = r < 0 ? AGENT_NOT_PLACED : AGENT_PLACED,
                                       .pod = pod->number};
    agent_post_text(&pod->agent->queue, &answer, r < 0 ? err.text : NULL);
}

void agent_give_back(struct agent_pod *pod)
{
    const struct agent_event freed = {.kind = AGENT_ROOM_MADE};
    const char *ids = placement_gpus(&pod->job->placement, pod->uid);
    if (ids) {
        gpus_give_back(pod->agent->options.gpus, ids);
        (void)placement_set_gpus(&pod->job->placement, pod->uid, NULL, NULL);
        agent_post(&pod->agent->queue, &freed);
    }
}

void agent_give_back_rest(struct agent_job *job)
{
    const struct agent_event freed = {.kind = AGENT_ROOM_MADE};
    const char *pod_uid;
    json_t *ids;
    void *next;
    bool any = false;
    json_object_foreach_safe (json_object_get(job->placement.doc, "gpus"), next, pod_uid, ids) {
        gpus_give_back(job->agent->options.gpus, json_string_value(ids));
        (void)placement_set_gpus(&job->placement, pod_uid, NULL, NULL);
        any = true;
    }
    if (any) {
        agent_post(&job->agent->queue, &freed);
    }
}
