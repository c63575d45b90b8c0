/* See paths.h. The file JOB/last holds the highest number where the run of that number is
 * gone. */
#include "daemon/history/paths.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "job/text.h"

#include <dirent.h>
#include <fts.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LAST "last"

enum { NUMBER_BYTES = 32, LAST_LEVEL = 3 }; /* history/NAMESPACE/JOB/last */

static int check_name(const char *what, enum schema_form form, const char *name,
                      struct muster_err *err)
{
    const char *fault = name ? job_text_fault(form, name) : "must be given";
    return fault ? muster_fail(err, MUSTER_EINVAL, "%s \"%.80s\" %s", what, name ? name : "", fault)
                 : 0;
}

int history_path(const struct home *home, const struct history_run *run, char **ret,
                 struct muster_err *err)
{
    int r = check_name("namespace", SCHEMA_LABEL, run->namespace, err);
    r = r < 0 ? r : check_name("job", SCHEMA_SUBDOMAIN, run->name, err);
    if (r < 0) {
        return r;
    }
    char number[NUMBER_BYTES] = "";
    if (run->run > 0) {
        snprintf(number, sizeof number, "/%" PRId64, run->run);
    }
    char *path = NULL;
    if (asprintf(&path, "%s/history/%s/%s%s", home->path, run->namespace, run->name, number) < 0) {
        return err_no_memory(err);
    }
    *ret = path;
    return 0;
}

char *history_trash(const struct home *home)
{
    return home_file(home, "history/.trash");
}

/* Returns the number that the text is ("12"); 0 if it is not the number of a run. */
static int64_t run_number(const char *text)
{
    char *end;
    long long number = strtoll(text, &end, 10);
    return *text >= '1' && *text <= '9' && !*end ? number : 0;
}

static struct dirent *next_entry(DIR *entries)
{
    struct dirent *e = entries ? readdir(entries) : NULL;
    while (e && *e->d_name == '.') {
        e = readdir(entries);
    }
    return e;
}

static void each_of_name(const struct home *home, const char *namespace, const char *name,
                         history_each_fn fn, void *arg)
{
    muster_auto(free) char *folder = NULL;
    const struct history_run all = {namespace, name, 0};
    DIR *entries = history_path(home, &all, &folder, NULL) == 0 ? opendir(folder) : NULL;
    for (struct dirent *e; (e = next_entry(entries));) {
        const struct history_run run = {namespace, name, run_number(e->d_name)};
        muster_auto(free) char *path = run.run > 0 ? file_join(folder, e->d_name) : NULL;
        if (path) {
            fn(arg, &run, path);
        }
    }
    if (entries) {
        closedir(entries);
    }
}

static void each_of_namespace(const struct home *home, const char *namespace, history_each_fn fn,
                              void *arg)
{
    muster_auto(free) char *folder = NULL;
    if (asprintf(&folder, "%s/history/%s", home->path, namespace) < 0) {
        folder = NULL;
        return;
    }
    DIR *entries =
        check_name("namespace", SCHEMA_LABEL, namespace, NULL) == 0 ? opendir(folder) : NULL;
    for (struct dirent *e; (e = next_entry(entries));) {
        each_of_name(home, namespace, e->d_name, fn, arg);
    }
    if (entries) {
        closedir(entries);
    }
}

void history_each(const struct home *home, const char *namespace, const char *name,
                  history_each_fn fn, void *arg)
{
    if (name) {
        each_of_name(home, namespace, name, fn, arg);
        return;
    }
    if (namespace) {
        each_of_namespace(home, namespace, fn, arg);
        return;
    }
    muster_auto(free) char *folder = home_file(home, "history");
    DIR *entries = folder ? opendir(folder) : NULL;
    for (struct dirent *e; (e = next_entry(entries));) {
        each_of_namespace(home, e->d_name, fn, arg);
    }
    if (entries) {
        closedir(entries);
    }
}

static void note_highest(void *arg, const struct history_run *run, const char *folder)
{
    int64_t *highest = arg;
    (void)folder;
    *highest = run->run > *highest ? run->run : *highest;
}

static char *last_path(const struct home *home, const char *namespace, const char *name)
{
    const struct history_run all = {namespace, name, 0};
    muster_auto(free) char *folder = NULL;
    return history_path(home, &all, &folder, NULL) < 0 ? NULL : file_join(folder, LAST);
}

int64_t history_last(const struct home *home, const char *namespace, const char *name)
{
    muster_auto(free) char *path = last_path(home, namespace, name);
    muster_auto(free) char *text = NULL;
    int64_t highest = 0;
    if (path && file_read(path, NUMBER_BYTES, &text, NULL, NULL) == 0) {
        highest = run_number(text);
    }
    history_each(home, namespace, name, note_highest, &highest);
    return highest;
}

int history_keep_last(const struct home *home, const char *namespace, const char *name,
                      struct muster_err *err)
{
    muster_auto(free) char *path = last_path(home, namespace, name);
    char text[NUMBER_BYTES];
    int count = snprintf(text, sizeof text, "%" PRId64, history_last(home, namespace, name));
    return path ? file_write(path, text, (size_t)count, 0600, err) : err_no_memory(err);
}

/* Orders by the time of the last change, the oldest first. */
static int by_age(const FTSENT **left, const FTSENT **right)
{
    time_t a = (*left)->fts_statp ? (*left)->fts_statp->st_mtime : 0;
    time_t b = (*right)->fts_statp ? (*right)->fts_statp->st_mtime : 0;
    return (a > b) - (a < b);
}

/* Whether a folder has other entries than the number: then it is kept, and the number with it. */
static bool has_runs(const char *folder)
{
    DIR *entries = opendir(folder);
    bool found = false;
    for (struct dirent *e; (e = next_entry(entries));) {
        found = found || strcmp(e->d_name, LAST) != 0;
    }
    if (entries) {
        closedir(entries);
    }
    return found;
}

static size_t count_or_forget(const struct home *home, size_t forget)
{
    muster_auto(free) char *folder = home_file(home, "history");
    char *const roots[] = {folder, NULL};
    FTS *tree =
        folder && file_exists(folder) ? fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_age) : NULL;
    size_t count = 0;
    for (FTSENT *e; tree && (e = fts_read(tree));) {
        if (e->fts_info == FTS_D && e->fts_level == LAST_LEVEL - 1) {
            bool idle = !has_runs(e->fts_path);
            muster_auto(free) char *last = file_join(e->fts_path, LAST);
            if (idle && count < forget && last && unlink(last) == 0) {
                (void)rmdir(e->fts_path); /* fails if a run was added meanwhile */
            }
            count += idle;
            fts_set(tree, e, FTS_SKIP);
        }
    }
    if (tree) {
        fts_close(tree);
    }
    return count;
}

void history_forget_names(const struct home *home, size_t names_max)
{
    size_t count = count_or_forget(home, 0);
    if (count > names_max) {
        (void)count_or_forget(home, count - names_max);
    }
}
