/* See session.h. */
#include "process/monitor/session.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "process/machine/descendants.h"
#include "process/monitor/execute.h"
#include "process/monitor/streams.h"
#include "process/wire/frame.h"
#include "process/wire/passing.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { NOT_SET_UP = 128, KILL_ROUND_MS = 10, WHOLE_FRAME = FRAME_HEAD_BYTES + FRAME_BYTES_MAX };

struct session {
    const struct session_plan *plan;
    json_t *open;
    const char **argv;
    int signal_fd;
    int failure_fd; /* gets the reason if the command could not be executed */
    struct streams streams;
    pid_t command;
    bool ended;
    bool client_gone;
    int status;
    size_t in_used; /* bytes in `in` */
    size_t in_sent; /* how many bytes of the first frame the command has taken */
    size_t out_used, out_sent;
    char in[WHOLE_FRAME];
    char out[WHOLE_FRAME];
};

/* ---- The end ---- */

static size_t end_frame(int code, int signal, const char *message, char *into)
{
    muster_auto(doc) json_t *doc =
        json_pack("{s:i, s:i, s:s}", "code", code, "signal", signal, "message", message);
    size_t count = doc ? json_dumpb(doc, into + FRAME_HEAD_BYTES, FRAME_BYTES_MAX, 0) : 0;
    frame_head(FRAME_END, count, into);
    return FRAME_HEAD_BYTES + count;
}

void session_refuse(int socket_fd, int code, const char *why)
{
    char bytes[FRAME_HEAD_BYTES + FRAME_BYTES_MAX];
    size_t count = end_frame(code, 0, why, bytes);
    (void)send(socket_fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Returns false when no descendant is left. */
static bool reap(struct session *s)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid > 0 && pid == s->command) {
            s->ended = true;
            s->status = status;
        }
        if (pid <= 0) {
            return pid == 0 || errno != ECHILD;
        }
    }
}

/* A process that was forked after this loop has looked is found in the next round. */
static void kill_all(struct session *s)
{
    while (reap(s) && (s->plan->own_proc || !s->ended)) {
        if (s->plan->own_proc) {
            (void)descendants_kill(getpid(), SIGKILL);
        } else {
            (void)kill(-s->command, SIGKILL);
        }
        (void)poll(NULL, 0, KILL_ROUND_MS);
    }
}

static void say_end(struct session *s)
{
    struct monitor_message failure;
    bool failed = read(s->failure_fd, &failure, sizeof failure) == (ssize_t)sizeof failure;
    int signal = WIFSIGNALED(s->status) ? WTERMSIG(s->status) : 0;
    int code = signal ? 128 + signal : WEXITSTATUS(s->status);
    s->out_used =
        end_frame(failed ? failure.code : code, signal, failed ? failure.text : "", s->out);
    s->out_sent = 0;
}

__attribute__((noreturn)) static void leave(struct session *s, int code, const char *why)
{
    session_refuse(s->plan->socket_fd, code, why);
    _exit(1);
}

/* ---- Starting the command ---- */

/* Returns NULL, or why the document is not valid. */
static const char *read_open(struct session *s)
{
    struct stat info;
    if (fstat(s->plan->open_fd, &info) < 0 || info.st_size > SESSION_OPEN_BYTES_MAX) {
        return "the command is too long";
    }
    muster_auto(free) char *text = malloc((size_t)info.st_size + 1);
    ssize_t n = text ? pread(s->plan->open_fd, text, (size_t)info.st_size, 0) : -1;
    if (n != info.st_size || doc_parse(text, (size_t)n, &s->open, NULL) < 0) {
        return "the command cannot be read";
    }
    const json_t *words = doc_at(s->open, "argv");
    size_t count = json_array_size(words);
    s->argv = calloc(count + 1, sizeof *s->argv);
    for (size_t i = 0; s->argv && i < count; i++) {
        s->argv[i] = json_string_value(json_array_get(words, i));
        if (!s->argv[i]) {
            return "a word of the command is no text";
        }
    }
    return s->argv && count > 0 ? NULL : "a command is needed";
}

static bool start(struct session *s)
{
    int streams[3] = {-1, -1, -1};
    int failure[2];
    if (!streams_open(&s->streams, s->plan->spec, s->open, streams) ||
        pipe2(failure, O_CLOEXEC | O_NONBLOCK) < 0) {
        return false;
    }
    s->failure_fd = failure[0];
    const struct execute_inside how = {
        .spec = s->plan->spec,
        .mark = s->plan->mark,
        .argv = s->argv,
        .term = s->streams.tty ? doc_text(s->open, "term", "xterm") : NULL,
        .streams = {streams[0], streams[1], streams[2]},
        .entrances = s->plan->entrances,
        .failure_fd = failure[1],
    };
    s->command = _Fork(); /* as in monitor.c */
    if (s->command == 0) {
        execute_inside(&how);
    }
    passing_close(streams, s->streams.tty ? 1 : 3);
    close(failure[1]);
    return s->command > 0;
}

/* ---- Relaying ---- */

/* Gives the frame's bytes to the command; returns true when all are taken, or the command has
 * closed its input. */
static bool feed(struct session *s, const struct frame *frame)
{
    if (frame->count == 0) {
        streams_close_input(&s->streams);
    }
    while (s->streams.input_fd >= 0 && s->in_sent < frame->count) {
        ssize_t n =
            write(s->streams.input_fd, frame->bytes + s->in_sent, frame->count - s->in_sent);
        if (n < 0 && errno == EAGAIN) {
            return false;
        }
        if (n < 0 && errno != EINTR) {
            streams_close_input(&s->streams);
        }
        s->in_sent += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool take_frame(struct session *s, const struct frame *frame)
{
    if (frame->kind == FRAME_RESIZE) {
        muster_auto(doc) json_t *size = NULL;
        (void)doc_parse(frame->bytes, frame->count, &size, NULL);
        streams_resize(&s->streams, size);
    }
    return frame->kind != FRAME_STDIN || feed(s, frame);
}

/* Takes frames until one is incomplete or the command takes no more bytes. */
static void take_frames(struct session *s)
{
    struct frame frame;
    long length;
    while ((length = frame_read(s->in, s->in_used, &frame)) > 0 && take_frame(s, &frame)) {
        s->in_used -= (size_t)length;
        s->in_sent = 0;
        memmove(s->in, s->in + length, s->in_used);
    }
    s->client_gone = s->client_gone || length < 0;
}

static void read_client(struct session *s)
{
    ssize_t n =
        recv(s->plan->socket_fd, s->in + s->in_used, sizeof s->in - s->in_used, MSG_DONTWAIT);
    if (n > 0) {
        s->in_used += (size_t)n;
        take_frames(s);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        s->client_gone = true;
    }
}

static void read_command(struct session *s, int which)
{
    assert(s->out_used == 0);
    ssize_t n = read(s->streams.output_fd[which], s->out + FRAME_HEAD_BYTES, FRAME_BYTES_MAX);
    if (n > 0) {
        frame_head(which == 0 ? FRAME_STDOUT : FRAME_STDERR, (size_t)n, s->out);
        s->out_used = FRAME_HEAD_BYTES + (size_t)n;
        s->out_sent = 0;
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        /* read(2) fails with EIO when no process has the terminal open any more. */
        passing_close(&s->streams.output_fd[which], 1);
        s->streams.output_fd[which] = -1;
    }
}

static void write_client(struct session *s)
{
    ssize_t n = send(s->plan->socket_fd, s->out + s->out_sent, s->out_used - s->out_sent,
                     MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        s->client_gone = true;
    }
    s->out_sent += n > 0 ? (size_t)n : 0;
    if (s->out_sent == s->out_used) {
        s->out_used = s->out_sent = 0;
    }
}

static bool input_waits(const struct session *s)
{
    struct frame frame;
    return s->streams.input_fd >= 0 && frame_read(s->in, s->in_used, &frame) > 0;
}

/* POLLRDHUP is always requested: the end of the client is noticed even while its frames are not
 * read. */
static void turn(struct session *s)
{
    enum { CLIENT, CHILDREN, INPUT, OUTPUT };
    bool room = s->in_used < sizeof s->in && !input_waits(s);
    struct pollfd ready[] = {
        {.fd = s->plan->socket_fd,
         .events = (short)(POLLRDHUP | (room ? POLLIN : 0) | (s->out_used ? POLLOUT : 0))},
        {.fd = s->ended ? -1 : s->signal_fd, .events = POLLIN},
        {.fd = input_waits(s) ? s->streams.input_fd : -1, .events = POLLOUT},
        {.fd = s->out_used ? -1 : s->streams.output_fd[0], .events = POLLIN},
        {.fd = s->out_used ? -1 : s->streams.output_fd[1], .events = POLLIN},
    };
    if (poll(ready, sizeof ready / sizeof ready[0], -1) < 0) {
        return;
    }
    struct signalfd_siginfo info;
    if (ready[CHILDREN].revents && read(s->signal_fd, &info, sizeof info) > 0) {
        (void)reap(s);
    }
    if (ready[CLIENT].revents & (POLLRDHUP | POLLHUP | POLLERR)) {
        s->client_gone = true;
    } else if (ready[CLIENT].revents & POLLIN) {
        read_client(s);
    }
    if (ready[CLIENT].revents & POLLOUT) {
        write_client(s);
    }
    if (ready[INPUT].revents) {
        take_frames(s);
    }
    for (int i = 0; i < STREAMS_OUTPUTS; i++) {
        if (ready[OUTPUT + i].revents && s->out_used == 0) {
            read_command(s, i);
        }
    }
}

static void relay(struct session *s)
{
    while (!s->ended && !s->client_gone) {
        turn(s);
    }
    kill_all(s);
    while (!s->client_gone &&
           (s->out_used > 0 || s->streams.output_fd[0] >= 0 || s->streams.output_fd[1] >= 0)) {
        turn(s);
    }
    if (!s->client_gone) {
        say_end(s);
    }
    while (!s->client_gone && s->out_used > 0) {
        turn(s);
    }
}

/* ---- */

static void settle(struct session *s)
{
    const int keep[] = {s->plan->socket_fd, s->plan->open_fd, s->plan->entrances[0],
                        s->plan->entrances[1]};
    sigset_t children;
    (void)setsid();
    (void)prctl(PR_SET_NAME, "muster-exec");
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    passing_keep_only(keep, sizeof keep / sizeof keep[0]);
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    (void)sigprocmask(SIG_SETMASK, &children, NULL);
    s->signal_fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
}

void session_run(const struct session_plan *plan)
{
    static struct session s; /* one per process */
    s = (struct session){
        .plan = plan, .streams = {.input_fd = -1, .output_fd = {-1, -1}}, .failure_fd = -1};
    settle(&s);
    const char *why = read_open(&s);
    if (why) {
        leave(&s, NOT_SET_UP, why);
    }
    if (!start(&s)) {
        leave(&s, NOT_SET_UP, strerror(errno));
    }
    relay(&s);
    _exit(0);
}
