/* See scan.h. */
#include "process/log/scan.h"

#include "base/time/timestamp.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK_BYTES = 32 << 10 };

bool log_segments(const char *folder, unsigned *ret_first, unsigned *ret_last)
{
    DIR *entries = opendir(folder);
    bool found = false;
    for (struct dirent *e = entries ? readdir(entries) : NULL; e; e = readdir(entries)) {
        char *end;
        unsigned long number = strtoul(e->d_name, &end, 10);
        if (end == e->d_name || strcmp(end, ".log") != 0 || number > UINT_MAX) {
            continue;
        }
        unsigned n = (unsigned)number;
        *ret_first = !found || n < *ret_first ? n : *ret_first;
        *ret_last = !found || n > *ret_last ? n : *ret_last;
        found = true;
    }
    if (entries) {
        closedir(entries);
    }
    return found;
}

static int open_part(const char *folder, unsigned number, const char *kind)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%u.%s", folder, number, kind);
    return n < (int)sizeof path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

/* If a power cut or a bad disk has damaged an index, the index ends at the damage. */
static bool read_mark(int fd, uint64_t index, struct log_mark *ret)
{
    return pread(fd, ret, sizeof *ret, (off_t)(index * sizeof *ret)) == (ssize_t)sizeof *ret &&
           timestamp_fits(ret->unix_ms);
}

bool log_segment_open(const char *folder, unsigned number, struct log_segment *ret)
{
    struct log_segment s = {.number = number, .next_mark = 1};
    s.log_fd = open_part(folder, number, "log");
    s.index_fd = s.log_fd >= 0 ? open_part(folder, number, "idx") : -1;
    if (s.index_fd < 0 || !read_mark(s.index_fd, 0, &s.current)) {
        log_segment_close(&s);
        return false;
    }
    s.base = s.current.offset;
    *ret = s;
    return true;
}

void log_segment_close(struct log_segment *segment)
{
    if (segment->log_fd >= 0) {
        close(segment->log_fd);
    }
    if (segment->index_fd >= 0) {
        close(segment->index_fd);
    }
    segment->log_fd = segment->index_fd = -1;
}

int64_t log_segment_time(struct log_segment *segment, uint64_t offset)
{
    struct log_mark next;
    while (read_mark(segment->index_fd, segment->next_mark, &next) && next.offset <= offset) {
        segment->current = next;
        segment->next_mark++;
    }
    return segment->current.unix_ms;
}

int64_t log_segment_run(struct log_segment *segment, uint64_t offset, uint64_t *ret_end)
{
    struct log_mark next;
    int64_t unix_ms = log_segment_time(segment, offset);
    bool bounded = read_mark(segment->index_fd, segment->next_mark, &next) && next.offset > offset;
    *ret_end = bounded ? next.offset : UINT64_MAX;
    return unix_ms;
}

static uint64_t segment_bytes(const struct log_segment *segment)
{
    struct stat info;
    return fstat(segment->log_fd, &info) == 0 ? (uint64_t)info.st_size : 0;
}

/* Whether a line that began before `offset` goes on there: the byte before it is not a newline. For
 * the first byte of a segment the caller looks at the segment before it. */
static bool in_a_line(const struct log_segment *segment, uint64_t offset)
{
    char before;
    return offset > segment->base &&
           pread(segment->log_fd, &before, 1, (off_t)(offset - segment->base - 1)) == 1 &&
           before != '\n';
}

static bool ends_in_a_line(const struct log_segment *segment)
{
    return in_a_line(segment, segment->base + segment_bytes(segment));
}

static bool first_mark_since(const struct log_segment *segment, int64_t unix_ms,
                             struct log_mark *ret)
{
    for (uint64_t i = 0; read_mark(segment->index_fd, i, ret); i++) {
        if (ret->unix_ms >= unix_ms) {
            return true;
        }
    }
    return false;
}

uint64_t log_find_since(const char *folder, int64_t unix_ms, bool *ret_skip)
{
    unsigned first, last;
    uint64_t end = 0;
    *ret_skip = false;
    if (!log_segments(folder, &first, &last)) {
        return 0;
    }
    bool open_line = first > 0;
    for (unsigned n = first; n <= last; n++) {
        struct log_segment segment;
        struct log_mark mark;
        if (!log_segment_open(folder, n, &segment)) {
            continue;
        }
        bool found = first_mark_since(&segment, unix_ms, &mark);
        if (found) {
            *ret_skip = mark.offset == segment.base ? open_line : in_a_line(&segment, mark.offset);
        }
        open_line = ends_in_a_line(&segment);
        end = segment.base + segment_bytes(&segment);
        log_segment_close(&segment);
        if (found) {
            return mark.offset;
        }
    }
    *ret_skip = open_line;
    return end;
}

struct log_range log_added(const char *folder)
{
    struct log_range range = {0};
    struct log_mark from, to;
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", folder, LOG_ADDED);
    int fd = n < (int)sizeof path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0 && read_mark(fd, 0, &from) && read_mark(fd, 1, &to) && from.offset <= to.offset) {
        range = (struct log_range){from.offset, to.offset};
    }
    if (fd >= 0) {
        close(fd);
    }
    return range;
}

static bool in_range(const struct log_range *range, uint64_t offset)
{
    return offset >= range->from && offset < range->to;
}

/* Returns the offset in the stream at which the segment ends when the bytes of `without` are left
 * out. */
static uint64_t segment_end(const struct log_segment *segment, const struct log_range *without)
{
    uint64_t end = segment->base + segment_bytes(segment);
    if (end == segment->base || !in_range(without, end - 1)) {
        return end;
    }
    return without->from > segment->base ? without->from : segment->base;
}

/* Looks backwards through one segment for the newline before the wanted lines. *lines counts down.
 * Returns true when it was found. */
static bool tail_in_segment(const struct log_segment *segment, const struct log_range *without,
                            bool newest, int64_t *lines, uint64_t *ret)
{
    char block[BLOCK_BYTES];
    uint64_t size = segment_bytes(segment);
    uint64_t end = segment_end(segment, without);
    for (uint64_t to = size; to > 0;) {
        uint64_t from = to > BLOCK_BYTES ? to - BLOCK_BYTES : 0;
        ssize_t n = pread(segment->log_fd, block, (size_t)(to - from), (off_t)from);
        for (ssize_t i = n - 1; i >= 0; i--) {
            /* the newline at the very end closes the last line and does not begin another */
            uint64_t next = segment->base + from + (uint64_t)i + 1;
            bool last_byte = newest && next == end;
            if (block[i] == '\n' && !last_byte && !in_range(without, next - 1) && --*lines == 0) {
                *ret = next;
                return true;
            }
        }
        to = from;
    }
    *ret = segment->base;
    return false;
}

uint64_t log_find_tail(const char *folder, int64_t lines, struct log_range without)
{
    unsigned first, last;
    uint64_t found = 0;
    if (!log_segments(folder, &first, &last)) {
        return 0;
    }
    bool newest = true;
    for (unsigned n = last + 1; n-- > first;) {
        struct log_segment segment;
        if (!log_segment_open(folder, n, &segment)) {
            break;
        }
        bool done = lines == 0;
        if (done) {
            found = segment.base + segment_bytes(&segment);
        } else {
            done = tail_in_segment(&segment, &without, newest, &lines, &found);
            newest = newest && segment_end(&segment, &without) == segment.base;
        }
        log_segment_close(&segment);
        if (done) {
            break;
        }
    }
    return found;
}
