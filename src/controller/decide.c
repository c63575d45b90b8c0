/* Decides what a job needs now: the caches are its view, and the control core decides. See
 * internal.h. */
#include "base/doc.h"
#include "control/control.h"
#include "controller/internal.h"

#include <stdlib.h>

static int decide(struct task *task, const struct control_view *view, struct muster_err *err)
{
    struct control_effects fx;
    int r = driver_refuses(view, err) ? MUSTER_EDATA : control_reconcile(view, &fx, err);
    if (r == MUSTER_EDATA) { /* only the user can correct that */
        driver_say(task->driver, "controller.unreadable", task->key, err->text);
        r = control_stalled(view, err->text, &fx, err);
    }
    if (r < 0) {
        return r;
    }
    r = flow_init(&task->flow, view->job, &fx);
    if (r < 0) {
        control_effects_done(&fx);
    }
    return r;
}

/* Reads the objects of each kind that may concern the job; sets NULL for a kind that the cluster
 * does not serve. */
static int look(struct driver *d, const json_t *job, json_t *ret_lists[CONTROL_RESOURCES])
{
    const char *uid = doc_text(job, "metadata.uid", "");
    int r = 0;
    for (enum control_resource i = CONTROL_POD; i < CONTROL_RESOURCES; i++) {
        const char *owner = i == CONTROL_CLAIM ? doc_text(job, "metadata.namespace", "") : uid;
        bool absent = cache_is_absent(&d->cache, i);
        ret_lists[i] = absent ? NULL : cache_list(&d->cache, i, owner);
        r = absent || ret_lists[i] ? r : MUSTER_ENOMEM;
    }
    return r;
}

int driver_decide(struct task *task, json_t *job, struct muster_err *err)
{
    struct driver *d = task->driver;
    json_t *lists[CONTROL_RESOURCES] = {0};
    int r = look(d, job, lists);
    size_t node_count;
    struct control_node *nodes = nodes_view(&d->nodes, driver_now_ms(d), &node_count);
    const struct control_view view = {.job = job,
                                      .pods = lists[CONTROL_POD],
                                      .services = lists[CONTROL_SERVICE],
                                      .claims = lists[CONTROL_CLAIM],
                                      .autoscalers = lists[CONTROL_AUTOSCALER],
                                      .pod_groups = lists[control_gang_resource(&d->options.gang)],
                                      .now_unix_ms = driver_now_unix_ms(d),
                                      .target = d->options.target,
                                      .gang = d->options.gang,
                                      .nodes = nodes,
                                      .node_count = node_count,
                                      .lost_after_ms = d->options.lost_after_ms,
                                      .restart_rules = d->options.restart_rules};
    r = r < 0 ? r : decide(task, &view, err);
    for (enum control_resource i = 0; i < CONTROL_RESOURCES; i++) {
        json_decref(lists[i]);
    }
    free(nodes);
    return r;
}
