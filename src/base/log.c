/* See log.h. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES_MAX = 2048 };

static atomic_int sink_fd = STDERR_FILENO;
static atomic_int sink_least = LOG_WARN;

void log_to(int fd, enum log_level least)
{
    atomic_store(&sink_fd, fd);
    atomic_store(&sink_least, (int)least);
}

/* Quotes, backslashes and control bytes are made safe, so that a line stays one line. */
static size_t quote(char *out, size_t room, const char *text)
{
    size_t used = 0;
    for (const char *p = text; *p && used + 3 < room; p++) {
        if (*p == '"' || *p == '\\') {
            out[used++] = '\\';
        }
        out[used++] = (unsigned char)*p < ' ' ? ' ' : *p;
    }
    return used;
}

void log_event(enum log_level level, const char *event, const char *format, ...)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    if ((int)level < atomic_load(&sink_least)) {
        return;
    }
    int saved = errno;
    char text[LINE_BYTES_MAX / 2];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);

    char line[LINE_BYTES_MAX];
    struct timespec now;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    size_t used = strftime(line, sizeof line, "ts=%Y-%m-%dT%H:%M:%S", &parts);
    used += (size_t)snprintf(line + used, sizeof line - used, ".%03ldZ level=%s event=%s msg=\"",
                             now.tv_nsec / 1000000, names[level], event);
    used += quote(line + used, sizeof line - used - 2, text);
    line[used++] = '"';
    line[used++] = '\n';
    (void)!write(atomic_load(&sink_fd), line,
                 used); /* a log that cannot be written has no one to tell */
    errno = saved;
}
