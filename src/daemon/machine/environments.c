/* See environments.h. */
#include "daemon/machine/environments.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"
#include "daemon/machine/disk.h"
#include "daemon/object/jobs.h"
#include "job/annotations.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ID_DIGITS = 32, UNCLAIMED_MS = 60000, CLEAN_MS = 20000, WRITES_MAX = 64 };

struct environments {
    uv_loop_t *loop;
    struct store *store;
    struct store_watch *watch;
    char *folder;
    int folder_fd;
    struct disk *writes;
    json_t *unclaimed; /* ID → when it was put, by the loop's clock */
    uv_timer_t soon;   /* runs when a job or pod has changed */
    uv_timer_t clean;
};

static bool is_id(const char *id)
{
    return strlen(id) == ID_DIGITS && strspn(id, "0123456789abcdef") == ID_DIGITS;
}

static const char *id_of(const json_t *job)
{
    const char *id = jobs_annotation(job, JOB_ANNOTATION_ENVIRONMENT);
    return id && is_id(id) ? id : NULL;
}

/* ---- Which environments are needed ---- */

static bool has_ended(const json_t *pod)
{
    const char *phase = doc_text(pod, "status.phase", "");
    return strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
}

static bool runs(const struct environments *e, const char *job_uid)
{
    const struct store_query query = {.resource = "pods", .owner_uid = job_uid};
    struct store_page page = {0};
    bool some = false;
    if (store_list(e->store, &query, &page, NULL) < 0) {
        return true; /* without an answer the environment is kept */
    }
    size_t i;
    json_t *pod;
    json_array_foreach (page.items, i, pod) {
        some = some || !has_ended(pod);
    }
    store_page_done(&page);
    return some;
}

/* Returns {ID: true} of all environments that are needed: a new reference, NULL if the store cannot
 * answer. */
static json_t *needed(const struct environments *e)
{
    const struct store_query query = {.resource = "pytorchjobs"};
    struct store_page page = {0};
    json_t *ids = json_object();
    if (!ids || store_list(e->store, &query, &page, NULL) < 0) {
        json_decref(ids);
        return NULL;
    }
    size_t i;
    json_t *job;
    json_array_foreach (page.items, i, job) {
        const char *id = id_of(job);
        if (id && (!jobs_is_finished(job) || runs(e, doc_text(job, "metadata.uid", "")))) {
            json_object_set_new(ids, id, json_true());
        }
    }
    store_page_done(&page);
    return ids;
}

/* Whether a file may still get a job: an environment, or the temporary file for one (ID.new.…). */
static bool may_be_claimed(const struct environments *e, const char *name)
{
    const json_t *since = json_object_getn(e->unclaimed, name, strnlen(name, ID_DIGITS));
    return since && (int64_t)uv_now(e->loop) - json_integer_value(since) < UNCLAIMED_MS;
}

static void clean(struct environments *e)
{
    muster_auto(doc) json_t *ids = needed(e);
    int fd = ids ? openat(e->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    for (struct dirent *d = entries ? readdir(entries) : NULL; d; d = readdir(entries)) {
        if (json_object_get(ids, d->d_name)) {
            json_object_del(e->unclaimed, d->d_name);
        } else if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0 &&
                   !may_be_claimed(e, d->d_name)) {
            json_object_del(e->unclaimed, d->d_name);
            (void)unlinkat(e->folder_fd, d->d_name, 0);
        }
    }
    if (entries) {
        closedir(entries);
    }
}

static void on_timer(uv_timer_t *timer)
{
    clean(timer->data);
}

/* Cleans if a job or pod has ended or was deleted: only then an environment can become unneeded. */
static void on_change(void *arg, const struct store_change *change)
{
    struct environments *e = arg;
    bool over = change->kind == STORE_DELETED;
    if (strcmp(change->key.resource, "pytorchjobs") == 0) {
        over = over || jobs_is_finished(change->object);
    } else if (strcmp(change->key.resource, "pods") == 0) {
        over = over || has_ended(change->object);
    } else {
        return;
    }
    if (over) {
        uv_timer_start(&e->soon, on_timer, 0, 0);
    }
}

/* ---- Life ---- */

static int open_folder(const char *path, int *ret_fd, struct muster_err *err)
{
    struct stat info;
    int r = file_mkdir(path, 0700, err);
    if (r < 0) {
        return r;
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return file_fail(err, MUSTER_ECREATE, "open", path);
    }
    if (fstat(fd, &info) < 0 || info.st_uid != geteuid()) {
        close(fd);
        return muster_fail(err, MUSTER_ECREATE, "%s belongs to somebody else", path);
    }
    *ret_fd = fd;
    return 0;
}

int environments_new(uv_loop_t *loop, struct store *store, const struct home *home,
                     struct environments **ret, struct muster_err *err)
{
    struct environments *e = calloc(1, sizeof *e);
    json_t *unclaimed = json_object();
    char *folder = home_file(home, "environments");
    struct disk *writes = NULL;
    int fd = -1;
    int r =
        e && unclaimed && folder ? disk_new(loop, WRITES_MAX, &writes, err) : err_no_memory(err);
    r = r < 0 ? r : open_folder(folder, &fd, err);
    if (r < 0) {
        disk_free(writes);
        free(folder);
        free(e);
        json_decref(unclaimed);
        return r;
    }
    *e = (struct environments){.loop = loop,
                               .store = store,
                               .folder = folder,
                               .folder_fd = fd,
                               .writes = writes,
                               .unclaimed = unclaimed};
    uv_timer_init(loop, &e->soon);
    uv_timer_init(loop, &e->clean);
    e->soon.data = e->clean.data = e;
    uv_timer_start(&e->clean, on_timer, CLEAN_MS, CLEAN_MS);
    uv_unref((uv_handle_t *)&e->clean);
    const struct store_watch_options everything = {.after_version = STORE_FROM_NOW};
    r = store_watch(store, &everything, on_change, e, &e->watch, err);
    if (r < 0) {
        environments_free(e);
        return r;
    }
    clean(e);
    *ret = e;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct environments *e = handle->data;
    close(e->folder_fd);
    free(e->folder);
    json_decref(e->unclaimed);
    free(e);
}

/* libuv calls the close callbacks in the order of the calls to uv_close. */
void environments_free(struct environments *e)
{
    if (e) {
        if (e->watch) {
            store_unwatch(e->watch);
        }
        disk_free(e->writes);
        clean(e);
        uv_close((uv_handle_t *)&e->soon, NULL);
        uv_close((uv_handle_t *)&e->clean, on_closed);
    }
}

/* ---- Files ---- */

/* A list of variables that is being written. */
struct put {
    struct environments *environments;
    char id[ID_DIGITS + 1];
    char *path;
    char *bytes;
    size_t count;
    int r;
    struct muster_err err;
    environments_put_fn *then;
    void *arg;
};

/* Writes the file: it is whole under its name, or does not exist. */
static void write_list(void *data)
{
    struct put *put = data;
    put->r = file_write(put->path, put->bytes, put->count, 0600, &put->err);
    if (put->r < 0) {
        (void)muster_wrap(&put->err, "cannot keep the job's environment");
    }
}

static void expect_job(struct environments *e, const char *id)
{
    json_object_set_new(e->unclaimed, id, json_integer((json_int_t)uv_now(e->loop)));
}

static void on_written(void *data)
{
    struct put *put = data;
    expect_job(put->environments, put->id);
    put->then(put->arg, put->r, &put->err);
    put->then = NULL;
}

/* Frees the list. If on_written was not called because the program ends, reports the environment as
 * not kept. */
static void drop_put(void *data)
{
    struct put *put = data;
    if (put->then) {
        muster_fail(&put->err, MUSTER_EAGAIN, "the controller is shutting down; try again");
        put->then(put->arg, MUSTER_EAGAIN, &put->err);
    }
    free(put->path);
    free(put->bytes);
    free(put);
}

static int check_list(const char *id, const char *bytes, size_t count, struct muster_err *err)
{
    struct variables v = {0};
    if (!is_id(id)) {
        return muster_fail(err, MUSTER_EINVAL, "an environment is named by %d hexadecimal digits",
                           ID_DIGITS);
    }
    int r = variables_parse(bytes, count, &v, err);
    variables_done(&v);
    return r;
}

static struct put *new_put(struct environments *e, const char *id, const char *bytes, size_t count)
{
    struct put *put = calloc(1, sizeof *put);
    if (!put) {
        return NULL;
    }
    put->environments = e;
    put->path = file_join(e->folder, id);
    put->bytes = malloc(count + 1);
    put->count = count;
    if (!put->path || !put->bytes) {
        drop_put(put);
        return NULL;
    }
    memcpy(put->bytes, bytes, count);
    memcpy(put->id, id, ID_DIGITS);
    return put;
}

int environments_put(struct environments *e, const char *id, const char *bytes, size_t count,
                     environments_put_fn *then, void *arg, struct muster_err *err)
{
    int r = check_list(id, bytes, count, err);
    if (r < 0) {
        return r;
    }
    struct put *put = new_put(e, id, bytes, count);
    if (!put) {
        return err_no_memory(err);
    }
    put->then = then;
    put->arg = arg;
    expect_job(e, id); /* protects the file, and the temporary file through which it is written */
    const struct disk_task task = {write_list, on_written, drop_put, put};
    disk_do(e->writes, &task);
    return 0;
}

void environments_withdraw(struct environments *e, const char *id)
{
    json_object_del(e->unclaimed, id);
    clean(e);
}

char *environments_path(const struct home *home, const json_t *job)
{
    const char *id = id_of(job);
    char *path = NULL;
    return id && asprintf(&path, "%s/environments/%s", home->path, id) >= 0 ? path : NULL;
}

bool environments_has(const struct home *home, const json_t *job)
{
    muster_auto(free) char *path = environments_path(home, job);
    return path && file_exists(path);
}

char *environments_value(const struct home *home, const json_t *job, const char *name)
{
    muster_auto(free) char *path = environments_path(home, job);
    struct variables v = {0};
    if (!path || variables_read(path, &v, NULL) < 0) {
        return NULL;
    }
    const char *value = variables_value(v.given, name);
    value = value ? value : variables_value(v.shell, name);
    char *copy = value ? strdup(value) : NULL;
    variables_done(&v);
    return copy;
}
