/* Which processes of this machine the members are, in a file beside the journal: a coordinator that
 * begins again knows at once who has died meanwhile. It is evidence, no part of the journal: where
 * it is lost, or cannot be written, who is silent is waited for. See internal.h. */
#include "coordinator/server/internal.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "core/hash.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As the machine has it: no other one reads it. */
struct line {
    uint64_t incarnation;
    struct server_process process;
    uint64_t check; /* of what is before it: the last line may be torn */
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
    memset(&line, 0, sizeof line); /* with what lies between its fields */
    line.incarnation = member->incarnation;
    line.process = server_watch_process(member->watch);
    line.check = check_of(&line);
    return line;
}

/* Of those that are still of interest. */
static void rewrite(struct server *s, const char *path)
{
    struct server_member *member;
    struct buf lines;
    buf_init(&lines, FILE_MAX);
    for (size_t at = 0; (member = server_table_each(&s->members, &at));) {
        if (member->watch && member->died_ms == 0) {
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
    if (path && member->watch) {
        const struct line line = line_of(member);
        if (!append(path, &line)) {
            rewrite(s, path);
        }
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
        if (line.check == check_of(&line) && arbiter_knows(s->arbiter, line.incarnation)) {
            server_recall(s, line.incarnation, &line.process);
        }
    }
    rewrite(s, path);
}
