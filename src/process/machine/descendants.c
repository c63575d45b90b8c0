/* See descendants.h. */
#include "process/machine/descendants.h"

#include "base/cleanup.h"
#include "base/system/process_stat.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct entry {
    struct descendant process;
    bool below;
};

struct table {
    struct entry *list;
    size_t count;
    size_t room;
};

size_t descendants_read(pid_t pid, const char *name, char *into, size_t room)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    muster_auto(close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    for (ssize_t n = 1; fd >= 0 && n > 0 && used<room; used += n> 0 ? (size_t)n : 0) {
        n = read(fd, into + used, room - used);
    }
    return used;
}

static bool read_process(pid_t pid, struct descendant *ret)
{
    struct process_stat is;
    bool lives = process_stat_read(pid, &is) && is.state != 'Z';
    *ret = (struct descendant){.pid = pid,
                               .parent = is.parent,
                               .state = is.state,
                               .cpu_ticks = is.cpu_ticks,
                               .start_ticks = is.start_ticks};
    return lives;
}

static void add(struct table *table, const struct descendant *process)
{
    if (table->count == table->room) {
        size_t room = table->room ? 2 * table->room : 256;
        struct entry *list = realloc(table->list, room * sizeof *list);
        if (!list) {
            return; /* the caller looks again until nothing is left */
        }
        table->list = list;
        table->room = room;
    }
    table->list[table->count++] = (struct entry){*process, false};
}

static void each_process(void (*each)(void *data, pid_t pid), void *data)
{
    DIR *proc = opendir("/proc");
    for (struct dirent *e = proc ? readdir(proc) : NULL; e; e = readdir(proc)) {
        long pid = strtol(e->d_name, NULL, 10);
        if (pid > 0) {
            each(data, (pid_t)pid);
        }
    }
    if (proc) {
        closedir(proc);
    }
}

static void add_process(void *data, pid_t pid)
{
    struct descendant process;
    if (read_process(pid, &process)) {
        add(data, &process);
    }
}

/* Marks the children of marked processes until nothing changes: as many passes as the tree is
 * deep. */
static void mark_below(struct table *table, pid_t root)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < table->count; i++) {
            struct entry *entry = &table->list[i];
            bool below = entry->process.parent == root;
            for (size_t k = 0; !below && !entry->below && k < table->count; k++) {
                below = table->list[k].below && table->list[k].process.pid == entry->process.parent;
            }
            if (below && !entry->below) {
                entry->below = changed = true;
            }
        }
    }
}

bool descendants_visible(void)
{
    char self[32];
    ssize_t length = readlink("/proc/self", self, sizeof self - 1);
    self[length < 0 ? 0 : length] = '\0';
    return strtol(self, NULL, 10) == (long)getpid();
}

/* Returns a pidfd of the process that has this number now; -1: there is none; -2: this kernel has
 * no pidfds, or no descriptor is left. */
static int open_process(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    return fd >= 0 || errno == ESRCH || errno == EINVAL ? fd : -2;
}

/* Uses the number only if there is no pidfd. */
static bool send_to(int fd, pid_t pid, int number)
{
    return fd >= 0 ? syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) == 0
                   : kill(pid, number) == 0;
}

/* The pidfd is taken first: it refers to the same process when it is compared and when it is
 * signalled. */
bool descendants_signal(const struct descendant *process, int number)
{
    struct descendant now;
    int fd = open_process(process->pid);
    bool same =
        fd != -1 && read_process(process->pid, &now) && now.start_ticks == process->start_ticks;
    bool sent = same && send_to(fd, process->pid, number);
    if (fd >= 0) {
        close(fd);
    }
    return sent;
}

int descendants_kill(pid_t root, int number)
{
    struct table table = {0};
    each_process(add_process, &table);
    mark_below(&table, root);
    int count = 0;
    for (size_t i = 0; i < table.count; i++) {
        if (table.list[i].below) {
            (void)descendants_signal(&table.list[i].process, number);
            count++;
        }
    }
    free(table.list);
    return count;
}

/* Copies breadth first, so that a parent is before its children. */
static size_t move_children(const struct table *table, pid_t root, struct descendant *into)
{
    size_t used = 0;
    for (size_t next = 0; next == 0 || next <= used; next++) {
        pid_t parent = next == 0 ? root : into[next - 1].pid;
        for (size_t i = 0; i < table->count; i++) {
            if (table->list[i].below && table->list[i].process.parent == parent) {
                into[used++] = table->list[i].process;
            }
        }
    }
    return used;
}

size_t descendants_list(pid_t root, struct descendant **ret)
{
    struct table table = {0};
    each_process(add_process, &table);
    mark_below(&table, root);
    *ret = table.count ? calloc(table.count, sizeof **ret) : NULL;
    size_t count = *ret ? move_children(&table, root, *ret) : 0;
    free(table.list);
    return count;
}

struct hunt {
    const char *mark;
    size_t compared; /* how many bytes of an entry are compared */
    int count;
};

enum { PIECE_BYTES = 64 << 10, SWEEPS_MAX = 500, SWEEP_MS = 10 };

/* How far the entry that is being read matches the mark. */
struct comparison {
    size_t matched;
    bool differs;
};

static bool find_mark(const struct hunt *hunt, const char *text, size_t count,
                      struct comparison *at)
{
    for (size_t i = 0; i < count; i++) {
        at->differs = at->differs || text[i] != hunt->mark[at->matched];
        if (!at->differs && ++at->matched == hunt->compared) {
            return true;
        }
        if (text[i] == '\0') {
            *at = (struct comparison){0};
        }
    }
    return false;
}

/* muster puts the mark first, so usually one piece is read; a shell may change the order for its
 * children. */
static bool is_marked(const struct hunt *hunt, pid_t pid)
{
    char path[64];
    char piece[PIECE_BYTES];
    struct comparison at = {0};
    bool found = false;
    (void)snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    muster_auto(close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (ssize_t n = fd < 0 ? 0 : 1; n > 0 && !found;) {
        n = read(fd, piece, sizeof piece);
        found = n > 0 && find_mark(hunt, piece, (size_t)n, &at);
    }
    return found;
}

static void kill_if_marked(void *data, pid_t pid)
{
    struct hunt *hunt = data;
    int fd = pid == getpid() ? -1 : open_process(pid);
    if (fd != -1 && is_marked(hunt, pid)) {
        (void)send_to(fd, pid, SIGKILL);
        hunt->count++;
    }
    if (fd >= 0) {
        close(fd);
    }
}

int descendants_sweep_once(const char *mark)
{
    size_t length = strlen(mark);
    assert(strchr(mark, '=') && "an empty or short mark would fit strangers");
    bool prefix = mark[length - 1] == '/';
    struct hunt hunt = {mark, prefix ? length : length + 1, 0};
    each_process(kill_if_marked, &hunt);
    return hunt.count;
}

void descendants_sweep(const char *mark)
{
    for (int i = 0; i < SWEEPS_MAX && descendants_sweep_once(mark) > 0; i++) {
        (void)poll(NULL, 0, SWEEP_MS);
    }
}
