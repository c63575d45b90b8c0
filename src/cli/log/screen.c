/* See screen.h. */
#include "cli/log/screen.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    OUT_BYTES_MAX = 64 << 20,
    OWED_BYTES_MAX = 32 << 20,
    HURRIED_BYTES_MAX = 1 << 20,
    ROOM_MS = 200,
    NOTE_BYTES = 2048,
};

static bool same_file(int a, int b)
{
    struct stat one, other;
    return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

void screen_init(struct screen *screen, int fd)
{
    const char *term = getenv("TERM");
    const char *no_colour = getenv("NO_COLOR");
    bool terminal = isatty(fd) && term && strcmp(term, "dumb") != 0;
    *screen = (struct screen){.fd = fd, .with_notes = same_file(fd, STDERR_FILENO)};
    buf_init(&screen->out, OUT_BYTES_MAX);
    log_view_init(&screen->view, &screen->out, terminal, terminal && !(no_colour && *no_colour));
    screen_measure(screen);
}

void screen_measure(struct screen *screen)
{
    struct winsize size;
    if (screen->view.terminal && ioctl(screen->fd, TIOCGWINSZ, &size) == 0) {
        log_view_resize(&screen->view, size.ws_col, size.ws_row);
    }
}

void screen_done(struct screen *screen)
{
    log_view_done(&screen->view);
    buf_done(&screen->out);
}

/* Waits for room in the output. False: there is no room yet, or a signal came. A reader that reads
 * nothing (a pager) must not block Ctrl-C, so the wait is short and the loop goes on; but if too
 * many bytes are unwritten, the wait has no limit, so that memory stays bounded. */
static bool wait_for_room(const struct screen *screen, size_t waiting)
{
    struct pollfd out = {.fd = screen->fd, .events = POLLOUT};
    int limit_ms = screen->hurried ? 0 : waiting > OWED_BYTES_MAX ? -1 : ROOM_MS;
    return poll(&out, 1, limit_ms) > 0;
}

/* Writes a part: a pipe with room takes PIPE_BUF bytes without blocking. */
static bool write_some(struct screen *screen, const char *at, size_t left, size_t *ret_wrote)
{
    ssize_t wrote = write(screen->fd, at, left < PIPE_BUF ? left : PIPE_BUF);
    if (wrote < 0 && errno != EAGAIN && errno != EINTR) {
        screen->write_errno = errno;
    }
    *ret_wrote = wrote > 0 ? (size_t)wrote : 0;
    return wrote > 0;
}

void screen_flush(struct screen *screen)
{
    size_t done = 0;
    size_t wrote = 0;
    while (done < screen->out.used && !screen->write_errno &&
           wait_for_room(screen, screen->out.used - done) &&
           write_some(screen, screen->out.data + done, screen->out.used - done, &wrote)) {
        done += wrote;
    }
    bool lost =
        screen->write_errno || (screen->hurried && screen->out.used - done > HURRIED_BYTES_MAX);
    buf_consume(&screen->out, lost ? screen->out.used : done);
}

void screen_drain(struct screen *screen)
{
    struct pollfd out = {.fd = screen->fd, .events = POLLOUT};
    do {
        screen_flush(screen);
    } while (screen->out.used > 0 && !screen->hurried && poll(&out, 1, -1) > 0);
}

void screen_note(struct screen *screen, const char *format, ...)
{
    char text[NOTE_BYTES];
    va_list args;
    va_start(args, format);
    size_t used = (size_t)snprintf(text, sizeof text, "muster: ");
    vsnprintf(text + used, sizeof text - used, format, args);
    va_end(args);
    if (screen->view.terminal) {
        log_view_note(&screen->view, text);
        screen_flush(screen);
    } else {
        if (screen->with_notes) {
            log_view_break(&screen->view);
            screen_flush(screen);
        }
        fprintf(stderr, "%s\n", text);
    }
}
