/* Processes whose pods have no object any more: the pod was deleted at once (kubectl delete
 * --force), and the controller died before it had killed the processes. See internal.h. */
#include "daemon/agent/internal.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "daemon/machine/podman.h"
#include "daemon/object/jobs.h"
#include "process/wire/listener.h"

#include <assert.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

/* A supervisor that still lives, of a job that has no pods. */
struct agent_orphan {
    struct agent *agent;
    struct process_job *process;
    char *uid; /* of the job */
    struct agent_orphan *next;
};

static void forget_container(struct agent *agent, const char *id)
{
    char uid[64], container[64], name[PODMAN_NAME_BYTES];
    if (sscanf(id, "%63[^/]/%63[^/]/", uid, container) == 2) {
        podman_name(uid, container, name);
        podman_remove(agent->options.loop, name);
    }
}

/* ---- In a job that has other pods ---- */

void agent_stranger_started(struct agent_job *job, const char *id)
{
    if (!job->strangers) {
        job->strangers = json_object();
    }
    json_object_set_new(job->strangers, id, json_true());
}

void agent_stranger_ended(struct agent_job *job, const char *id)
{
    if (json_object_del(job->strangers, id) == 0 && job->in_podman) {
        forget_container(job->agent, id);
    }
}

static bool has_pod(const json_t *pods, const char *id)
{
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) {
        const char *uid = doc_text(pod, "metadata.uid", "");
        size_t length = strlen(uid);
        if (strncmp(id, uid, length) == 0 && id[length] == '/') {
            return true;
        }
    }
    return false;
}

/* A pod that has an object and is not managed yet will be looked at soon. */
void agent_strangers_kill(struct agent_job *job)
{
    const struct store_query query = {.resource = "pods", .owner_uid = job->uid};
    struct store_page page = {0};
    struct muster_err err = MUSTER_ERR_INIT;
    if (json_object_size(job->strangers) == 0) {
        return;
    }
    int r = store_list(job->agent->options.store, &query, &page, &err);
    const char *id;
    json_t *unused;
    json_object_foreach (job->strangers, id, unused) {
        if (r == 0 && !has_pod(page.items, id)) {
            log_event(LOG_WARN, "agent.stranger", "%s was deleted and runs: it is killed", id);
            r = process_job_signal(job->process, id, SIGKILL, &err);
        }
    }
    store_page_done(&page);
    if (r < 0) { /* without an answer nothing is ended */
        log_event(LOG_WARN, "agent.stranger", "%s: %s", job->uid, err.text);
    }
}

/* ---- Jobs that have no pods ---- */

static void on_orphan_started(void *data, const char *id, int64_t at_unix_ms)
{
    const struct agent_orphan *orphan = data;
    (void)at_unix_ms;
    forget_container(orphan->agent, id);
}

static void on_orphan_ready(void *data)
{
    const struct agent_orphan *orphan = data;
    struct muster_err err = MUSTER_ERR_INIT;
    if (process_job_end(orphan->process, 0, &err) < 0) {
        log_event(LOG_WARN, "agent.orphan", "%s: %s", orphan->uid, err.text);
    }
}

static const struct process_events orphan_events = {.started = on_orphan_started,
                                                    .ready = on_orphan_ready};

static void free_orphan(struct agent_orphan *orphan)
{
    process_job_close(orphan->process);
    free(orphan->uid);
    free(orphan);
}

/* Ends the supervisor in this folder. If no program listens in the folder, there is nothing to
 * end. */
static int end_orphan(struct agent *agent, const char *folder, const char *uid,
                      struct muster_err *err)
{
    const struct process_job_options options = {.folder = folder};
    int fd = -1;
    if (listener_connect(folder, &fd, NULL) < 0) {
        return 0;
    }
    close(fd);
    struct agent_orphan *orphan = calloc(1, sizeof *orphan);
    char *copy = strdup(uid);
    if (!orphan || !copy) {
        free(orphan);
        free(copy);
        return err_no_memory(err);
    }
    *orphan = (struct agent_orphan){.agent = agent, .uid = copy};
    log_event(LOG_WARN, "agent.orphan", "job %s has no pods and runs: it is ended", uid);
    int r = process_job_open(agent->options.loop, &options, &orphan_events, orphan,
                             &orphan->process, err);
    if (r < 0) {
        free_orphan(orphan);
        return r;
    }
    LL_PREPEND(agent->orphans, orphan);
    return 0;
}

/* Adds the folders of pods, and of jobs that are not finished, to `ret`: {UID: true}. */
static int list_needed(struct agent *agent, json_t *ret, struct muster_err *err)
{
    struct store_page pods = {0};
    struct store_page jobs = {0};
    const struct store_query all_pods = {.resource = "pods"};
    const struct store_query all_jobs = {.resource = "pytorchjobs"};
    int r = store_list(agent->options.store, &all_pods, &pods, err);
    r = r < 0 ? r : store_list(agent->options.store, &all_jobs, &jobs, err);
    size_t i;
    json_t *object;
    json_array_foreach (pods.items, i, object) {
        json_object_set_new(ret, jobs_folder_uid(object), json_true());
    }
    json_array_foreach (jobs.items, i, object) {
        if (!jobs_is_finished(object)) {
            json_object_set_new(ret, doc_text(object, "metadata.uid", ""), json_true());
        }
    }
    store_page_done(&pods);
    store_page_done(&jobs);
    return r;
}

static void end_unless_needed(struct agent *agent, const json_t *needed, const char *jobs,
                              const char *uid)
{
    muster_auto(free) char *folder = file_join(jobs, uid);
    struct muster_err err = MUSTER_ERR_INIT;
    int r = *uid == '.' || json_object_get(needed, uid) ? 0
            : folder                                    ? end_orphan(agent, folder, uid, &err)
                                                        : err_no_memory(&err);
    if (r < 0) {
        log_event(LOG_WARN, "agent.orphan", "%s: %s", uid, err.text);
    }
}

void agent_orphans_end(struct agent *agent)
{
    muster_auto(doc) json_t *needed = json_object();
    muster_auto(free) char *jobs = home_file(agent->options.home, "jobs");
    struct muster_err err = MUSTER_ERR_INIT;
    int r = needed && jobs ? list_needed(agent, needed, &err) : err_no_memory(&err);
    if (r < 0) { /* without an answer nothing is ended */
        log_event(LOG_WARN, "agent.orphan", "%s", err.text);
        return;
    }
    DIR *entries = opendir(jobs);
    for (struct dirent *e = entries ? readdir(entries) : NULL; e; e = readdir(entries)) {
        end_unless_needed(agent, needed, jobs, e->d_name);
    }
    if (entries) {
        closedir(entries);
    }
}

void agent_orphans_free(struct agent *agent)
{
    struct agent_orphan *orphan, *next;
    LL_FOREACH_SAFE(agent->orphans, orphan, next)
    {
        free_orphan(orphan);
    }
    agent->orphans = NULL;
}
