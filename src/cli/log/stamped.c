/* See stamped.h. */
#include "cli/log/stamped.h"

#include "base/time/timestamp.h"

#include <ctype.h>
#include <string.h>

enum { NS_PER_MS = 1000000, MS_PER_S = 1000, NS_DIGITS = 9 };

/* Reads the time of a line in nanoseconds, by which lines are distinguished; 0 if the text has no
 * time. */
static int64_t read_time(const char *text)
{
    int64_t ms = timestamp_read(text);
    const char *fraction = strchr(text, '.');
    int64_t ns = 0;
    if (ms == TIMESTAMP_NONE) {
        return 0;
    }
    for (int i = 0; fraction && i < NS_DIGITS; i++) {
        bool more = isdigit((unsigned char)fraction[1]);
        ns = ns * 10 + (more ? *++fraction - '0' : 0);
    }
    return (ms - ms % MS_PER_S) * NS_PER_MS + ns;
}

static void hand_on(struct stamped *s, const char *bytes, size_t count,
                    const struct frames_sink *sink)
{
    size_t known = s->skip < count ? (size_t)s->skip : count;
    s->skip -= known;
    s->given += count;
    if (count > known) {
        sink->data(sink->context, s->offset, s->line_ns / NS_PER_MS, bytes + known, count - known);
        s->offset += count - known;
    }
}

static void begin_line(struct stamped *s, const struct frames_sink *sink)
{
    s->time[s->time_used] = '\0';
    int64_t ns = read_time(s->time);
    s->in_text = true;
    s->whole = false;
    s->given = 0;
    s->line_ns = ns ? ns : s->line_ns;
    s->skip = s->line_ns < s->resume_ns ? UINT64_MAX : 0;
    if (s->line_ns == s->resume_ns) {
        s->skip = s->resume_given;
    }
    if (!ns) { /* a line without a time is all text */
        hand_on(s, s->time, s->time_used, sink);
    }
}

/* Reads the line's time; returns how many of the bytes belong to it. */
static size_t feed_time(struct stamped *s, const char *bytes, size_t count,
                        const struct frames_sink *sink)
{
    size_t at = 0;
    while (at < count && s->time_used + 1 < sizeof s->time && bytes[at] != '\n' &&
           bytes[at] != ' ') {
        s->time[s->time_used++] = bytes[at++];
    }
    if (at < count) {
        begin_line(s, sink);
        bool separates = bytes[at] == ' ' && read_time(s->time);
        at += separates;
    }
    return at;
}

static size_t feed_text(struct stamped *s, const char *bytes, size_t count,
                        const struct frames_sink *sink)
{
    const char *end = memchr(bytes, '\n', count);
    size_t length = end ? (size_t)(end - bytes) + 1 : count;
    hand_on(s, bytes, length, sink);
    s->whole = end != NULL;
    s->in_text = !end;
    s->time_used = end ? 0 : s->time_used;
    return length;
}

void stamped_feed(struct stamped *stamped, const char *bytes, size_t count,
                  const struct frames_sink *sink)
{
    for (size_t at = 0; at < count;) {
        at += stamped->in_text ? feed_text(stamped, bytes + at, count - at, sink)
                               : feed_time(stamped, bytes + at, count - at, sink);
    }
}

void stamped_resume(struct stamped *stamped)
{
    uint64_t given = stamped->whole ? UINT64_MAX : stamped->given;
    if (stamped->line_ns > stamped->resume_ns) {
        stamped->resume_ns = stamped->line_ns;
        stamped->resume_given = given;
    } else if (stamped->line_ns == stamped->resume_ns && given > stamped->resume_given) {
        stamped->resume_given = given;
    } /* otherwise the stream broke among lines that were only skipped */
    stamped->line_ns = stamped->resume_ns;
    stamped->given = 0;
    stamped->whole = false;
    stamped->in_text = false;
    stamped->time_used = 0;
    stamped->skip = 0;
}

int64_t stamped_newest_ms(const struct stamped *stamped)
{
    bool skips = stamped->line_ns < stamped->resume_ns;
    return (skips ? stamped->resume_ns : stamped->line_ns) / NS_PER_MS;
}
