/* See log.h. */
#include "base/log.h"

#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES_MAX = 4096, JOB_BYTES_MAX = 600, UTF8_BYTES_MAX = 4 };

static atomic_int sink_fd = STDERR_FILENO;
static atomic_int sink_least = LOG_WARN;
static atomic_int sink_form = LOG_LOGFMT;

void log_to(int fd, enum log_level least)
{
    atomic_store(&sink_fd, fd);
    atomic_store(&sink_least, (int)least);
}

void log_as(enum log_form form)
{
    atomic_store(&sink_form, (int)form);
}

/* Replaces or escapes quotes, backslashes and control bytes, so that a line stays one line, and
 * bytes that are not UTF-8, which JSON does not allow. */
static size_t quote(char *out, size_t room, const char *text)
{
    size_t used = 0, left = strlen(text);
    for (const char *p = text; left > 0 && used + UTF8_BYTES_MAX + 1 < room;) {
        size_t length = text_utf8_length((const unsigned char *)p, left);
        if (*p == '"' || *p == '\\') {
            out[used++] = '\\';
        }
        if (length <= 1) {
            out[used++] = length == 0 ? '?' : (unsigned char)*p < ' ' || *p == 0x7f ? ' ' : *p;
            length = 1;
        } else {
            memcpy(out + used, p, length);
            used += length;
        }
        p += length;
        left -= length;
    }
    return used;
}

/* Writes the start of a line: the time, the level, the event, and the job if there is one. */
static size_t begin_line(char *out, size_t room, enum log_level level, const char *event,
                         const char *job)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    bool json = atomic_load(&sink_form) == LOG_JSON;
    char now[sizeof "2026-01-02T03:04:05"];
    char safe_job[JOB_BYTES_MAX] = "";
    struct timespec at;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &at);
    gmtime_r(&at.tv_sec, &parts);
    (void)strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%S", &parts);
    if (job && *job) {
        safe_job[quote(safe_job, sizeof safe_job, job)] = '\0';
    }
    int used =
        json ? snprintf(
                   out, room,
                   "{\"level\":\"%s\",\"time\":\"%s.%03ldZ\",\"event\":\"%s\"%s%s%s,\"message\":\"",
                   names[level], now, at.tv_nsec / 1000000, event, *safe_job ? ",\"job\":\"" : "",
                   safe_job, *safe_job ? "\"" : "")
             : snprintf(out, room, "ts=%s.%03ldZ level=%s event=%s%s%s msg=\"", now,
                        at.tv_nsec / 1000000, names[level], event, *safe_job ? " job=" : "",
                        safe_job);
    return (size_t)used;
}

static void write_line(enum log_level level, const char *event, const char *job, const char *format,
                       va_list args)
{
    static const char *const ends[] = {[LOG_LOGFMT] = "\"\n", [LOG_JSON] = "\"}\n"};
    if ((int)level < atomic_load(&sink_least)) {
        return;
    }
    int saved = errno;
    const char *end = ends[atomic_load(&sink_form)];
    char text[LINE_BYTES_MAX / 4];
    char line[LINE_BYTES_MAX];
    (void)vsnprintf(text, sizeof text, format, args);
    size_t used = begin_line(line, sizeof line, level, event, job);
    used += quote(line + used, sizeof line - used - strlen(end), text);
    memcpy(line + used, end, strlen(end));
    (void)!write(atomic_load(&sink_fd), line,
                 used + strlen(end)); /* if the log cannot be written, nobody can be told */
    errno = saved;
}

void log_event(enum log_level level, const char *event, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(level, event, NULL, format, args);
    va_end(args);
}

void log_about(enum log_level level, const char *event, const char *job, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(level, event, job, format, args);
    va_end(args);
}
