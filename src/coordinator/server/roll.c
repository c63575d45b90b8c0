/* Keeps in a file beside the journal which processes of this machine the members are, and where
 * those of other machines listen: a coordinator that is started again knows at once, or can find
 * out, which of them have died meanwhile. The file is evidence and not part of the journal: if it
 * is lost, or cannot be written, silent members are waited for. See internal.h. */
#include "coordinator/server/internal.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "core/hash.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* In the byte order of this machine: no other machine reads it. */
struct line {
    uint64_t incarnation;
    struct server_process process;       /* zeroes: of another machine */
    uint8_t reached[WIRE_ADDRESS_BYTES]; /* zeroes: it was not reached */
    uint64_t check;                      /* of the fields before it: the last line may be torn */
};

enum { LINES_MAX = 4 * SERVER_SIZE_MAX, FILE_MAX = LINES_MAX * sizeof(struct line) };

static char *path_of(const struct server *s)
{
    return file_join(s->options->journal, "processes");
}

static uint64_t check_of(const struct line *line)
{
    return hash_bytes(HASH_START, line, offsetof(struct line, check));
}

static struct line line_of(const struct server_member *member)
{
    struct line line;
    memset(&line, 0, sizeof line); /* with the padding between its fields */
    line.incarnation = member->incarnation;
    if (member->watch) {
        line.process = server_watch_process(member->watch);
    } else {
        memcpy(line.reached, member->reach.address, sizeof line.reached);
    }
    line.check = check_of(&line);
    return line;
}

static bool is_of_interest(const struct server_member *member)
{
    return member->watch ? member->died_ms == 0 : member->reach.reached && !member->reach.gone;
}

static void rewrite(struct server *s, const char *path)
{
    struct server_member *member;
    struct buf lines;
    buf_init(&lines, FILE_MAX);
    for (size_t at = 0; (member = server_table_each(&s->members, &at));) {
        if (is_of_interest(member)) {
            const struct line line = line_of(member);
            buf_add(&lines, &line, sizeof line);
        }
    }
    (void)file_put(path, buf_str(&lines), lines.used, 0600, NULL);
    buf_done(&lines);
}

static bool append(const char *path, const struct line *line)
{
    struct stat info;
    muster_auto(close) int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    return fd >= 0 && fstat(fd, &info) == 0 && (size_t)info.st_size < FILE_MAX &&
           write(fd, line, sizeof *line) == (ssize_t)sizeof *line;
}

void server_roll_add(struct server *s, const struct server_member *member)
{
    muster_auto(free) char *path = path_of(s);
    if (path && is_of_interest(member)) {
        const struct line line = line_of(member);
        if (!append(path, &line)) {
            rewrite(s, path);
        }
    }
}

static void call(struct server *s, const struct line *line)
{
    static const uint8_t nowhere[WIRE_ADDRESS_BYTES];
    bool reached = memcmp(line->reached, nowhere, sizeof nowhere) != 0;
    if (line->check == check_of(line) && arbiter_knows(s->arbiter, line->incarnation)) {
        server_recall(s, line->incarnation, &line->process, reached ? line->reached : NULL);
    }
}

void server_roll_call(struct server *s)
{
    muster_auto(free) char *path = path_of(s);
    muster_auto(free) char *lines = NULL;
    size_t bytes = 0;
    if (!path || file_read(path, FILE_MAX + sizeof(struct line), &lines, &bytes, NULL) < 0) {
        return;
    }
    for (size_t at = 0; at + sizeof(struct line) <= bytes; at += sizeof(struct line)) {
        struct line line;
        memcpy(&line, lines + at, sizeof line);
        call(s, &line);
    }
    rewrite(s, path);
}
