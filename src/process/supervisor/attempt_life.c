/* The life of an attempt: it starts a monitor, takes what that reports, pumps the log, and is over
 * when the monitor is gone. See attempt.h. */
#include "process/supervisor/attempt_state.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/system/error_text.h"
#include "base/time/clock.h"
#include "process/monitor/environment.h"
#include "process/monitor/hosts.h"
#include "process/wire/passing.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    PIPE_BYTES = 1 << 20,  /* for fewer wake-ups by a busy log; less at the user's limit */
    PUMP_BYTES = 4 << 20,  /* of one log in one turn */
    DRAIN_ROUNDS_MAX = 64, /* if a process outside the container still holds the pipe */
};

/* ---- How it ended ---- */

void attempt_drain(struct attempt *attempt)
{
    for (int i = 0; i < DRAIN_ROUNDS_MAX; i++) {
        if (log_writer_pump(&attempt->log, attempt->log_fd, PUMP_BYTES, clock_unix_ms()) !=
            LOG_PUMP_MOVED) {
            return;
        }
    }
}

/* Called when no process of it runs any more. */
static void be_over(struct attempt *attempt)
{
    uv_poll_stop(&attempt->log_poll);
    attempt_drain(attempt);
    attempt_record_end(attempt);
    attempt->place->on_over(attempt->place->data, attempt);
}

/* If the monitor ended without a message, it was killed, and the container's processes with it. */
static void lose_monitor(struct attempt *attempt)
{
    assert(attempt->open_handles == 2 && "it was started whole");
    uv_poll_stop(&attempt->control_poll);
    if (attempt->ended) {
        be_over(attempt);
        return;
    }
    attempt->end = (struct monitor_message){.code = 128 + SIGKILL, .signal = SIGKILL};
    (void)snprintf(attempt->end.text, sizeof attempt->end.text,
                   "the container's monitor was killed");
    attempt_hunt(attempt, be_over);
}

/* ---- Messages of the monitor ---- */

/* The kernel translates the sender's pid into the supervisor's namespace. */
static void note_identity(struct attempt *attempt, struct msghdr *header)
{
    struct cmsghdr *c = CMSG_FIRSTHDR(header);
    struct ucred sender;
    if (c && c->cmsg_type == SCM_CREDENTIALS) {
        memcpy(&sender, CMSG_DATA(c), sizeof sender);
        (void)identity_of(sender.pid, attempt->identity);
    }
}

static void be_running(struct attempt *attempt)
{
    attempt_record_running(attempt);
    if (attempt->spec.contained) {
        attempt->container = container_watch_start(attempt->place->loop, attempt->monitor);
    }
}

static void take_message(struct attempt *attempt, const struct monitor_message *message)
{
    switch (message->kind) {
    case MONITOR_HELLO: return;
    case MONITOR_RUNNING: be_running(attempt); return;
    case MONITOR_NOTE: attempt_note(attempt, message->text); return;
    case MONITOR_FAILED:
    case MONITOR_EXITED:
        attempt->failed = message->kind == MONITOR_FAILED;
        attempt->ended = true;
        attempt->end = *message;
        attempt->end.text[sizeof message->text - 1] = '\0';
        return;
    }
    assert(!"unreachable");
}

/* Returns 1: a message was read, 0: there is none now, -1: the monitor is gone. */
static int read_message(struct attempt *attempt)
{
    struct monitor_message message;
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct ucred))];
    struct iovec bytes = {&message, sizeof message};
    struct msghdr header = {.msg_iov = &bytes,
                            .msg_iovlen = 1,
                            .msg_control = control,
                            .msg_controllen = sizeof control};
    ssize_t n = recvmsg(attempt->control_fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    if (n != (ssize_t)sizeof message) {
        return -1;
    }
    if (message.kind == MONITOR_HELLO) {
        note_identity(attempt, &header);
    }
    take_message(attempt, &message);
    return 1;
}

static void on_control(uv_poll_t *poll, int status, int events)
{
    struct attempt *attempt = poll->data;
    (void)status;
    (void)events;
    int r;
    while ((r = read_message(attempt)) > 0) {
    }
    if (r < 0) {
        lose_monitor(attempt);
    }
}

static void on_log(uv_poll_t *poll, int status, int events)
{
    struct attempt *attempt = poll->data;
    (void)status;
    (void)events;
    if (log_writer_pump(&attempt->log, attempt->log_fd, PUMP_BYTES, clock_unix_ms()) ==
        LOG_PUMP_CLOSED) {
        uv_poll_stop(poll); /* a container may close its output and continue */
    }
}

/* ---- Starting ---- */

char *attempt_mark(const char *attempt_folder)
{
    char *mark = NULL;
    return asprintf(&mark, "MUSTER_ATTEMPT=%s", attempt_folder) < 0 ? NULL : mark;
}

static struct attempt *new_attempt(const struct attempt_place *place, const char *id)
{
    struct attempt *attempt = calloc(1, sizeof *attempt);
    if (!attempt) {
        return NULL;
    }
    attempt->place = place;
    attempt->log_fd = attempt->control_fd = -1;
    attempt->id = strdup(id);
    attempt->folder = record_folder(place->job_folder, id);
    attempt->mark = attempt->folder ? attempt_mark(attempt->folder) : NULL;
    if (!attempt->id || !attempt->folder || !attempt->mark) {
        attempt_free(attempt);
        return NULL;
    }
    return attempt;
}

static int open_log(struct attempt *attempt, int *ret_write_fd, struct muster_err *err)
{
    int ends[2];
    int r = log_writer_init(&attempt->log, attempt->folder, attempt->spec.log_segment_bytes,
                            attempt->spec.log_segments, clock_unix_ms(), err);
    if (r < 0) {
        return r;
    }
    attempt->has_log = true;
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return muster_fail(err, MUSTER_EOS, "cannot make a pipe: %s", error_text(errno));
    }
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    (void)fcntl(ends[0], F_SETPIPE_SZ, PIPE_BYTES);
    attempt->log_fd = ends[0];
    *ret_write_fd = ends[1];
    return 0;
}

static int watch(struct attempt *attempt, uv_poll_t *poll, int fd, uv_poll_cb on_ready,
                 struct muster_err *err)
{
    int r = uv_poll_init(attempt->place->loop, poll, fd);
    if (r == 0) {
        poll->data = attempt;
        attempt->open_handles++;
        r = uv_poll_start(poll, UV_READABLE, on_ready);
    }
    return r < 0 ? muster_fail(err, MUSTER_EOS, "cannot watch a descriptor: %s", uv_strerror(r))
                 : 0;
}

static bool covers_hosts(const struct process_spec *spec)
{
    for (size_t i = 0; i < spec->mount_count; i++) {
        const char *path = spec->mounts[i].mount_path;
        if (strcmp(path, "/etc") == 0 || strcmp(path, "/etc/hosts") == 0) {
            return true;
        }
    }
    return false;
}

/* Mounts the pod's hosts file, unless the user mounts a file of their own there. */
static void give_hosts(struct attempt *attempt)
{
    struct muster_err err = MUSTER_ERR_INIT;
    if (!attempt->place->namespaces || covers_hosts(&attempt->spec)) {
        return;
    }
    if (hosts_write(attempt->folder, attempt->spec.pod_name, attempt->spec.services,
                    &attempt->hosts, &err) < 0) {
        attempt_note(attempt, err.text);
        return;
    }
    const struct process_mount mount = {
        .name = "hosts", .host_path = attempt->hosts, .mount_path = "/etc/hosts", .sub_path = ""};
    process_spec_mount(&attempt->spec, &mount);
}

static int start_monitor(struct attempt *attempt, struct muster_err *err)
{
    muster_auto(close) int log_write_fd = -1;
    int r = open_log(attempt, &log_write_fd, err);
    if (r < 0) {
        return r;
    }
    attempt_limits_make(attempt);
    give_hosts(attempt);
    attempt->machine_kills = cgroup_machine_kills();
    struct monitor_plan plan = {.spec = &attempt->spec,
                                .staging = attempt->place->staging,
                                .mark = attempt->mark,
                                .namespaces = attempt->place->namespaces,
                                .log_fd = log_write_fd,
                                .keep_fd = attempt->place->lock_fd};
    r = attempt_limits_open(attempt, plan.entrances, err);
    if (r < 0) {
        return r;
    }
    r = monitor_start(&plan, &attempt->monitor, &attempt->control_fd, err);
    passing_close(plan.entrances, CGROUP_KINDS);
    r = r < 0 ? r : watch(attempt, &attempt->log_poll, attempt->log_fd, on_log, err);
    return r < 0 ? r : watch(attempt, &attempt->control_poll, attempt->control_fd, on_control, err);
}

int attempt_start(const struct attempt_place *place, const char *id, const json_t *spec,
                  struct attempt **ret, struct muster_err *err)
{
    assert(err && record_id_valid(id));
    struct attempt *attempt = new_attempt(place, id);
    if (!attempt) {
        return err_no_memory(err);
    }
    int r = attempt_record_start(attempt, spec, err);
    bool recorded = r == 0;
    r = r < 0 ? r : process_spec_read((json_t *)spec, &attempt->spec, err);
    r = r < 0 ? r : environment_load(&attempt->spec, err);
    stall_init(&attempt->stall, attempt->spec.stall_ms);
    r = r < 0 ? r : start_monitor(attempt, err);
    if (r < 0) {
        if (recorded) {
            attempt->failed = true;
            attempt->end.code = 128;
            (void)snprintf(attempt->end.text, sizeof attempt->end.text, "%s", err->text);
            attempt_record_end(attempt);
        }
        attempt_free(attempt);
        *ret = NULL;
        return recorded ? 0 : r;
    }
    *ret = attempt;
    return 0;
}

const char *attempt_id(const struct attempt *attempt)
{
    return attempt->id;
}

/* ---- Freeing ---- */

static void free_now(struct attempt *attempt)
{
    if (attempt->log_fd >= 0) {
        close(attempt->log_fd);
    }
    if (attempt->control_fd >= 0) {
        close(attempt->control_fd);
    }
    if (attempt->has_log) {
        log_writer_done(&attempt->log);
    }
    cgroup_done(&attempt->cgroup);
    cgroup_done(&attempt->exec_cgroup);
    container_watch_stop(attempt->container);
    process_spec_done(&attempt->spec);
    json_decref(attempt->started);
    free(attempt->hosts);
    free(attempt->mark);
    free(attempt->folder);
    free(attempt->id);
    free(attempt);
}

static void on_closed(uv_handle_t *handle)
{
    struct attempt *attempt = handle->data;
    assert(attempt->open_handles > 0);
    if (--attempt->open_handles == 0) {
        free_now(attempt);
    }
}

void attempt_free(struct attempt *attempt)
{
    if (!attempt) {
        return;
    }
    uv_handle_t *handles[] = {(uv_handle_t *)&attempt->log_poll, /* in the order of opening */
                              (uv_handle_t *)&attempt->control_poll, (uv_handle_t *)&attempt->hunt};
    if (attempt->open_handles == 0) {
        free_now(attempt);
        return;
    }
    for (int i = 0, count = attempt->open_handles; i < count; i++) {
        uv_close(handles[i], on_closed);
    }
}
