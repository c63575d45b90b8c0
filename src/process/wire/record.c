/* See record.h. */
#include "process/wire/record.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { RECORD_BYTES_MAX = 1 << 20, LEVELS = 3 };

static size_t part_length(const char *part)
{
    size_t length = strcspn(part, "/");
    return part[0] == '.' || length > 255 ? 0 : length;
}

bool record_id_valid(const char *id)
{
    const char *at = id;
    for (int level = 0; level < LEVELS; level++) {
        size_t length = part_length(at);
        bool last = level == LEVELS - 1;
        if (length == 0 || (at[length] == '\0') != last) {
            return false;
        }
        at += length + (last ? 0 : 1);
    }
    const char *attempt = strrchr(id, '/') + 1;
    return strlen(id) < RECORD_ID_BYTES_MAX && strspn(attempt, "0123456789") == strlen(attempt);
}

char *record_folder(const char *job_folder, const char *id)
{
    char *folder = NULL;
    return asprintf(&folder, "%s/containers/%s", job_folder, id) < 0 ? NULL : folder;
}

static int write_doc(const char *folder, const char *name, const json_t *doc,
                     struct muster_err *err)
{
    muster_auto(free) char *path = file_join(folder, name);
    muster_auto(free) char *text = path ? doc_print(doc) : NULL;
    if (!text) {
        return err_no_memory(err);
    }
    return file_write(path, text, strlen(text), 0600, err);
}

static void sync_folder(const char *folder)
{
    muster_auto(close) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
    }
}

/* link(2) fails if the name exists, so an attempt runs at most once. And the record is complete
 * from the beginning, even if a writer is killed. */
static int create_started(const char *folder, const json_t *started, struct muster_err *err)
{
    muster_auto(free) char *path = file_join(folder, "started.json");
    muster_auto(free) char *draft = file_join(folder, "started.draft");
    if (!path || !draft) {
        return err_no_memory(err);
    }
    int r = write_doc(folder, "started.draft", started, err);
    if (r == 0 && link(draft, path) < 0) {
        r = muster_fail(err, errno == EEXIST ? MUSTER_EEXIST : MUSTER_ECREATE,
                        "cannot create %s: %s", path, strerror(errno));
    }
    (void)unlink(draft);
    sync_folder(folder);
    return r;
}

int record_start(const char *attempt_folder, const json_t *spec, const json_t *started,
                 struct muster_err *err)
{
    muster_auto(free) char *path = file_join(attempt_folder, "started.json");
    if (path && file_exists(path)) {
        return muster_fail(err, MUSTER_EEXIST, "%s was started before", attempt_folder);
    }
    int r = file_mkdir(attempt_folder, 0700, err);
    r = r < 0 ? r : write_doc(attempt_folder, "spec.json", spec, err);
    return r < 0 ? r : create_started(attempt_folder, started, err);
}

int record_running(const char *attempt_folder, const json_t *started, struct muster_err *err)
{
    return write_doc(attempt_folder, "started.json", started, err);
}

int record_exit(const char *attempt_folder, const json_t *exit, struct muster_err *err)
{
    return write_doc(attempt_folder, "exit.json", exit, err);
}

json_t *record_read(const char *attempt_folder, const char *name)
{
    muster_auto(free) char *path = file_join(attempt_folder, name);
    muster_auto(free) char *text = NULL;
    size_t bytes = 0;
    json_t *doc = NULL;
    if (!path || file_read(path, RECORD_BYTES_MAX, &text, &bytes, NULL) < 0) {
        return NULL;
    }
    return doc_parse(text, bytes, &doc, NULL) < 0 ? NULL : doc;
}

/* ---- Walking ---- */

struct walk {
    const char *job_folder;
    int (*each)(void *data, const char *id, const char *attempt_folder);
    void *data;
};

static int visit(const struct walk *walk, const char *id)
{
    muster_auto(free) char *folder = record_folder(walk->job_folder, id);
    muster_auto(free) char *started = folder ? file_join(folder, "started.json") : NULL;
    if (!started || !record_id_valid(id) || !file_exists(started)) {
        return 0;
    }
    return walk->each(walk->data, id, folder);
}

static int walk_level(const struct walk *walk, const char *prefix, int level)
{
    muster_auto(free) char *folder = record_folder(walk->job_folder, prefix);
    DIR *entries = folder ? opendir(folder) : NULL;
    int r = 0;
    for (struct dirent *e = entries ? readdir(entries) : NULL; e && r >= 0; e = readdir(entries)) {
        char id[RECORD_ID_BYTES_MAX];
        int n = snprintf(id, sizeof id, "%s%s%s", prefix, *prefix ? "/" : "", e->d_name);
        if (e->d_name[0] == '.' || n >= (int)sizeof id) {
            continue;
        }
        r = level + 1 == LEVELS ? visit(walk, id) : walk_level(walk, id, level + 1);
    }
    if (entries) {
        closedir(entries);
    }
    return r;
}

int record_each(const char *job_folder,
                int (*each)(void *data, const char *id, const char *attempt_folder), void *data,
                struct muster_err *err)
{
    const struct walk walk = {job_folder, each, data};
    int r = walk_level(&walk, "", 0);
    return r < 0 ? muster_fail(err, r, "reading the records of %s failed", job_folder) : 0;
}
