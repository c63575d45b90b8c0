/* See prune.h. */
#include "daemon/history/prune.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/quantity.h"
#include "base/time/timestamp.h"
#include "daemon/history/paths.h"
#include "job/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { RUNS_DEFAULT = 20, NAMES = 25, NAMES_MAX = 1000, SUMMARY_BYTES_MAX = 4 << 20 };

static const int64_t bytes_default = 1LL << 30;

/* ---- Limits ---- */

int64_t history_setting(const char *variable, int64_t fallback)
{
    const char *text = getenv(variable);
    double value = 0;
    if (!text || !*text) {
        return fallback;
    }
    if (!quantity_read(text, &value) || value < 0 || value > 1e15) {
        log_event(LOG_WARN, "history.limits",
                  "%s=%.80s is no quantity (20, 512Mi): %" PRId64 " is taken", variable, text,
                  fallback);
        return fallback;
    }
    return (int64_t)value;
}

struct history_limits history_limits_read(void)
{
    struct history_limits limits = {
        .runs_per_name = history_setting("MUSTER_HISTORY_RUNS", RUNS_DEFAULT),
        .bytes = history_setting("MUSTER_HISTORY_BYTES", bytes_default)};
    limits.runs_per_name = limits.runs_per_name > 100000 ? 100000 : limits.runs_per_name;
    limits.runs = limits.runs_per_name * NAMES;
    return limits;
}

/* ---- The choice ---- */

/* Newest first; the run with the higher number is newer, whatever the clock was. */
static int by_age(const void *left, const void *right)
{
    const struct history_item *a = left, *b = right;
    if (strcmp(a->namespace, b->namespace) == 0 && strcmp(a->name, b->name) == 0) {
        return (a->run < b->run) - (a->run > b->run);
    }
    return (a->finished_unix_ms < b->finished_unix_ms) -
           (a->finished_unix_ms > b->finished_unix_ms);
}

static int by_name(const void *left, const void *right)
{
    const struct history_item *a = left, *b = right;
    int order = strcmp(a->namespace, b->namespace);
    order = order ? order : strcmp(a->name, b->name);
    return order ? order : by_age(left, right);
}

static int by_end(const void *left, const void *right)
{
    const struct history_item *a = left, *b = right;
    if (a->finished_unix_ms != b->finished_unix_ms) {
        return a->finished_unix_ms < b->finished_unix_ms ? 1 : -1;
    }
    return by_name(left, right);
}

static void choose_by_name(struct history_item *items, size_t count, int64_t runs_per_name)
{
    qsort(items, count, sizeof *items, by_name);
    int64_t newer = 0;
    for (size_t i = 0; i < count; i++) {
        bool same = i > 0 && strcmp(items[i].namespace, items[i - 1].namespace) == 0 &&
                    strcmp(items[i].name, items[i - 1].name) == 0;
        newer = same ? newer + 1 : 0;
        items[i].goes = newer >= runs_per_name;
    }
}

void history_choose(struct history_item *items, size_t count, const struct history_limits *limits)
{
    if (count == 0) {
        return;
    }
    choose_by_name(items, count, limits->runs_per_name);
    qsort(items, count, sizeof *items, by_end);
    int64_t runs = 0, bytes = 0;
    bool full = false; /* from here on all runs are older than one that must go */
    for (size_t i = 0; i < count; i++) {
        if (items[i].goes) {
            continue;
        }
        full = full || runs + 1 > limits->runs || bytes + items[i].bytes > limits->bytes;
        items[i].goes = full;
        runs += !full;
        bytes += full ? 0 : items[i].bytes;
    }
}

/* ---- The runs that exist ---- */

struct items {
    struct history_item *list;
    size_t count;
    size_t room;
    bool failed;
};

static void read_item(const char *folder, struct history_item *item)
{
    muster_auto(free) char *path = file_join(folder, "summary.json");
    muster_auto(free) char *text = NULL;
    muster_auto(doc) json_t *summary = NULL;
    struct stat info;
    size_t bytes = 0;
    if (path && file_read(path, SUMMARY_BYTES_MAX, &text, &bytes, NULL) == 0) {
        (void)doc_parse(text, bytes, &summary, NULL);
    }
    int64_t finished = timestamp_read(doc_text(summary, "finished", NULL));
    if (finished == TIMESTAMP_NONE && stat(folder, &info) == 0) {
        finished = (int64_t)info.st_mtim.tv_sec * 1000;
    }
    item->finished_unix_ms = finished;
    item->bytes = doc_int(summary, "bytes", 0) + (int64_t)bytes;
}

static void add_item(void *arg, const struct history_run *run, const char *folder)
{
    struct items *items = arg;
    if (items->count == items->room) {
        size_t room = items->room ? 2 * items->room : 64;
        struct history_item *list = realloc(items->list, room * sizeof *list);
        items->failed = items->failed || !list;
        if (!list) {
            return;
        }
        items->list = list;
        items->room = room;
    }
    struct history_item item = {
        .namespace = strdup(run->namespace), .name = strdup(run->name), .run = run->run};
    read_item(folder, &item);
    items->failed = items->failed || !item.namespace || !item.name;
    items->list[items->count++] = item;
}

static void items_done(struct items *items)
{
    for (size_t i = 0; i < items->count; i++) {
        free(items->list[i].namespace);
        free(items->list[i].name);
    }
    free(items->list);
}

/* ---- Removal ---- */

void history_empty_trash(const struct home *home)
{
    muster_auto(free) char *trash = history_trash(home);
    struct muster_err err = MUSTER_ERR_INIT;
    if (trash && file_remove(trash, &err) < 0) {
        log_event(LOG_WARN, "history.trash", "%s", err.text);
    }
}

int history_throw_away(const struct home *home, const char *folder, const char *name,
                       struct muster_err *err)
{
    muster_auto(free) char *trash = history_trash(home);
    muster_auto(free) char *path = trash ? file_join(trash, name) : NULL;
    int r = path ? file_mkdir(trash, 0700, err) : err_no_memory(err);
    r = r < 0 ? r : file_remove(path, err); /* an earlier removal that failed may have left it */
    if (r == 0 && rename(folder, path) < 0 && errno != ENOENT) {
        r = file_fail(err, MUSTER_EIO, "remove", folder);
    }
    return r < 0 ? r : file_remove(path, err);
}

/* Keeps the number of the run. On a full disk its logs are removed first, to make room for the
 * number. */
static int keep_last(const struct home *home, const struct history_item *item, const char *folder,
                     struct muster_err *err)
{
    int r = history_keep_last(home, item->namespace, item->name, err);
    muster_auto(free) char *logs = r == MUSTER_ECREATE ? file_join(folder, "logs") : NULL;
    return logs && file_remove(logs, NULL) == 0
               ? history_keep_last(home, item->namespace, item->name, err)
               : r;
}

static int remove_item(const struct home *home, const struct history_item *item,
                       struct muster_err *err)
{
    muster_auto(free) char *folder = NULL;
    muster_auto(free) char *name = NULL;
    const struct history_run run = {item->namespace, item->name, item->run};
    int r = history_path(home, &run, &folder, err);
    if (r == 0 && asprintf(&name, "%s_%s_%" PRId64, item->namespace, item->name, item->run) < 0) {
        name = NULL;
        return err_no_memory(err);
    }
    if (r == 0 && history_last(home, item->namespace, item->name) == item->run) {
        r = keep_last(home, item, folder, err);
    }
    return r < 0 ? r : history_throw_away(home, folder, name, err);
}

static int remove_chosen(const struct home *home, const struct items *items, size_t *ret_count,
                         struct muster_err *err)
{
    int r = items->failed ? err_no_memory(err) : 0;
    for (size_t i = 0; i < items->count && r == 0; i++) {
        if (items->list[i].goes) {
            r = remove_item(home, &items->list[i], err);
            *ret_count += r == 0;
        }
    }
    return r;
}

int history_prune(const struct home *home, const struct history_limits *limits,
                  struct muster_err *err)
{
    struct items items = {0};
    size_t count = 0;
    history_each(home, NULL, NULL, add_item, &items);
    history_choose(items.list, items.count, limits);
    int r = remove_chosen(home, &items, &count, err);
    items_done(&items);
    history_forget_names(home, NAMES_MAX);
    return r;
}

int history_remove(const struct home *home, const char *namespace, const char *name, int64_t run,
                   size_t *ret_count, struct muster_err *err)
{
    struct items items = {0};
    *ret_count = 0;
    history_each(home, namespace, name, add_item, &items);
    for (size_t i = 0; i < items.count; i++) {
        items.list[i].goes = run == 0 || items.list[i].run == run;
    }
    int r = remove_chosen(home, &items, ret_count, err);
    items_done(&items);
    return r;
}
