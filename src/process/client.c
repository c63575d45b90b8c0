/* See process.h: the controller's side. A job's life, seen from here:
 *
 *     open ─▶ connected to the supervisor that lives there ─▶ ready ─▶ … ─▶ ended | lost
 *        └──▶ none: one is started ──────────────────────────────▲
 *
 * When the connection breaks without a word the supervisor was killed (or had just left when we
 * came). One more is started, which knows from the records whether anything was lost with it; if
 * not, the job goes on, and what was asked for meanwhile is asked again. */
#include "process/process.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"
#include "process/events.h"
#include "process/supervisor_start.h"
#include "process/wire/channel.h"
#include "process/wire/listener.h"
#include "process/wire/record.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum job_state {
    JOB_OPEN,
    JOB_ENDING, /* process_job_end was called */
    JOB_OVER,   /* `ended` or `lost` was called */
};

struct process_job {
    uv_loop_t *loop;
    struct process_job_options options; /* the texts are copies that this job owns */
    struct process_events events;
    void *data;
    struct channel *channel;
    enum job_state state;
    json_t *pending;  /* id → spec: starts that were asked for and not answered yet */
    int64_t grace_ms; /* JOB_ENDING */
    int launches;     /* supervisors started since one was ready */
    int connections;
    pid_t supervisor; /* 0 until it is ready */
    bool told_ready;
    bool lost;   /* the supervisor found attempts that an earlier one lost: `why` */
    bool closed; /* closed by the owner: no hook is called */
    char why[MUSTER_ERR_TEXT_BYTES];
};

enum { LAUNCHES_MAX = 3 };

static const struct channel_hooks hooks;
static void on_gone(void *data, const struct muster_err *why);

static void free_job(struct process_job *job)
{
    assert(!job->channel);
    free((char *)job->options.folder);
    free((char *)job->options.program);
    free((char *)job->options.runner);
    free((char *)job->options.cgroup_root);
    free((char *)job->options.isolation);
    json_decref(job->pending);
    free(job);
}

/* ---- Reporting ---- */

static void disconnect(struct process_job *job)
{
    channel_close(job->channel);
    job->channel = NULL;
    job->supervisor = 0;
}

/* Calls `ended` or `lost`, after which no hook is called any more. */
static void be_over(struct process_job *job)
{
    bool ended = job->state == JOB_ENDING;
    if (job->state == JOB_OVER || job->closed) {
        return;
    }
    job->state = JOB_OVER;
    disconnect(job);
    if (ended && job->events.ended) {
        job->events.ended(job->data);
    } else if (!ended && job->events.lost) {
        job->events.lost(job->data, job->why);
    }
}

static void note_loss(struct process_job *job, const char *why)
{
    job->lost = true;
    (void)snprintf(job->why, sizeof job->why, "%s", why);
}

/* Continues a supervisor that somebody has stopped: it must answer when it is to end ranks. */
static void continue_supervisor(const struct process_job *job)
{
    if (job->supervisor > 0) {
        (void)kill(job->supervisor, SIGCONT);
    }
}

static void send_end(struct process_job *job)
{
    channel_send(job->channel,
                 json_pack("{s:s, s:I}", "op", "end", "graceMs", (json_int_t)job->grace_ms));
    continue_supervisor(job);
}

static void send_start(struct process_job *job, const char *id, json_t *spec)
{
    channel_send(job->channel, json_pack("{s:s, s:s, s:O}", "op", "start", "id", id, "spec", spec));
}

static void ask_again(struct process_job *job)
{
    const char *id;
    json_t *spec;
    json_object_foreach (job->pending, id, spec) {
        send_start(job, id, spec);
    }
    if (job->state == JOB_ENDING) {
        send_end(job);
    }
}

/* The supervisor has reported all earlier attempts. If attempts were lost, it was started only to
 * report them. */
static void be_ready(struct process_job *job, const json_t *event)
{
    assert(job->channel && job->state != JOB_OVER);
    job->launches = 0;
    job->supervisor = (pid_t)doc_int(event, "pid", 0);
    if (job->lost) {
        channel_send(job->channel, json_pack("{s:s}", "op", "leave"));
        be_over(job);
        return;
    }
    if (job->connections > 1) {
        ask_again(job);
    }
    if (job->events.ready && !job->told_ready) {
        job->told_ready = true;
        job->events.ready(job->data);
    }
}

/* MUSTER_EEXIST: another supervisor holds the job; a controller that died had just started it. By
 * now it can be reached. */
static void start_failed(struct process_job *job, const json_t *event)
{
    (void)snprintf(job->why, sizeof job->why, "%s", doc_text(event, "why", ""));
    if (doc_int(event, "code", 0) == MUSTER_EEXIST) {
        on_gone(job, NULL);
    } else {
        be_over(job);
    }
}

/* If no end was asked for, the supervisor has ended a leased job: its runner is gone, and no
 * controller acted. */
static void ended(struct process_job *job)
{
    if (job->state != JOB_ENDING) {
        note_loss(job, "the job's supervisor ended it, as the command that ran it is gone");
    }
    be_over(job);
}

/* Whether the event is about an attempt that the present loss has ended: `lost` reports it. An
 * attempt of an earlier loss is reported as any other exit. */
static bool is_told_by_lost(const struct process_job *job, const json_t *event)
{
    return job->lost && strcmp(doc_text(event, "event", ""), "exited") == 0 &&
           strcmp(doc_text(event, "reason", ""), "Lost") == 0;
}

static void on_message(void *data, const json_t *event)
{
    struct process_job *job = data;
    const char *kind = doc_text(event, "event", "");
    if (strcmp(kind, "note") != 0) {
        json_object_del(job->pending, doc_text(event, "id", ""));
    }
    if (is_told_by_lost(job, event) || events_tell(&job->events, job->data, event)) {
        return;
    }
    if (strcmp(kind, "lost") == 0) {
        note_loss(job, doc_text(event, "why", ""));
    } else if (strcmp(kind, "ready") == 0) {
        be_ready(job, event);
    } else if (strcmp(kind, "ended") == 0) {
        ended(job);
    } else if (strcmp(kind, "failed") == 0) {
        start_failed(job, event);
    }
}

/* ---- Connecting ---- */

static int use_connection(struct process_job *job, int fd, struct muster_err *err)
{
    assert(!job->channel);
    int r = channel_open(job->loop, fd, &hooks, job, &job->channel, err);
    if (r == 0) {
        job->connections++;
        channel_send(job->channel, json_pack("{s:s}", "op", "hello"));
    }
    return r;
}

static int start_supervisor(struct process_job *job, struct muster_err *err)
{
    int fd = -1;
    assert(job->launches < LAUNCHES_MAX && !job->channel);
    job->launches++;
    int r = supervisor_start(job->loop, &job->options, &fd, err);
    return r < 0 ? r : use_connection(job, fd, err);
}

/* Connects to the supervisor that already runs, or starts a new one. */
static int reach_supervisor(struct process_job *job, struct muster_err *err)
{
    int fd = -1;
    return listener_connect(job->options.folder, &fd, NULL) == 0 ? use_connection(job, fd, err)
                                                                 : start_supervisor(job, err);
}

static void on_gone(void *data, const struct muster_err *why)
{
    struct process_job *job = data;
    struct muster_err err = MUSTER_ERR_INIT;
    (void)why;
    disconnect(job);
    if (job->state == JOB_OVER) {
        return;
    }
    if (job->launches >= LAUNCHES_MAX) {
        note_loss(job, job->why[0] ? job->why : "the job's supervisor is killed again and again");
        be_over(job);
    } else if (reach_supervisor(job, &err) < 0) {
        note_loss(job, err.text);
        be_over(job);
    }
}

static const struct channel_hooks hooks = {on_message, on_gone};

/* ---- Public ---- */

static char *copy(const char *text, bool *failed)
{
    char *own = text ? strdup(text) : NULL;
    *failed = *failed || (text && !own);
    return own;
}

static struct process_job *new_job(uv_loop_t *loop, const struct process_job_options *options)
{
    struct process_job *job = calloc(1, sizeof *job);
    if (!job) {
        return NULL;
    }
    bool failed = false;
    job->loop = loop;
    job->pending = json_object();
    job->options = (struct process_job_options){
        .folder = copy(options->folder, &failed),
        .program = copy(options->program ? options->program : "/proc/self/exe", &failed),
        .runner = copy(options->runner, &failed),
        .cgroup_root = copy(options->cgroup_root, &failed),
        .isolation = copy(options->isolation, &failed),
        .private_network = options->private_network,
    };
    if (failed || !job->pending) {
        free_job(job);
        return NULL;
    }
    return job;
}

int process_job_open(uv_loop_t *loop, const struct process_job_options *options,
                     const struct process_events *events, void *data, struct process_job **ret,
                     struct muster_err *err)
{
    int r = file_mkdir(options->folder, 0700, err);
    struct process_job *job = r < 0 ? NULL : new_job(loop, options);
    if (!job) {
        return r < 0 ? r : err_no_memory(err);
    }
    job->events = *events;
    job->data = data;
    r = reach_supervisor(job, err);
    if (r < 0) {
        job->closed = true;
        disconnect(job);
        free_job(job);
        return r;
    }
    *ret = job;
    return 0;
}

int process_job_start(struct process_job *job, const char *id, const json_t *spec,
                      struct muster_err *err)
{
    if (!record_id_valid(id)) {
        return muster_fail(err, MUSTER_EINVAL, "\"%s\" is not POD/CONTAINER/ATTEMPT", id);
    }
    if (!job->channel || job->lost || job->state != JOB_OPEN) {
        return muster_fail(err, MUSTER_EUNAVAIL, "the job's supervisor has ended or is ending");
    }
    muster_auto(doc) json_t *own = json_deep_copy(spec);
    if (!own || json_object_set(job->pending, id, own) != 0) {
        return err_no_memory(err);
    }
    send_start(job, id, own);
    return 0;
}

static int send_signal(struct process_job *job, const char *op, const char *id, int signal,
                       struct muster_err *err)
{
    if (!job->channel) {
        return muster_fail(err, MUSTER_EUNAVAIL, "the job's supervisor has ended");
    }
    channel_send(job->channel, json_pack("{s:s, s:s, s:i}", "op", op, "id", id, "signal", signal));
    continue_supervisor(job);
    return 0;
}

int process_job_signal(struct process_job *job, const char *id, int signal, struct muster_err *err)
{
    return send_signal(job, "signal", id, signal, err);
}

int process_job_explain(struct process_job *job, const char *id, int signal, struct muster_err *err)
{
    return send_signal(job, "explain", id, signal, err);
}

int process_job_stacks(struct process_job *job, int64_t ticket, int64_t sample_ms,
                       struct muster_err *err)
{
    if (!job->channel) {
        return muster_fail(err, MUSTER_EUNAVAIL, "the job's supervisor has ended");
    }
    channel_send(job->channel, json_pack("{s:s, s:I, s:I}", "op", "stacks", "ticket",
                                         (json_int_t)ticket, "sampleMs", (json_int_t)sample_ms));
    return 0;
}

int process_job_end(struct process_job *job, int64_t grace_ms, struct muster_err *err)
{
    assert(grace_ms >= 0);
    if (!job->channel || job->state == JOB_OVER) {
        return muster_fail(err, MUSTER_EUNAVAIL, "the job's supervisor has ended");
    }
    job->state = JOB_ENDING;
    job->grace_ms = grace_ms;
    send_end(job);
    return 0;
}

void process_job_close(struct process_job *job)
{
    if (job) {
        job->closed = true;
        disconnect(job);
        free_job(job);
    }
}
