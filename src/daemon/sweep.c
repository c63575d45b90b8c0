/* See sweep.h. */
#include "daemon/sweep.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "daemon/jobs.h"
#include "job/annotations.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define MARK "/deleted"

enum { LEASE_BYTES_MAX = 256 };

struct sweep {
    struct store *store;
    const struct home *home;
    const struct leases *leases;
    struct store_watch *watch;
    json_t *doomed; /* uid -> the lease of the `muster run` that may still read, or "" */
};

static char *path_of(const struct sweep *sweep, const char *uid, const char *name)
{
    char *path = NULL;
    assert(*uid && *uid != '.' && !strchr(uid, '/'));
    return asprintf(&path, "%s/jobs/%s%s", sweep->home->path, uid, name) < 0 ? NULL : path;
}

/* The next controller may have to finish this one's work. A folder without the mark stays: that of
 * a job whose store was moved away, too. */
static void mark(const struct sweep *sweep, const char *uid, const char *lease)
{
    muster_auto(free) char *path = path_of(sweep, uid, MARK);
    muster_auto(close) int fd = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd >= 0 && write(fd, lease, strlen(lease)) < 0) {
        log_event(LOG_WARN, "sweep", "cannot write %s: %s", path, strerror(errno));
    }
}

/* A pod of no job has a folder of its own (jobs_folder_uid). */
static void on_change(void *arg, const struct store_change *change)
{
    struct sweep *sweep = arg;
    bool job = strcmp(change->key.resource, "pytorchjobs") == 0;
    bool pod = strcmp(change->key.resource, "pods") == 0;
    if (change->kind == STORE_DELETED && (job || (pod && !jobs_owner(change->object)))) {
        const char *uid = doc_text(change->object, "metadata.uid", "");
        const char *lease = jobs_note(change->object, JOB_NOTE_LEASE);
        json_object_set_new(sweep->doomed, uid, json_string(lease ? lease : ""));
        mark(sweep, uid, lease ? lease : "");
    }
}

static void find_left_over(struct sweep *sweep)
{
    muster_auto(free) char *folder = home_file(sweep->home, "jobs");
    DIR *entries = folder ? opendir(folder) : NULL;
    for (struct dirent *e = entries ? readdir(entries) : NULL; e; e = readdir(entries)) {
        muster_auto(free) char *path = *e->d_name == '.' ? NULL : path_of(sweep, e->d_name, MARK);
        muster_auto(free) char *lease = NULL;
        size_t bytes = 0;
        if (path && file_read(path, LEASE_BYTES_MAX, &lease, &bytes, NULL) == 0) {
            json_object_set_new(sweep->doomed, e->d_name, json_string(lease));
        }
    }
    if (entries) {
        closedir(entries);
    }
}

int sweep_new(struct store *store, const struct home *home, const struct leases *leases,
              struct sweep **ret, struct muster_err *err)
{
    struct sweep *sweep = calloc(1, sizeof *sweep);
    json_t *doomed = json_object();
    if (!sweep || !doomed) {
        free(sweep);
        json_decref(doomed);
        return err_no_memory(err);
    }
    *sweep = (struct sweep){.store = store, .home = home, .leases = leases, .doomed = doomed};
    const struct store_watch_options everything = {.after_version = STORE_FROM_NOW};
    int r = store_watch(store, &everything, on_change, sweep, &sweep->watch, err);
    if (r < 0) {
        sweep_free(sweep);
        return r;
    }
    find_left_over(sweep);
    *ret = sweep;
    return 0;
}

struct sweep *sweep_free(struct sweep *sweep)
{
    if (sweep) {
        if (sweep->watch) {
            store_unwatch(sweep->watch);
        }
        json_decref(sweep->doomed);
        free(sweep);
    }
    return NULL;
}

static bool has_pods(const struct sweep *sweep, const char *uid)
{
    const struct store_query pods = {.resource = "pods", .owner_uid = uid, .limit = 1};
    struct store_page page;
    if (store_list(sweep->store, &pods, &page, NULL) < 0) {
        return true; /* who cannot tell waits */
    }
    bool some = json_array_size(page.items) > 0;
    store_page_done(&page);
    return some;
}

/* Supervisor and monitors hold the folder's lock as long as they live. */
static bool in_use(const char *folder)
{
    muster_auto(free) char *path = file_join(folder, "lock");
    muster_auto(close) int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    return fd >= 0 ? flock(fd, LOCK_EX | LOCK_NB) < 0 : errno != ENOENT;
}

/* Whether the folder is gone, or will never go. */
static bool removed(const struct sweep *sweep, const char *uid)
{
    muster_auto(free) char *folder = path_of(sweep, uid, "");
    struct muster_err err = {0};
    if (!folder || in_use(folder)) {
        return false;
    }
    if (file_remove(folder, &err) < 0) {
        log_event(LOG_WARN, "sweep", "%s", err.text);
    }
    return true;
}

void sweep_look(struct sweep *sweep)
{
    const char *uid;
    json_t *lease;
    void *next;
    json_object_foreach_safe (sweep->doomed, next, uid, lease) {
        if (!leases_is_open(sweep->leases, json_string_value(lease)) && !has_pods(sweep, uid) &&
            removed(sweep, uid)) {
            json_object_del(sweep->doomed, uid);
        }
    }
}
