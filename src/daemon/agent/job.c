/* One job on this machine: its supervisor and its placement; it also finds the pod that an event
 * belongs to. See internal.h. */
#include "daemon/agent/internal.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/time/clock.h"
#include "daemon/machine/environments.h"
#include "daemon/machine/podman.h"
#include "daemon/object/elastic.h"
#include "daemon/object/jobs.h"
#include "job/annotations.h"
#include "job/job.h"
#include "process/wire/identity.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Events from the supervisor ---- */

/* Returns the pod on which events about the whole job are reported. */
static struct agent_pod *first_pod(const struct agent_job *job)
{
    struct agent_pod *pod = job->agent->pods;
    while (pod && pod->job != job) {
        pod = pod->hh.next;
    }
    return pod;
}

/* Finds the pod and the container of "POD-UID/CONTAINER/ATTEMPT". Returns false if the agent does
 * not manage the pod (an earlier pod of the job). */
static bool find_attempt(struct agent_job *job, const char *id, struct agent_pod **ret_pod,
                         struct pod_event *ret_event)
{
    char uid[64], container[64];
    int attempt;
    if (sscanf(id, "%63[^/]/%63[^/]/%d", uid, container, &attempt) != 3) {
        return false;
    }
    struct agent *agent = job->agent;
    struct agent_pod *pod = agent_pod_of(agent, agent_state_find(&agent->state, uid));
    for (size_t i = 0; pod && pod->job == job && i < pod_container_count(pod->machine); i++) {
        if (strcmp(pod_container_name(pod->machine, i), container) == 0) {
            ret_event->container = i;
            ret_event->attempt = attempt;
            *ret_pod = pod;
            return true;
        }
    }
    return false;
}

static void post(struct agent_job *job, const char *id, struct pod_event event)
{
    struct agent_pod *pod;
    if (find_attempt(job, id, &pod, &event)) {
        agent_post_news(&job->agent->queue, pod->number, &event);
    } else if (event.kind == POD_STARTED) {
        agent_stranger_started(job, id);
    } else {
        agent_stranger_ended(job, id);
    }
}

static void on_started(void *data, const char *id, int64_t at_unix_ms)
{
    post(data, id, (struct pod_event){.kind = POD_STARTED, .at_unix_ms = at_unix_ms});
}

/* Returns the message of an exit. If an elastic job has failed, it is the reason that the job's
 * coordinator has written. */
static const char *why_exited(const struct agent_job *job, const struct process_exit *exit,
                              char room[ELASTIC_WHY_BYTES])
{
    if (exit->code != muster_code_exit(MUSTER_EFAILED) || (exit->message && *exit->message)) {
        return exit->message;
    }
    elastic_failure(job->folder, room);
    return room;
}

static void on_exited(void *data, const char *id, const struct process_exit *exit)
{
    char room[ELASTIC_WHY_BYTES];
    post(data, id,
         (struct pod_event){.kind = POD_EXITED,
                            .code = exit->code,
                            .oom = exit->oom,
                            .peak_memory_bytes = exit->peak_memory_bytes,
                            .message = why_exited(data, exit, room),
                            .at_unix_ms = exit->at_unix_ms});
}

static void on_start_failed(void *data, const char *id, int code, const char *reason,
                            const char *message)
{
    post(data, id,
         (struct pod_event){
             .kind = POD_START_FAILED, .code = code, .reason = reason, .message = message});
}

/* Reports a note to the user at once, since no decision depends on it. */
static void on_note(void *data, const char *id, const char *reason, const char *text)
{
    struct agent_job *job = data;
    struct agent_pod *pod = NULL;
    struct pod_event unused;
    if (id ? find_attempt(job, id, &pod, &unused) : (pod = first_pod(job)) != NULL) {
        agent_note(pod->agent, pod->object, true, reason, text);
    }
}

static void on_stalled(void *data, const char *id, const char *text)
{
    struct agent_pod *pod = NULL;
    struct pod_event unused;
    if (find_attempt(data, id, &pod, &unused)) {
        agent_note(pod->agent, pod->object, true, "RankStalled", text);
    }
}

static void on_stacks(void *data, int64_t ticket, const json_t *attempts)
{
    const struct agent_job *job = data;
    agent_stacks_answer(job->agent, ticket, attempts);
}

static void post_state(struct agent_job *job, enum agent_event_kind kind)
{
    const struct agent_event event = {.kind = kind, .job = job->number};
    agent_post(&job->agent->queue, &event);
}

static void on_ready(void *data)
{
    agent_strangers_kill(data);
    post_state(data, AGENT_SUPERVISOR_READY);
}

static void on_lost(void *data, const char *why)
{
    struct agent_job *job = data;
    log_event(LOG_WARN, "agent.lost", "%s: %s", job->uid, why);
    job->over = true;
    job->why = strdup(why);
    agent_stacks_forget(job);
    post_state(job, AGENT_SUPERVISOR_LOST);
}

static void on_ended(void *data)
{
    struct agent_job *job = data;
    job->over = true;
    agent_stacks_forget(job);
    post_state(job, AGENT_SUPERVISOR_ENDED);
}

static const struct process_events events = {
    .started = on_started,
    .exited = on_exited,
    .start_failed = on_start_failed,
    .note = on_note,
    .stalled = on_stalled,
    .stacks = on_stacks,
    .ready = on_ready,
    .lost = on_lost,
    .ended = on_ended,
};

void agent_job_changed(struct agent *agent, const json_t *owner)
{
    struct agent_job *job = agent->jobs;
    while (job && strcmp(job->uid, doc_text(owner, "metadata.uid", "")) != 0) {
        job = job->hh.next;
    }
    if (job && !job->explained && job_is_finished(owner) &&
        jobs_is_past_deadline(owner, clock_unix_ms())) {
        job->explained = true;
        (void)process_job_explain(job->process, "", 0, NULL);
    }
}

/* ---- Life ---- */

/* Returns the identity of the process that a lease "run-PID-…" (job/annotations.h) names; NULL if
 * there is none. */
static char *runner_of(const json_t *owner)
{
    const char *lease = jobs_annotation(owner, JOB_ANNOTATION_LEASE);
    int pid = 0;
    return lease && sscanf(lease, "run-%d-", &pid) == 1 && pid > 0 ? identity_text(pid) : NULL;
}

static int open_process(struct agent_job *job, const json_t *owner, struct muster_err *err)
{
    const char *network = jobs_annotation(owner, JOB_ANNOTATION_NETWORK);
    muster_auto(free) char *runner = runner_of(owner);
    const struct process_job_options options = {
        .folder = job->folder,
        .runner = runner,
        .private_network = network && strcmp(network, "private") == 0,
        .isolation = job->in_podman ? podman_isolation() : NULL,
    };
    return process_job_open(job->agent->options.loop, &options, &events, job, &job->process, err);
}

/* Holds the GPUs again that earlier controllers gave to this job's pods. */
static void hold_gpus(struct agent_job *job)
{
    const char *pod_uid;
    json_t *ids;
    json_object_foreach (json_object_get(job->placement.doc, "gpus"), pod_uid, ids) {
        gpus_hold(job->agent->options.gpus, json_string_value(ids), job->share_gpus);
    }
}

static int fill(struct agent_job *job, const json_t *owner, struct muster_err *err)
{
    const char *mode = jobs_annotation(owner, JOB_ANNOTATION_GPU);
    job->share_gpus = mode && strcmp(mode, "share") == 0;
    job->no_gpus = mode && strcmp(mode, "none") == 0;
    job->visible_gpus = environments_value(job->agent->options.home, owner, "CUDA_VISIBLE_DEVICES");
    const char *runtime = jobs_annotation(owner, JOB_ANNOTATION_RUNTIME);
    /* The runtime of a job that is deleted already is not known. */
    job->in_podman = !owner || (runtime && strcmp(runtime, "podman") == 0);
    if (!job->uid || !job->folder) {
        return err_no_memory(err);
    }
    int r = file_mkdir(job->folder, 0700, err);
    r = r < 0 ? r : placement_open(&job->placement, job->folder, err);
    if (r == 0) {
        hold_gpus(job);
        r = open_process(job, owner, err);
    }
    return r;
}

static int make(struct agent *agent, const char *uid, const json_t *owner, struct agent_job **ret,
                struct muster_err *err)
{
    struct agent_job *job = calloc(1, sizeof *job);
    if (!job) {
        return err_no_memory(err);
    }
    job->agent = agent;
    job->uid = strdup(uid);
    if (asprintf(&job->folder, "%s/jobs/%s", agent->options.home->path, uid) < 0) {
        job->folder = NULL;
    }
    int r = fill(job, owner, err);
    if (r < 0) {
        free(job->uid);
        free(job->folder);
        free(job->visible_gpus);
        placement_done(&job->placement);
        free(job);
        return r;
    }
    *ret = job;
    return 0;
}

struct agent_job *agent_job_of(const struct agent *agent, int64_t number)
{
    struct agent_job *job = NULL;
    HASH_FIND(hh, agent->jobs, &number, sizeof number, job);
    return job;
}

int agent_job_open(struct agent *agent, int64_t number, const json_t *pod, struct agent_job **ret,
                   struct muster_err *err)
{
    muster_auto(doc) json_t *owner = NULL;
    struct agent_job *job = agent_job_of(agent, number);
    int r = jobs_fetch_owner(agent->options.store, pod, &owner, err);
    if (r == 0 && !job) {
        r = make(agent, jobs_folder_uid(pod), owner, &job, err);
        if (r == 0) {
            job->number = number;
            HASH_ADD(hh, agent->jobs, number, sizeof job->number, job);
        }
    }
    if (r == 0) {
        *ret = job;
    }
    return r;
}

/* A supervisor that cannot be asked is gone. */
void agent_job_end(struct agent_job *job)
{
    struct muster_err err = MUSTER_ERR_INIT;
    if (process_job_end(job->process, 0, &err) < 0) {
        log_event(LOG_WARN, "agent.end", "%s: %s", job->uid, err.text);
        post_state(job, AGENT_SUPERVISOR_ENDED);
    }
}

void agent_job_free(struct agent_job *job)
{
    agent_stacks_forget(job);
    HASH_DEL(job->agent->jobs, job);
    process_job_close(job->process);
    placement_done(&job->placement);
    free(job->uid);
    free(job->folder);
    free(job->visible_gpus);
    free(job->why);
    json_decref(job->strangers);
    free(job);
}
