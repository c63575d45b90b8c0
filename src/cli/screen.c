/* See screen.h. */
#include "cli/screen.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { OUT_BYTES_MAX = 64 << 20, NOTE_BYTES = 2048 };

void screen_init(struct screen *screen, int fd)
{
    struct winsize size = {0};
    const char *term = getenv("TERM");
    const char *no_colour = getenv("NO_COLOR");
    bool terminal = isatty(fd) && term && strcmp(term, "dumb") != 0;
    if (terminal) {
        ioctl(fd, TIOCGWINSZ, &size);
    }
    *screen = (struct screen){.fd = fd};
    buf_init(&screen->out, OUT_BYTES_MAX);
    logview_init(&screen->view, &screen->out, terminal, terminal && !(no_colour && *no_colour),
                 size.ws_col);
}

void screen_done(struct screen *screen)
{
    logview_done(&screen->view);
    buf_done(&screen->out);
}

/* Waits for room where the output does not block (a terminal shared with another program). */
static bool write_some(int fd, const char **at, size_t *left)
{
    ssize_t wrote = write(fd, *at, *left);
    if (wrote >= 0) {
        *at += wrote;
        *left -= (size_t)wrote;
        return true;
    }
    if (errno == EAGAIN) {
        struct pollfd writable = {.fd = fd, .events = POLLOUT};
        poll(&writable, 1, 1000);
        return true;
    }
    return errno == EINTR;
}

void screen_flush(struct screen *screen)
{
    const char *at = screen->out.data;
    size_t left = screen->out.used;
    while (left > 0 && !screen->write_errno) {
        if (!write_some(screen->fd, &at, &left)) {
            screen->write_errno = errno;
        }
    }
    buf_clear(&screen->out);
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
        logview_note(&screen->view, text);
        screen_flush(screen);
    } else {
        fprintf(stderr, "%s\n", text);
    }
}
