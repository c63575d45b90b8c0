/* See container.h. */
#include "process/machine/container.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NAME_BYTES = 64 };

static bool is_conmon(pid_t pid)
{
    char name[NAME_BYTES];
    size_t used = descendants_read(pid, "comm", name, sizeof name - 1);
    name[used] = '\0';
    return strcmp(name, "conmon\n") == 0;
}

/* Reads "pid:[4026531836]"; "" if the process is gone. */
static void read_namespace(pid_t pid, char into[NAME_BYTES])
{
    char path[NAME_BYTES];
    (void)snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)pid);
    ssize_t length = readlink(path, into, NAME_BYTES - 1);
    into[length < 0 ? 0 : length] = '\0';
}

/* Whether the process is in the container: conmon's other children, the runtime that makes the
 * container and the podman that cleans up, are not. */
static bool is_inside(pid_t pid, pid_t conmon)
{
    char inner[NAME_BYTES], outer[NAME_BYTES];
    read_namespace(pid, inner);
    read_namespace(conmon, outer);
    return inner[0] && outer[0] && strcmp(inner, outer) != 0;
}

static pid_t find_first(const struct descendant *list, size_t count, pid_t conmon)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i].parent == conmon && is_inside(list[i].pid, conmon)) {
            return list[i].pid;
        }
    }
    return 0;
}

pid_t container_find(const struct descendant *list, size_t count, pid_t root)
{
    pid_t found = 0;
    for (size_t i = 0; i < count && !found; i++) {
        if (list[i].parent == root && is_conmon(list[i].pid)) {
            found = find_first(list, count, list[i].pid);
        }
    }
    return found;
}

static bool holds(const struct descendant *list, size_t count, pid_t pid)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i].pid == pid) {
            return true;
        }
    }
    return false;
}

size_t container_keep(struct descendant *list, size_t count, pid_t first)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (list[i].pid == first || holds(list, kept, list[i].parent)) {
            list[kept++] = list[i];
        }
    }
    return kept;
}
