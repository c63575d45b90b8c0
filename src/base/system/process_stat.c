/* See process_stat.h. */
#include "base/system/process_stat.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STAT_BYTES = 2048, FIELDS_NEEDED = 7 };

static void read_text(pid_t pid, char into[STAT_BYTES])
{
    char path[64];
    size_t used = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    muster_auto(close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (ssize_t n = 1; fd >= 0 && n > 0 && used < STAT_BYTES - 1;) {
        n = read(fd, into + used, STAT_BYTES - 1 - used);
        used += n > 0 ? (size_t)n : 0;
    }
    into[used] = '\0';
}

/* The name in parentheses may contain any character, so fields are counted from the last ')'. */
bool process_stat_read(pid_t pid, struct process_stat *ret)
{
    char text[STAT_BYTES];
    unsigned long long user, system, start;
    long long children_user, children_system;
    int parent, end = 0;
    read_text(pid, text);
    *ret = (struct process_stat){0};
    const char *at = strrchr(text, ')');
    int fields = !at ? 0
                     : sscanf(at,
                              ") %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s " /* 3 to 13 */
                              "%llu %llu %lld %lld %*s %*s %*s %*s %llu "    /* 14 to 22 */
                              "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "     /* 23 to 32 */
                              "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "     /* 33 to 42 */
                              "%*s %*s %*s %*s %*s %*s %*s %*s %*s %d",      /* 43 to 52 */
                              &ret->state, &parent, &user, &system, &children_user,
                              &children_system, &start, &end);
    if (fields < FIELDS_NEEDED) {
        return false;
    }
    ret->parent = parent;
    ret->cpu_ticks = user + system + (uint64_t)children_user + (uint64_t)children_system;
    ret->start_ticks = start;
    ret->end = end;
    return true;
}
