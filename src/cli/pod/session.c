/* See session.h. */
#include "cli/pod/session.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "cli/command/cli.h"
#include "process/wire/frame.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <termios.h>

enum { BUFFER_BYTES = FRAME_HEAD_BYTES + FRAME_BYTES_MAX, RUNNING = -1, SIGNAL_BASE = 128 };

struct session {
    int socket_fd;
    int signal_fd;
    bool input; /* standard input is still read */
    bool tty;
    bool raw; /* the terminal's settings were changed */
    struct termios before;
    int code; /* RUNNING until the command ended */
    bool broken;
    size_t in_used, out_used, out_sent;
    char in[BUFFER_BYTES];
    char out[BUFFER_BYTES];
};

bool session_window(int *ret_rows, int *ret_columns)
{
    struct winsize window;
    if (ioctl(STDIN_FILENO, TIOCGWINSZ, &window) < 0 || window.ws_row == 0 || window.ws_col == 0) {
        return false;
    }
    *ret_rows = window.ws_row;
    *ret_columns = window.ws_col;
    return true;
}

/* ---- The terminal ---- */

static void enter_raw(struct session *s)
{
    if (s->tty && s->input && tcgetattr(STDIN_FILENO, &s->before) == 0) {
        struct termios raw = s->before;
        cfmakeraw(&raw);
        s->raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
    }
}

static void leave_raw(struct session *s)
{
    if (s->raw) {
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &s->before);
        s->raw = false;
    }
}

/* Catches signals: while the terminal is in raw mode, a signal must not end this process before the
 * mode is restored. */
static void catch_signals(struct session *s)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGWINCH);
    if (s->tty) {
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGHUP);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGQUIT);
    }
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* ---- To the command ---- */

static void queue_frame(struct session *s, enum frame_kind kind, size_t count)
{
    frame_head(kind, count, s->out);
    s->out_used = FRAME_HEAD_BYTES + count;
    s->out_sent = 0;
}

static void read_input(struct session *s)
{
    ssize_t n = read(STDIN_FILENO, s->out + FRAME_HEAD_BYTES, FRAME_BYTES_MAX);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    }
    s->input = n > 0;
    queue_frame(s, FRAME_STDIN, n > 0 ? (size_t)n : 0);
}

static void send_window(struct session *s)
{
    int rows, columns;
    if (s->tty && session_window(&rows, &columns)) {
        int n = snprintf(s->out + FRAME_HEAD_BYTES, FRAME_BYTES_MAX, "{\"rows\":%d,\"columns\":%d}",
                         rows, columns);
        queue_frame(s, FRAME_RESIZE, (size_t)n);
    }
}

static void take_signal(struct session *s)
{
    struct signalfd_siginfo info;
    if (read(s->signal_fd, &info, sizeof info) != (ssize_t)sizeof info) {
        return;
    }
    if (info.ssi_signo == SIGWINCH) {
        send_window(s);
    } else {
        s->code = SIGNAL_BASE + (int)info.ssi_signo;
    }
}

static void send_out(struct session *s)
{
    ssize_t n = send(s->socket_fd, s->out + s->out_sent, s->out_used - s->out_sent,
                     MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        s->input = false; /* what the command printed before can still be read */
        s->out_used = s->out_sent = 0;
    }
    s->out_sent += n > 0 ? (size_t)n : 0;
    if (s->out_sent == s->out_used) {
        s->out_used = s->out_sent = 0;
    }
}

/* ---- From the command ---- */

static void print(struct session *s, int fd, const char *bytes, size_t count)
{
    for (size_t done = 0; done < count;) {
        ssize_t n = write(fd, bytes + done, count - done);
        if (n < 0 && errno == EAGAIN) {
            struct pollfd room = {.fd = fd, .events = POLLOUT};
            (void)poll(&room, 1, -1);
        } else if (n < 0 && errno != EINTR) {
            s->code = SIGNAL_BASE + SIGPIPE; /* there is no reader: as in a pipeline */
            return;
        }
        done += n > 0 ? (size_t)n : 0;
    }
}

static void take_end(struct session *s, const struct frame *frame)
{
    muster_auto(doc) json_t *doc = NULL;
    leave_raw(s);
    if (doc_parse(frame->bytes, frame->count, &doc, NULL) < 0) {
        s->broken = true;
        return;
    }
    const char *message = doc_text(doc, "message", "");
    if (*message) {
        cli_say("%s", message);
    }
    s->code = (int)doc_int(doc, "code", 1) & 255;
}

static void take_frames(struct session *s)
{
    struct frame frame;
    long length = 0;
    while (s->code == RUNNING && (length = frame_read(s->in, s->in_used, &frame)) > 0) {
        if (frame.kind == FRAME_END) {
            take_end(s, &frame);
        } else if (frame.kind == FRAME_STDOUT || frame.kind == FRAME_STDERR) {
            print(s, frame.kind == FRAME_STDOUT ? STDOUT_FILENO : STDERR_FILENO, frame.bytes,
                  frame.count);
        }
        s->in_used -= (size_t)length;
        memmove(s->in, s->in + length, s->in_used);
    }
    s->broken = s->broken || length < 0;
}

static void read_socket(struct session *s)
{
    ssize_t n = recv(s->socket_fd, s->in + s->in_used, sizeof s->in - s->in_used, MSG_DONTWAIT);
    if (n > 0) {
        s->in_used += (size_t)n;
        take_frames(s);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        leave_raw(s);
        cli_say("the rank ended while the command ran");
        s->code = SESSION_LOST;
    }
}

static void turn(struct session *s)
{
    bool idle = s->out_used == 0;
    struct pollfd ready[] = {
        {.fd = s->socket_fd, .events = (short)(POLLIN | (idle ? 0 : POLLOUT))},
        {.fd = s->input && idle ? STDIN_FILENO : -1, .events = POLLIN},
        {.fd = idle ? s->signal_fd : -1, .events = POLLIN},
    };
    if (poll(ready, sizeof ready / sizeof ready[0], -1) < 0) {
        return;
    }
    if (ready[0].revents & POLLOUT) {
        send_out(s);
    }
    if (ready[0].revents & (POLLIN | POLLHUP | POLLERR)) {
        read_socket(s);
    }
    if (ready[2].revents) { /* first: a change of size comes before what is typed after it */
        take_signal(s);
    } else if (ready[1].revents) {
        read_input(s);
    }
}

int session_follow(int socket_fd, bool input, bool tty, struct muster_err *err)
{
    static struct session s; /* one per process */
    s = (struct session){.socket_fd = socket_fd, .input = input, .tty = tty, .code = RUNNING};
    catch_signals(&s);
    enter_raw(&s);
    while (s.code == RUNNING && !s.broken) {
        turn(&s);
    }
    leave_raw(&s);
    close(s.signal_fd);
    return s.broken ? muster_fail(err, MUSTER_EPROTO, "the answer of the rank's monitor is invalid")
                    : s.code;
}
