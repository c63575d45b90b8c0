/* See trim.h. */
#include "daemon/history/trim.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"

#include <errno.h>
#include <fts.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct part {
    char *path;
    int64_t bytes;
    struct timespec written;
};

struct parts {
    struct part *list; /* of logs; other files are only counted */
    size_t count;
    size_t room;
    int64_t bytes;
};

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

static bool is_kept(const char *name)
{
    return ends_with(name, ".log") || ends_with(name, ".idx") || strcmp(name, "exit.json") == 0 ||
           strcmp(name, "started.json") == 0;
}

static int add(struct parts *parts, const FTSENT *e, struct muster_err *err)
{
    if (parts->count == parts->room) {
        size_t room = parts->room ? 2 * parts->room : 64;
        struct part *list = realloc(parts->list, room * sizeof *list);
        if (!list) {
            return err_no_memory(err);
        }
        parts->list = list;
        parts->room = room;
    }
    char *path = strdup(e->fts_path);
    if (!path) {
        return err_no_memory(err);
    }
    parts->list[parts->count++] = (struct part){path, e->fts_statp->st_size, e->fts_statp->st_mtim};
    return 0;
}

static int look_at(struct parts *parts, const FTSENT *e, struct muster_err *err)
{
    if (e->fts_info != FTS_F && e->fts_info != FTS_SL && e->fts_info != FTS_SLNONE &&
        e->fts_info != FTS_DEFAULT) {
        return 0;
    }
    if (e->fts_info != FTS_F || !is_kept(e->fts_name)) {
        return unlink(e->fts_path) == 0 || errno == ENOENT
                   ? 0
                   : file_fail(err, MUSTER_EIO, "remove", e->fts_path);
    }
    parts->bytes += e->fts_statp->st_size;
    return ends_with(e->fts_name, ".log") ? add(parts, e, err) : 0;
}

static int by_age(const void *left, const void *right)
{
    const struct part *a = left, *b = right;
    if (a->written.tv_sec != b->written.tv_sec) {
        return a->written.tv_sec < b->written.tv_sec ? -1 : 1;
    }
    if (a->written.tv_nsec != b->written.tv_nsec) {
        return a->written.tv_nsec < b->written.tv_nsec ? -1 : 1;
    }
    return strcmp(a->path, b->path);
}

/* Removes a part of a log, with its index. */
static int drop(const struct part *part, struct history_size *size, struct muster_err *err)
{
    muster_auto(free) char *index = strdup(part->path);
    struct stat info;
    if (!index) {
        return err_no_memory(err);
    }
    memcpy(index + strlen(index) - 4, ".idx", 4);
    if (stat(index, &info) == 0 && unlink(index) == 0) {
        size->bytes -= info.st_size;
    }
    if (unlink(part->path) < 0 && errno != ENOENT) {
        return file_fail(err, MUSTER_EIO, "remove", part->path);
    }
    size->bytes -= part->bytes;
    size->dropped += part->bytes;
    return 0;
}

static int scan(const char *logs, struct parts *parts, struct muster_err *err)
{
    char *const roots[] = {(char *)(uintptr_t)logs, NULL};
    FTS *tree = file_exists(logs) ? fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL) : NULL;
    int r = 0;
    for (FTSENT *e; tree && r == 0 && (e = fts_read(tree));) {
        r = look_at(parts, e, err);
    }
    if (tree) {
        fts_close(tree);
    }
    return r;
}

int history_trim(const char *logs, int64_t bytes_max, struct history_size *ret,
                 struct muster_err *err)
{
    struct parts parts = {0};
    int r = scan(logs, &parts, err);
    struct history_size size = {.bytes = parts.bytes};
    if (r == 0 && size.bytes > bytes_max) {
        qsort(parts.list, parts.count, sizeof *parts.list, by_age);
    }
    for (size_t i = 0; r == 0 && i < parts.count && size.bytes > bytes_max; i++) {
        r = drop(&parts.list[i], &size, err);
    }
    for (size_t i = 0; i < parts.count; i++) {
        free(parts.list[i].path);
    }
    free(parts.list);
    if (r == 0) {
        *ret = size;
    }
    return r;
}
