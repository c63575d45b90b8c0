/* Ends a pod: what is left of it, its object, its folder. See internal.h. */
#include "daemon/agent/internal.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "daemon/history/deleted_pods.h"
#include "daemon/machine/podman.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What is kept of it ---- */

/* The object of a pod while it is written to the disk, so that the owner of the logs in the job's
 * folder is known after the pod is deleted. */
struct keeping {
    struct agent *agent;
    int64_t pod;
    struct deleted_pods remains;
    struct muster_err err;
};

static void write_down(void *data)
{
    struct keeping *keeping = data;
    (void)deleted_pods_write(&keeping->remains, &keeping->err);
}

static void post_kept(struct agent *agent, int64_t pod, const struct muster_err *err)
{
    const struct agent_event kept = {.kind = AGENT_KEPT, .pod = pod};
    if (err->code < 0) {
        log_event(LOG_WARN, "agent.remains", "%s", err->text);
    }
    agent_post(&agent->queue, &kept);
}

static void on_written(void *data)
{
    const struct keeping *keeping = data;
    post_kept(keeping->agent, keeping->pod, &keeping->err);
}

static void free_keeping(void *data)
{
    struct keeping *keeping = data;
    deleted_pods_done(&keeping->remains);
    free(keeping);
}

void agent_pod_keep(struct agent_pod *pod)
{
    struct muster_err err = MUSTER_ERR_INIT;
    muster_auto(doc) json_t *status = pod_status(pod->machine);
    struct keeping *keeping = calloc(1, sizeof *keeping);
    int r = keeping
                ? deleted_pods_init(&keeping->remains, pod->job->folder, pod->object, status, &err)
                : err_no_memory(&err);
    if (r < 0) {
        free(keeping);
        post_kept(pod->agent, pod->number, &err);
        return;
    }
    keeping->agent = pod->agent;
    keeping->pod = pod->number;
    const struct disk_task task = {write_down, on_written, free_keeping, keeping};
    disk_do(pod->agent->records, &task);
}

/* ---- Its object ---- */

void agent_pod_remove(struct agent_pod *pod)
{
    const struct store_key key = {"pods", pod->namespace, pod->name};
    const struct store_delete_options now = {.uid = pod->uid};
    struct muster_err err = MUSTER_ERR_INIT;
    int r = store_delete(pod->agent->options.store, key, &now, NULL, &err);
    const struct agent_event answer = {
        .kind = AGENT_REMOVED, .pod = pod->number, .settled = agent_is_settled(r)};
    if (!answer.settled) {
        log_event(LOG_ERROR, "agent.remove", "%s: %s", pod->name, err.text);
    }
    agent_post(&pod->agent->queue, &answer);
}

/* ---- The rest ---- */

static void remove_folder(void *folder)
{
    (void)file_remove(folder, NULL); /* otherwise it is removed with the job */
}

static void forget_containers(const struct agent_pod *pod)
{
    for (size_t i = 0; i < pod_container_count(pod->machine); i++) {
        char name[PODMAN_NAME_BYTES];
        podman_name(pod->uid, pod_container_name(pod->machine, i), name);
        podman_remove(pod->agent->options.loop, name);
    }
}

void agent_pod_let_go(struct agent_pod *pod)
{
    char *folder = NULL;
    if (asprintf(&folder, "%s/pods/%s", pod->job->folder, pod->uid) >= 0) {
        const struct disk_task task = {remove_folder, NULL, free, folder};
        disk_do(pod->agent->removals, &task);
    }
    if (pod->job->in_podman) {
        forget_containers(pod);
    }
    agent_give_back(pod);
    agent_pod_free(pod);
}
