/* See descendants.h. */
#include "process/descendants.h"

#include "base/cleanup.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    pid_t pid;
    pid_t parent;
    bool below;
};

struct table {
    struct entry *list;
    size_t count;
    size_t room;
};

/* Reads up to `room` bytes of /proc/PID/NAME; 0 when it is gone. */
static size_t read_proc(pid_t pid, const char *name, char *into, size_t room)
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

static bool read_parent(pid_t pid, pid_t *ret)
{
    char text[1024];
    size_t used = read_proc(pid, "stat", text, sizeof text - 1);
    text[used] = '\0';
    const char *at = strrchr(text, ')');
    char state;
    return at && sscanf(at, ") %c %d", &state, ret) == 2 && state != 'Z';
}

static void add(struct table *table, pid_t pid, pid_t parent)
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
    table->list[table->count++] = (struct entry){pid, parent, false};
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
    pid_t parent;
    if (read_parent(pid, &parent)) {
        add(data, pid, parent);
    }
}

/* Marks children of what is marked until nothing changes: as many passes as the tree is deep. */
static void mark_below(struct table *table, pid_t root)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < table->count; i++) {
            struct entry *entry = &table->list[i];
            bool below = entry->parent == root;
            for (size_t k = 0; !below && !entry->below && k < table->count; k++) {
                below = table->list[k].below && table->list[k].pid == entry->parent;
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

int descendants_kill(pid_t root, int number)
{
    struct table table = {0};
    each_process(add_process, &table);
    mark_below(&table, root);
    int count = 0;
    for (size_t i = 0; i < table.count; i++) {
        if (table.list[i].below) {
            (void)kill(table.list[i].pid, number);
            count++;
        }
    }
    free(table.list);
    return count;
}

struct hunt {
    const char *mark;
    size_t compared; /* bytes of an entry */
    int count;
};

enum { ENVIRON_BYTES_MAX = 256 << 10, SWEEPS_MAX = 500, SWEEP_MS = 10 };

static void kill_if_marked(void *data, pid_t pid)
{
    struct hunt *hunt = data;
    muster_auto(free) char *text = malloc(ENVIRON_BYTES_MAX + 1);
    if (!text || pid == getpid()) {
        return;
    }
    size_t used = read_proc(pid, "environ", text, ENVIRON_BYTES_MAX);
    text[used] = '\0';
    for (const char *entry = text; entry < text + used; entry += strlen(entry) + 1) {
        if (strncmp(entry, hunt->mark, hunt->compared) == 0) {
            (void)kill(pid, SIGKILL);
            hunt->count++;
            return;
        }
    }
}

void descendants_sweep(const char *mark)
{
    size_t length = strlen(mark);
    assert(strchr(mark, '=') && "an empty or short mark would fit strangers");
    bool prefix = mark[length - 1] == '/';
    for (int i = 0; i < SWEEPS_MAX; i++) {
        struct hunt hunt = {mark, prefix ? length : length + 1, 0};
        each_process(kill_if_marked, &hunt);
        if (hunt.count == 0) {
            return;
        }
        (void)poll(NULL, 0, SWEEP_MS);
    }
}
