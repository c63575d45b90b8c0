/* See flights.h. */
#include "process/stack/flights.h"

#include "base/cleanup.h"
#include "core/flight.h"
#include "process/machine/descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STATUS_BYTES_MAX = 8192, RANKS_MAX = 4096, FORMING_PAGES = 16, GROUPS_MAX = 64 };

/* Returns the process's number in its own namespace: the last of "NSpid: 812 7". */
static int own_pid(pid_t pid)
{
    char status[STATUS_BYTES_MAX];
    size_t used = descendants_read(pid, "status", status, sizeof status - 1);
    status[used] = '\0';
    char *line = strstr(status, "\nNSpid:");
    if (!line) {
        return (int)pid;
    }
    line++;
    line[strcspn(line, "\n")] = '\0';
    return (int)strtol(strrchr(line, '\t') + 1, NULL, 10);
}

/* Reads the page of that process; returns false if the file is not a segment of muster, or the
 * process has no page in it. */
static bool read_page(int fd, int pid, struct flight *ret)
{
    int pages = FORMING_PAGES; /* until a page says how many there are */
    for (int page = 0; page < pages; page++) {
        off_t at = (off_t)page * FLIGHT_PAGE_BYTES + FLIGHT_OFFSET;
        if (pread(fd, ret, sizeof *ret, at) != (ssize_t)sizeof *ret) {
            return false;
        }
        bool is_there = atomic_load(&ret->magic) == flight_magic;
        if (is_there && ret->pid == pid) {
            return true;
        }
        pages = !is_there ? pages : ret->local_size < RANKS_MAX ? ret->local_size : RANKS_MAX;
    }
    return false;
}

static json_t *message_of(const struct flight *flight)
{
    bool receives = false;
    int32_t peer = 0, tag = 0;
    uint64_t number = flight_waiting(flight, &receives, &peer, &tag);
    return number ? json_pack("{s:I, s:b, s:i, s:i}", "number", (json_int_t)number, "receives",
                              (int)receives, "peer", (int)peer, "tag", (int)tag)
                  : NULL;
}

static json_t *describe(const struct flight *flight)
{
    uint64_t shape = 0, count = 0;
    uint64_t number = flight_pending(flight, &shape, &count);
    bool inside = number > 0;
    number = inside ? number : flight_newest(flight, &shape, &count);
    char group[24], call[128];
    (void)snprintf(group, sizeof group, "%016llx", (unsigned long long)flight->group);
    json_t *doc = json_pack("{s:s, s:i, s:i, s:I, s:b}", "group", group, "rank", (int)flight->rank,
                            "size", (int)flight->size, "number",
                            (json_int_t)(number ? number - 1 : 0), "inside", (int)inside);
    json_t *message = message_of(flight);
    if (message) {
        json_object_set_new(doc, "message", message);
    }
    if (number > 0) {
        flight_name(shape, count, call, sizeof call);
        json_object_set_new(doc, "call", json_string(call));
    }
    return doc;
}

static bool is_segment(int folder, const char *name)
{
    char link[64];
    ssize_t length = readlinkat(folder, name, link, sizeof link - 1);
    link[length < 0 ? 0 : length] = '\0';
    return strcmp(link, "/memfd:" FLIGHT_FILE " (deleted)") == 0;
}

json_t *flights_read(pid_t pid)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *folder = opendir(path);
    json_t *list = NULL;
    for (struct dirent *e = folder ? readdir(folder) : NULL;
         e && json_array_size(list) < GROUPS_MAX; e = readdir(folder)) {
        struct flight flight;
        if (!is_segment(dirfd(folder), e->d_name)) {
            continue;
        }
        muster_auto(close) int fd = openat(dirfd(folder), e->d_name, O_RDONLY | O_CLOEXEC);
        if (fd >= 0 && read_page(fd, own_pid(pid), &flight) && !atomic_load(&flight.closed)) {
            list = list ? list : json_array();
            json_array_append_new(list, describe(&flight));
        }
    }
    if (folder) {
        closedir(folder);
    }
    return list;
}
