/* See results_folder.h. The manifest is written last into the staged folder and moved last out of
 * it: a staged folder that has one is whole. */
#include "cli/result/results_folder.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define STAGING ".muster-results.new"
#define REPLACED ".muster-results.old"
#define MANIFEST "muster.json"

enum { STATUS_BYTES_MAX = 16 << 20 };

static const char *const parts[] = {"logs", "volumes", "status.json"};
enum { PARTS = sizeof parts / sizeof parts[0] };

static bool has(const char *folder, const char *name)
{
    muster_auto(free) char *path = file_join(folder, name);
    return path && file_exists(path);
}

static int remove_part(const char *folder, const char *name, struct muster_err *err)
{
    muster_auto(free) char *path = file_join(folder, name);
    return path ? file_remove(path, err) : err_no_memory(err);
}

/* Moves a part. A missing part is no error: it was moved before. */
static int move_part(const char *from, const char *to, const char *name, struct muster_err *err)
{
    muster_auto(free) char *old_path = file_join(from, name);
    muster_auto(free) char *new_path = file_join(to, name);
    if (!old_path || !new_path) {
        return err_no_memory(err);
    }
    return rename(old_path, new_path) == 0 || errno == ENOENT
               ? 0
               : file_fail(err, MUSTER_ECREATE, "replace", new_path);
}

static int read_manifest(const char *folder, json_t **ret)
{
    muster_auto(free) char *path = file_join(folder, MANIFEST);
    muster_auto(free) char *text = NULL;
    size_t bytes = 0;
    int r = path ? file_read(path, STATUS_BYTES_MAX, &text, &bytes, NULL) : MUSTER_ENOMEM;
    return r < 0 ? r : doc_parse(text, bytes, ret, NULL);
}

static bool names_part(const json_t *manifest, const char *part)
{
    return doc_has_text(doc_at(manifest, "parts"), part);
}

/* Exchanges the parts. A part that the manifest names and that is no longer staged was exchanged
 * before: so after each rename, this can be started again from the beginning. */
static int exchange(const char *path, const char *staging, const json_t *manifest,
                    struct muster_err *err)
{
    muster_auto(free) char *replaced = file_join(path, REPLACED);
    int r = replaced ? file_mkdir(replaced, 0777, err) : err_no_memory(err);
    for (size_t i = 0; i < PARTS && r == 0; i++) {
        if (has(staging, parts[i]) || !names_part(manifest, parts[i])) {
            r = move_part(path, replaced, parts[i], err);
        }
        r = r < 0 ? r : move_part(staging, path, parts[i], err);
    }
    r = r < 0 ? r : move_part(staging, path, MANIFEST, err);
    r = r < 0 ? r : remove_part(path, STAGING, err);
    return r < 0 ? r : remove_part(path, REPLACED, err);
}

/* Finishes what an earlier run left half done if its copy is whole, else deletes it. */
static int recover(const char *path, const char *staging, struct muster_err *err)
{
    muster_auto(doc) json_t *manifest = NULL;
    if (read_manifest(staging, &manifest) == 0) {
        return exchange(path, staging, manifest, err);
    }
    int r = remove_part(path, STAGING, err);
    return r < 0 ? r : remove_part(path, REPLACED, err);
}

/* Whether a run has written this folder. Folders from before the manifest was introduced have the
 * job in status.json. */
static bool is_ours(const char *path)
{
    muster_auto(doc) json_t *doc = NULL;
    muster_auto(free) char *status = file_join(path, "status.json");
    muster_auto(free) char *text = NULL;
    size_t bytes = 0;
    if (read_manifest(path, &doc) == 0) {
        return doc_at(doc, "parts") != NULL;
    }
    return status && file_read(status, STATUS_BYTES_MAX, &text, &bytes, NULL) == 0 &&
           doc_parse(text, bytes, &doc, NULL) == 0 &&
           strcmp(doc_text(doc, "kind", ""), "PyTorchJob") == 0;
}

static int refuse_foreign(const char *path, struct muster_err *err)
{
    bool ours = is_ours(path);
    for (size_t i = 0; i < PARTS && !ours; i++) {
        if (has(path, parts[i])) {
            return muster_fail(
                err, MUSTER_EEXIST,
                "%s/%s already exists and was not written by muster run: choose another folder "
                "for --results, or remove it",
                path, parts[i]);
        }
    }
    if (!ours && has(path, MANIFEST)) {
        return muster_fail(
            err, MUSTER_EEXIST,
            "%s/%s already exists and was not written by muster run: choose another folder for "
            "--results, or remove it",
            path, MANIFEST);
    }
    return 0;
}

static int take_turn(struct results_folder *folder, struct muster_err *err)
{
    folder->lock_fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (folder->lock_fd >= 0 && flock(folder->lock_fd, LOCK_EX) < 0) {
        if (errno != EINTR) {
            break; /* the file system has no locks: runs cannot take turns */
        }
    }
    return folder->lock_fd >= 0 ? 0 : file_fail(err, MUSTER_ECREATE, "open", folder->path);
}

static int prepare(struct results_folder *folder, struct muster_err *err)
{
    int r = file_mkdir(folder->path, 0777, err);
    if (r == 0 && access(folder->path, W_OK | X_OK) < 0) {
        r = file_fail(err, MUSTER_ECREATE, "write to", folder->path);
    }
    r = r < 0 ? r : take_turn(folder, err);
    r = r < 0 ? r : recover(folder->path, folder->staging, err);
    return r < 0 ? r : refuse_foreign(folder->path, err);
}

static int open_folder(const char *path, struct results_folder *ret, struct muster_err *err)
{
    *ret = (struct results_folder){
        .path = strdup(path), .staging = file_join(path, STAGING), .lock_fd = -1};
    int r = ret->path && ret->staging ? prepare(ret, err) : err_no_memory(err);
    if (r < 0) {
        results_folder_done(ret);
    }
    return r;
}

int results_folder_check(const char *path, struct muster_err *err)
{
    struct results_folder folder;
    int r = open_folder(path, &folder, err);
    if (r == 0) {
        results_folder_done(&folder);
    }
    return r;
}

int results_folder_begin(const char *path, struct results_folder *ret, struct muster_err *err)
{
    struct results_folder folder;
    int r = open_folder(path, &folder, err);
    if (r < 0) {
        return r;
    }
    r = file_mkdir(folder.staging, 0777, err);
    if (r < 0) {
        results_folder_done(&folder);
        return r;
    }
    *ret = folder;
    return 0;
}

int results_folder_commit(struct results_folder *folder, const json_t *manifest,
                          struct muster_err *err)
{
    muster_auto(free) char *path = file_join(folder->staging, MANIFEST);
    muster_auto(doc) json_t *whole = json_deep_copy(manifest);
    json_t *list = json_array();
    for (size_t i = 0; i < PARTS; i++) {
        if (has(folder->staging, parts[i])) {
            json_array_append_new(list, json_string(parts[i]));
        }
    }
    if (!path || !whole || doc_set(whole, "parts", list) < 0) {
        return err_no_memory(err);
    }
    muster_auto(free) char *text = doc_print_pretty(whole);
    int r = text ? file_write(path, text, strlen(text), 0644, err) : err_no_memory(err);
    return r < 0 ? r : exchange(folder->path, folder->staging, whole, err);
}

void results_folder_done(struct results_folder *folder)
{
    if (folder->lock_fd >= 0) {
        if (!has(folder->staging, MANIFEST)) {
            (void)file_remove(folder->staging, NULL); /* the next run would do it as well */
        }
        close(folder->lock_fd);
    }
    free(folder->path);
    free(folder->staging);
    *folder = (struct results_folder){.lock_fd = -1};
}
