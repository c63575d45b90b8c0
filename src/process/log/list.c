/* Lists the logs of a container: its attempts and their files. See log.h. */
#include "base/file.h"
#include "process/log/log.h"
#include "process/log/scan.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keeps the list newest first; when it is full the oldest is dropped. Returns how many it holds
 * then. */
static size_t insert(int *list, size_t count, size_t max, int attempt)
{
    size_t at = count;
    while (at > 0 && list[at - 1] < attempt) {
        at--;
    }
    if (at == max) {
        return count;
    }
    size_t moved = count < max ? count - at : max - 1 - at;
    memmove(&list[at + 1], &list[at], moved * sizeof *list);
    list[at] = attempt;
    return count < max ? count + 1 : max;
}

size_t process_log_attempts(const char *folder, int *ret, size_t max)
{
    DIR *entries = opendir(folder);
    size_t count = 0;
    for (struct dirent *e = entries ? readdir(entries) : NULL; e; e = readdir(entries)) {
        char *end;
        long number = strtol(e->d_name, &end, 10);
        char path[PATH_MAX];
        int n = snprintf(path, sizeof path, "%s/%s/started.json", folder, e->d_name);
        if (end != e->d_name && *end == '\0' && n < (int)sizeof path && file_exists(path)) {
            count = insert(ret, count, max, (int)number);
        }
    }
    if (entries) {
        closedir(entries);
    }
    return count;
}

json_t *process_log_paths(const char *folder, int attempt)
{
    char path[PATH_MAX];
    json_t *paths = json_array();
    unsigned first = 0, last = 0;
    (void)snprintf(path, sizeof path, "%s/%d", folder, attempt);
    if (!log_segments(path, &first, &last)) {
        return paths;
    }
    for (unsigned n = first; n <= last; n++) {
        (void)snprintf(path, sizeof path, "%s/%d/%u.log", folder, attempt, n);
        json_array_append_new(paths, json_string(path));
    }
    return paths;
}

uint64_t process_log_rotated(const char *folder, int attempt)
{
    char path[PATH_MAX];
    unsigned first = 0, last = 0;
    struct log_segment oldest;
    int n = snprintf(path, sizeof path, "%s/%d", folder, attempt);
    if (n >= (int)sizeof path || !log_segments(path, &first, &last) || first == 0 ||
        !log_segment_open(path, first, &oldest)) {
        return 0;
    }
    uint64_t bytes = oldest.base;
    log_segment_close(&oldest);
    return bytes;
}
