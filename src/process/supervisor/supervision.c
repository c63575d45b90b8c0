/* See supervision.h. */
#include "process/supervisor/supervision.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "process/supervisor/attempt.h"
#include "process/supervisor/clients.h"
#include "process/supervisor/inspect.h"
#include "process/supervisor/machine_notes.h"
#include "process/supervisor/stalls.h"
#include "process/wire/identity.h"
#include "process/wire/listener.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum {
    ATTEMPTS_MAX = 1024,   /* at the same time */
    RUNNER_GONE_MS = 700,  /* a controller has this long to end a leased job itself */
    RUNNER_GRACE_MS = 200, /* between SIGTERM and SIGKILL in that case: in all under a second */
    ALONE_MS = 10000, /* its wait if nothing runs and no controller is connected: the records are on
                         disk */
    GRACE_MS_MAX = 86400000,
};

struct supervision {
    const struct supervision_options *options;
    struct attempt_place place;
    struct inspect inspect;
    struct stalls stalls;
    struct listener *listener;
    struct handover *handover;
    struct clients clients;
    const char *lost_why; /* not reported yet */
    struct attempt *attempts[ATTEMPTS_MAX];
    size_t count;
    uv_timer_t timer; /* for the grace of the end, for a gone runner, and while it is alone */
    uv_poll_t runner_poll;
    uv_poll_t init_poll;
    int runner_fd;
    bool watches_runner;
    bool watches_init;
    bool runner_gone;
    bool acted; /* a controller has sent a request since the runner ended */
    bool ending;
    bool leaving;
};

static void update(struct supervision *s);

/* ---- The end ---- */

static void signal_all(struct supervision *s, int number)
{
    for (size_t i = 0; i < s->count; i++) {
        attempt_signal(s->attempts[i], number);
    }
}

static void on_grace_over(uv_timer_t *timer)
{
    signal_all(timer->data, SIGKILL);
}

static void end(struct supervision *s, int64_t grace_ms)
{
    s->ending = true;
    grace_ms = grace_ms < 0 ? 0 : grace_ms;
    grace_ms = grace_ms > GRACE_MS_MAX ? GRACE_MS_MAX : grace_ms;
    signal_all(s, grace_ms > 0 ? SIGTERM : SIGKILL);
    uv_timer_start(&s->timer, on_grace_over, (uint64_t)grace_ms, 0);
    update(s);
}

static void close_watch(uv_poll_t *poll, bool *watches)
{
    if (*watches) {
        *watches = false;
        uv_close((uv_handle_t *)poll, NULL);
    }
}

static void leave(struct supervision *s)
{
    assert(!s->leaving && s->count == 0);
    s->leaving = true;
    close_watch(&s->init_poll, &s->watches_init);
    isolation_leave(s->options->isolation); /* after `ended` no process may be left */
    listener_stop(s->listener);
    handover_close(s->handover);
    clients_done(&s->clients);
    if (s->ending) {
        muster_auto(doc) json_t *ended = json_pack("{s:s}", "event", "ended");
        listener_tell_all(s->listener, ended);
    }
    listener_close(s->listener);
    close_watch(&s->runner_poll, &s->watches_runner);
    uv_close((uv_handle_t *)&s->timer, NULL);
    stalls_stop(&s->stalls);
}

static void on_alone(uv_timer_t *timer)
{
    leave(timer->data);
}

static void on_runner_late(uv_timer_t *timer)
{
    struct supervision *s = timer->data;
    if (!s->acted) {
        end(s, RUNNER_GRACE_MS);
    }
}

static void check_invariants(const struct supervision *s)
{
    assert(s->count <= ATTEMPTS_MAX);
    assert(!s->leaving || s->count == 0);
    assert(!s->runner_gone || !s->watches_runner);
}

/* Called after each change: ends the supervisor if it may end, and starts the timer when it is
 * alone. */
static void update(struct supervision *s)
{
    check_invariants(s);
    if (!s->leaving) {
        stalls_update(&s->stalls);
    }
    if (s->leaving || s->count > 0) {
        return;
    }
    if (s->ending) {
        leave(s);
    } else if (s->runner_gone && !s->acted) {
        return; /* the runner's timer runs */
    } else if (listener_client_count(s->listener) == 0) {
        uv_timer_start(&s->timer, on_alone, ALONE_MS, 0);
    } else {
        uv_timer_stop(&s->timer);
    }
}

/* ---- Attempts ---- */

static void on_event(void *data, const json_t *event)
{
    struct supervision *s = data;
    listener_tell_all(s->listener, event);
}

static void on_inspected(void *data, const json_t *event)
{
    struct supervision *s = data;
    if (!s->leaving) {
        listener_tell_all(s->listener, event);
    }
}

static void on_over(void *data, struct attempt *attempt)
{
    struct supervision *s = data;
    size_t i = 0;
    while (i < s->count && s->attempts[i] != attempt) {
        i++;
    }
    assert(i < s->count && "it was started");
    s->attempts[i] = s->attempts[--s->count];
    attempt_free(attempt);
    update(s);
}

static void answer_record(struct listener_client *client, const char *id, const char *folder)
{
    json_t *started = NULL;
    json_t *ended = NULL;
    attempt_events(id, folder, &started, &ended);
    if (started) {
        listener_answer(client, started);
    }
    if (ended) {
        listener_answer(client, ended);
    }
}

static void refuse(struct listener_client *client, const char *id, const char *why)
{
    listener_answer(client, json_pack("{s:s, s:s, s:i, s:s, s:s}", "event", "start_failed", "id",
                                      id, "code", 128, "reason", "StartError", "message", why));
}

static void do_start(struct supervision *s, struct listener_client *client, const json_t *message)
{
    const char *id = doc_text(message, "id", "");
    const json_t *spec = doc_at(message, "spec");
    struct muster_err err = MUSTER_ERR_INIT;
    if (!record_id_valid(id) || !spec) {
        refuse(client, id, "an id POD/CONTAINER/ATTEMPT and a spec are needed");
        return;
    }
    bool going = s->ending || s->leaving;
    if (going || s->count == ATTEMPTS_MAX) {
        refuse(client, id, going ? "the job is being ended" : "too many processes in the job");
        return;
    }
    struct attempt *attempt = NULL;
    int r = attempt_start(&s->place, id, spec, &attempt, &err);
    if (r == 0 && attempt) {
        s->attempts[s->count++] = attempt;
        stalls_update(&s->stalls);
        uv_timer_stop(&s->timer);
        clients_began(&s->clients, attempt);
    } else if (r == 0) {
        update(s);
    } else if (r == MUSTER_EEXIST) {
        muster_auto(free) char *folder = record_folder(s->options->job_folder, id);
        answer_record(client, id, folder);
    } else {
        refuse(client, id, err.text);
    }
}

/* The id "POD/" means all attempts of the pod. */
static void do_signal(struct supervision *s, const json_t *message)
{
    const char *id = doc_text(message, "id", "");
    int64_t number = doc_int(message, "signal", 0);
    for (size_t i = 0; i < s->count && *id && number > 0 && number < NSIG; i++) {
        if (attempt_fits(s->attempts[i], id)) {
            attempt_signal(s->attempts[i], (int)number);
        }
    }
}

static void on_handover(void *data, const struct handover_packet *packet, const int *fds,
                        size_t count)
{
    struct supervision *s = data;
    clients_take(&s->clients, s->attempts, s->count, packet, fds, count);
}

/* ---- Controllers ---- */

static int tell_record(void *data, const char *id, const char *folder)
{
    answer_record(data, id, folder);
    return 0;
}

static void do_hello(struct supervision *s, struct listener_client *client)
{
    const struct supervision_options *o = s->options;
    if (s->lost_why) {
        listener_answer(client, json_pack("{s:s, s:s}", "event", "lost", "why", s->lost_why));
        s->lost_why = NULL; /* only once: a client that comes later finds the loss in the records */
    }
    (void)record_each(o->job_folder, tell_record, client, NULL);
    machine_notes_tell(o->isolation, client);
    listener_answer(client, json_pack("{s:s, s:i, s:s}", "event", "ready", "pid", (int)getpid(),
                                      "isolation", isolation_name(o->isolation->mode)));
}

static void on_message(void *data, struct listener_client *client, const json_t *message)
{
    struct supervision *s = data;
    const char *op = doc_text(message, "op", "");
    if (strcmp(op, "hello") == 0) {
        do_hello(s, client);
        return;
    }
    s->acted = true;
    if (strcmp(op, "start") == 0) {
        do_start(s, client, message);
    } else if (strcmp(op, "signal") == 0) {
        do_signal(s, message);
    } else if (strcmp(op, "stacks") == 0) {
        inspect_stacks(&s->inspect, message);
    } else if (strcmp(op, "explain") == 0) {
        inspect_explain(&s->inspect, message);
    } else if (strcmp(op, "end") == 0) {
        end(s, doc_int(message, "graceMs", 0));
    } else if (strcmp(op, "leave") == 0 && s->count == 0 && !s->leaving) {
        leave(s);
    }
}

/* If the runner of a leased job is gone, the job must not be left without a controller either. */
static void on_changed(void *data)
{
    struct supervision *s = data;
    if (s->runner_gone && !s->ending && listener_client_count(s->listener) == 0) {
        s->acted = false;
        uv_timer_start(&s->timer, on_runner_late, RUNNER_GONE_MS, 0);
    }
    update(s);
}

/* ---- Other events ---- */

static void on_runner(uv_poll_t *poll, int status, int events)
{
    struct supervision *s = poll->data;
    (void)status;
    (void)events;
    close_watch(&s->runner_poll, &s->watches_runner);
    s->runner_gone = true;
    s->acted = false;
    if (!s->ending) {
        uv_timer_start(&s->timer, on_runner_late, RUNNER_GONE_MS, 0);
    }
}

/* The namespace is dead: its processes are reported as ended by their monitors' sockets, and no
 * other process can be started in it. */
static void on_init(uv_poll_t *poll, int status, int events)
{
    struct supervision *s = poll->data;
    (void)status;
    (void)events;
    close_watch(&s->init_poll, &s->watches_init);
    if (!s->ending) {
        end(s, 0);
    }
}

static void watch(struct supervision *s, uv_loop_t *loop, int fd, uv_poll_t *poll, uv_poll_cb hook,
                  bool *ret_watches)
{
    if (fd >= 0 && uv_poll_init(loop, poll, fd) == 0) {
        poll->data = s;
        *ret_watches = true;
        (void)uv_poll_start(poll, UV_READABLE, hook);
    }
}

static void watch_runner(struct supervision *s, uv_loop_t *loop)
{
    if (!s->options->runner) {
        return;
    }
    if (identity_open(s->options->runner, &s->runner_fd, NULL) < 0) {
        s->runner_gone = true; /* it ended before this supervisor could watch it */
        uv_timer_start(&s->timer, on_runner_late, RUNNER_GONE_MS, 0);
        return;
    }
    watch(s, loop, s->runner_fd, &s->runner_poll, on_runner, &s->watches_runner);
}

static void start(struct supervision *s, uv_loop_t *loop, const struct supervision_options *options)
{
    *s = (struct supervision){.options = options,
                              .runner_fd = -1,
                              .clients = {.stdin_fd = -1},
                              .lost_why = options->lost_why};
    s->place = (struct attempt_place){
        .loop = loop,
        .job_folder = options->job_folder,
        .staging = options->staging,
        .namespaces = options->isolation->mode != ISOLATION_SUBREAPER,
        .lock_fd = options->lock_fd,
        .cgroups = options->cgroups,
        .on_event = on_event,
        .on_over = on_over,
        .data = s,
    };
    s->inspect = (struct inspect){loop, s->attempts, &s->count, on_inspected, s};
    stalls_start(&s->stalls, &s->inspect);
    uv_timer_init(loop, &s->timer);
    s->timer.data = s;
}

int supervision_run(uv_loop_t *loop, const struct supervision_options *options,
                    struct muster_err *err)
{
    static const struct listener_hooks hooks = {on_message, on_changed};
    static struct supervision s; /* one per process */
    start(&s, loop, options);
    int r = listener_open(loop, options->job_folder, &hooks, &s, &s.listener, err);
    r = r < 0 ? r : handover_open(loop, options->job_folder, on_handover, &s, &s.handover, err);
    if (r < 0) {
        return r;
    }
    if (options->connection_fd >= 0) {
        (void)listener_add(s.listener, options->connection_fd, NULL);
    }
    watch_runner(&s, loop);
    watch(&s, loop, options->isolation->lifeline_fd, &s.init_poll, on_init, &s.watches_init);
    update(&s);
    (void)uv_run(loop, UV_RUN_DEFAULT);
    if (s.runner_fd >= 0) {
        close(s.runner_fd);
    }
    return 0;
}
