/* See folder.h. */
#include "client/checkpoint/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The folder ---- */

int folder_open(const char *path, char **ret, struct muster_err *err)
{
    if (mkdir(path, 0777) < 0 && errno != EEXIST) {
        return muster_fail(err, MUSTER_ECREATE, "cannot make the folder of checkpoints %s: %s",
                           path, strerror(errno));
    }
    struct stat info;
    *ret = realpath(path, NULL);
    bool is_file = *ret && stat(*ret, &info) == 0 && !S_ISDIR(info.st_mode);
    if (is_file) {
        errno = ENOTDIR; /* access() would fail for missing rights, or succeed for a program */
    }
    if (is_file || !*ret || access(*ret, R_OK | W_OK | X_OK) < 0) {
        return muster_fail(err, MUSTER_ECREATE, "checkpoints cannot be kept in %s: %s", path,
                           strerror(errno));
    }
    return 0;
}

/* Returns the name of the next file of the job, or NULL if there is none or the folder cannot be
 * read. */
static const char *next_of_job(DIR *folder, uint64_t lineage, struct checkpoint_name *ret,
                               bool *ret_part)
{
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (checkpoint_name_read(entry->d_name, ret, ret_part) &&
            checkpoint_same_job(ret->lineage, lineage)) {
            return entry->d_name;
        }
    }
    return NULL;
}

bool folder_has_job(const char *folder, uint64_t lineage)
{
    DIR *opened = opendir(folder);
    struct checkpoint_name name;
    bool part, found = false;
    while (opened && !found && next_of_job(opened, lineage, &name, &part)) {
        found = !part;
    }
    if (opened) {
        closedir(opened);
    }
    return found;
}

/* ---- What is kept ---- */

static bool is_known(const struct folder_known *known, const struct checkpoint_name *name)
{
    for (size_t i = 0; i < known->count; i++) {
        const struct checkpoint_name *k = &known->list[i];
        if (k->lineage == name->lineage && k->version == name->version &&
            k->checksum == name->checksum) {
            return true;
        }
    }
    return false;
}

/* Returns how many known checkpoints are newer than this one. */
static size_t rank_of(const struct folder_known *known, const struct checkpoint_name *name)
{
    size_t newer = 0;
    for (size_t i = 0; i < known->count; i++) {
        newer += known->list[i].version > name->version;
    }
    return newer;
}

/* Counts the files that are older than all known checkpoints and newer than this one. */
static size_t count_between(const char *folder, const struct folder_known *known,
                            const struct checkpoint_name *name)
{
    DIR *opened = opendir(folder);
    struct checkpoint_name other;
    size_t found = 0;
    bool part;
    while (opened && next_of_job(opened, known->lineage, &other, &part)) {
        found += !part && other.version < known->list[0].version && other.version > name->version;
    }
    if (opened) {
        closedir(opened);
    }
    return found;
}

static bool is_kept(const char *folder, const struct folder_known *known,
                    const struct checkpoint_name *name, bool part, uint32_t keep)
{
    uint64_t newest = known->list[known->count - 1].version;
    if (name->version > newest) {
        return name->lineage == known->lineage; /* otherwise its log was cut */
    }
    if (part) {
        return false;
    }
    if (is_known(known, name)) {
        return rank_of(known, name) < keep;
    }
    return name->version < known->list[0].version && keep > known->count &&
           count_between(folder, known, name) < keep - known->count;
}

void folder_prune(const char *folder, const struct folder_known *known, uint32_t keep)
{
    DIR *opened = opendir(folder);
    struct checkpoint_name name;
    const char *file;
    bool part;
    while (opened && (file = next_of_job(opened, known->lineage, &name, &part))) {
        if (!is_kept(folder, known, &name, part, keep)) {
            (void)unlinkat(dirfd(opened), file, 0);
        }
    }
    if (opened) {
        closedir(opened);
    }
}
