/* See resume.h. Only checkpoints that were written since the run began count: the user knows the
 * one with which it began. */
#include "cli/result/resume.h"

#include "base/file.h"
#include "base/time/age.h"
#include "base/time/clock.h"
#include "cli/pod/places.h"
#include "cli/pod/ranks.h"
#include "cli/show/short_path.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TAIL_BYTES = 256 << 10, /* read from the end of each rank's log */
    STATS_MAX = 2000,       /* paths looked at in one run */
    ENTRIES_MAX = 20000,    /* read in all volumes */
    DEPTH_MAX = 6,
    SLACK_MS = 2000, /* for file systems that store whole seconds */
};

struct search {
    struct resume *best;
    int64_t since_unix_ms;
    int stats;
    int entries;
};

static void consider(struct search *s, const char *path, const struct stat *st)
{
    int64_t saved = (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
    bool fits = S_ISREG(st->st_mode) || S_ISDIR(st->st_mode);
    size_t length = strlen(path);
    if (fits && saved >= s->since_unix_ms && saved >= s->best->saved_unix_ms &&
        length < sizeof s->best->path) {
        memcpy(s->best->path, path, length + 1);
        s->best->saved_unix_ms = saved;
    }
}

/* --- what ranks printed --- */

static void look_at_printed(struct search *s, const json_t *place, const char *printed)
{
    struct stat st;
    muster_auto(free) char *path = place_resolve(place, printed);
    if (path && s->stats++ < STATS_MAX && stat(path, &st) == 0) {
        consider(s, path, &st);
    }
}

static void look_at_text(struct search *s, const json_t *place, const char *text, size_t bytes)
{
    char path[CHECKPOINT_PATH_BYTES];
    const char *at = text;
    while (s->stats < STATS_MAX && checkpoint_next(&at, text + bytes, path)) {
        look_at_printed(s, place, path);
    }
}

/* Looks at the end of a log file; what a rotation cut off is in the file before. */
static void look_at_log(struct search *s, const json_t *place, const char *file)
{
    muster_auto(free) char *text = malloc(TAIL_BYTES);
    int fd = text ? open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    if (fd < 0) {
        return;
    }
    off_t size = lseek(fd, 0, SEEK_END);
    off_t from = size > TAIL_BYTES ? size - TAIL_BYTES : 0;
    ssize_t count = pread(fd, text, TAIL_BYTES, from);
    close(fd);
    if (count > 0) {
        look_at_text(s, place, text, (size_t)count);
    }
}

static void look_at_pods(struct search *s, const struct followed_job *job, const json_t *pods)
{
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) {
        const char *name = doc_text(pod, "metadata.name", "");
        const json_t *place = places_of(job->places, name, ranks_main_container(pod));
        const json_t *logs = doc_at(place, "logs");
        size_t count = json_array_size(logs);
        for (size_t k = count > 2 ? count - 2 : 0; k < count; k++) {
            look_at_log(s, place, json_string_value(json_array_get(logs, k)));
        }
    }
}

/* --- what lies in volumes --- */

/* Takes fd. Symbolic links are not followed. */
static void look_at_folder(struct search *s, int fd, const char *path, int depth)
{
    DIR *folder = fdopendir(fd);
    if (!folder) {
        close(fd);
        return;
    }
    for (const struct dirent *e; s->entries < ENTRIES_MAX && (e = readdir(folder));) {
        struct stat st;
        s->entries++;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
            continue;
        }
        muster_auto(free) char *inside = file_join(path, e->d_name);
        if (inside && checkpoint_is_name(e->d_name)) {
            consider(s, inside, &st);
        }
        if (inside && S_ISDIR(st.st_mode) && depth < DEPTH_MAX) {
            int below = openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
            if (below >= 0) {
                look_at_folder(s, below, inside, depth + 1);
            }
        }
    }
    closedir(folder);
}

static void look_at_volumes(struct search *s, const json_t *volumes)
{
    size_t i;
    json_t *volume;
    json_array_foreach (volumes, i, volume) {
        const char *path = doc_text(volume, "path", "");
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd >= 0) {
            look_at_folder(s, fd, path, 0);
        }
    }
}

void resume_find(const struct followed_job *job, const json_t *pods, const json_t *volumes,
                 struct resume *ret)
{
    int64_t began = clock_unix_ms() - (clock_ms() - job->started_ms);
    struct search s = {.best = ret, .since_unix_ms = began - SLACK_MS};
    *ret = (struct resume){0};
    look_at_volumes(&s, volumes);
    look_at_pods(&s, job, pods); /* a path that was printed wins over another way to it */
}

void resume_say(const struct followed_job *job, const struct resume *resume)
{
    char path[SHORT_PATH_BYTES];
    char age[AGE_BYTES];
    if (!*resume->path) {
        return;
    }
    int64_t end_ms = job->over ? job->over_ms : clock_ms();
    int64_t end_unix_ms = clock_unix_ms() - (clock_ms() - end_ms);
    int64_t before_ms = end_unix_ms - resume->saved_unix_ms;
    screen_note(job->follow->screen, "  newest checkpoint: %s (%s before the end)",
                short_path(resume->path, path), age_words(before_ms > 0 ? before_ms : 0, age));
}
