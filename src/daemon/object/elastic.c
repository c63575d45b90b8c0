/* See elastic.h. */
#include "daemon/object/elastic.h"

#include "base/build.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/file.h"
#include "daemon/object/jobs.h"
#include "job/annotations.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The file ---- */

static int refuse(struct muster_err *err, const char *why)
{
    return muster_fail(err, MUSTER_EDATA, "the coordinator's " ELASTIC_STATUS_FILE " %s", why);
}

static int read_open(int fd, char *room, size_t *ret_count, struct muster_err *err)
{
    struct stat info;
    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode)) {
        return refuse(err, "is no file");
    }
    ssize_t count = read(fd, room, ELASTIC_BYTES_MAX + 1);
    if (count < 0) {
        return refuse(err, strerror(errno));
    }
    *ret_count = (size_t)count;
    return count > ELASTIC_BYTES_MAX ? refuse(err, "is too large") : 0;
}

/* Reads the file. A rank can put anything in its place; the controller must not wait for a pipe to
 * which no program writes. */
static int read_file(const char *path, char *room, size_t *ret_count, struct muster_err *err)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT
                   ? muster_fail(err, MUSTER_ENOENT, "the coordinator has not said anything yet")
                   : refuse(err, strerror(errno));
    }
    int r = read_open(fd, room, ret_count, err);
    close(fd);
    return r;
}

/* ---- What is copied to the status ---- */

static bool is_small_text(const json_t *value, size_t most)
{
    return json_is_string(value) && json_string_length(value) <= most;
}

static void take(struct build *b, json_t *to, const json_t *from, const char *const *numbers,
                 const char *const *texts)
{
    for (; *numbers; numbers++) {
        json_t *value = json_object_get(from, *numbers);
        if (json_is_integer(value) && json_integer_value(value) >= 0) {
            build_set(b, to, *numbers, json_incref(value));
        }
    }
    for (; *texts; texts++) {
        json_t *value = json_object_get(from, *texts);
        if (is_small_text(value, ELASTIC_TEXT_MAX)) {
            build_set(b, to, *texts, json_incref(value));
        }
    }
}

static void take_message(struct build *b, json_t *to, const json_t *from)
{
    json_t *value = json_object_get(from, "message");
    if (is_small_text(value, ELASTIC_WHY_BYTES - 1)) {
        build_set(b, to, "message", json_incref(value));
    }
}

/* Copies a list: of recoveries, slow workers, records that are set aside, or leased data sets. */
static void take_list(struct build *b, json_t *to, const json_t *from, const char *key)
{
    static const char *const numbers[] = {
        "ms",          "others", "lagMs", "percent", "records", "totalRecords", "recordsPerSecond",
        "secondsLeft", "record", "epoch", "deaths",  "version", "lostSteps",    NULL};
    static const char *const texts[] = {"at",   "kind", "worker",  "phase",
                                        "name", "task", "dataset", NULL};
    json_t *list = build_array_at(b, to, key);
    size_t i;
    json_t *each;
    json_array_foreach (json_object_get(from, key), i, each) {
        if (i < ELASTIC_LIST_MAX) {
            json_t *entry = build_value(b, json_object());
            take(b, entry, each, numbers, texts);
            build_add(b, list, entry);
        }
    }
}

static json_t *taken(const json_t *from)
{
    static const char *const numbers[] = {"generation",   "workers",
                                          "joining",      "lost",
                                          "steps",        "epoch",
                                          "epochs",       "records",
                                          "totalRecords", "recordsPerSecond",
                                          "secondsLeft",  "term",
                                          "maxSteps",     NULL};
    static const char *const texts[] = {"phase", "updated", NULL};
    static const char *const lists[] = {"setAside", "datasets", NULL};
    struct build b = {0};
    json_t *to = build_value(&b, json_object());
    take(&b, to, from, numbers, texts);
    take_list(&b, to, from, "recoveries");
    take_list(&b, to, from, "slow");
    for (const char *const *key = lists; *key; key++) {
        if (json_array_size(json_object_get(from, *key)) > 0) {
            take_list(&b, to, from, *key);
        }
    }
    take_message(&b, to, from);
    return build_end(&b, to);
}

static int read_status(const char *path, json_t **ret, struct muster_err *err)
{
    muster_auto(free) char *room = malloc(ELASTIC_BYTES_MAX + 1);
    muster_auto(doc) json_t *from = NULL;
    size_t count = 0;
    int r = room ? read_file(path, room, &count, err)
                 : muster_fail(err, MUSTER_ENOMEM, "out of memory");
    if (r == 0 && (doc_parse(room, count, &from, NULL) < 0 || !json_is_object(from))) {
        r = refuse(err, "is damaged");
    }
    *ret = r == 0 ? taken(from) : NULL;
    return r;
}

void elastic_failure(const char *folder, char ret[ELASTIC_WHY_BYTES])
{
    muster_auto(free) char *path = file_join(folder, ELASTIC_STATUS_FILE);
    muster_auto(doc) json_t *status = NULL;
    bool failed = path && read_status(path, &status, NULL) == 0 &&
                  strcmp(doc_text(status, "phase", ""), "Failed") == 0;
    (void)snprintf(ret, ELASTIC_WHY_BYTES, "%s", failed ? doc_text(status, "message", "") : "");
}

void elastic_add(const struct home *home, json_t *job)
{
    struct muster_err err = MUSTER_ERR_INIT;
    muster_auto(free) char *path = NULL;
    json_t *status = NULL;
    if (!jobs_annotation(job, JOB_ANNOTATION_COORDINATOR) ||
        asprintf(&path, "%s/jobs/%s/" ELASTIC_STATUS_FILE, home->path,
                 doc_text(job, "metadata.uid", "")) < 0) {
        path = NULL;
        return;
    }
    if (read_status(path, &status, &err) < 0) {
        status = json_pack("{s:s}", "message", err.text);
    }
    (void)doc_set(job, "status.elastic", status);
}
