/* See home.h. */
#include "base/home.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "core/hash.h"

#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* In /tmp, anybody could have made the folder and could answer in place of the controller. */
static int check_private(const char *folder, struct muster_err *err)
{
    struct stat info;
    bool ours = lstat(folder, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
                (info.st_mode & (S_IRWXG | S_IRWXO)) == 0;
    return ours ? 0
                : muster_fail(err, MUSTER_ECREATE,
                              "%s is not ours alone: have it removed, or set MUSTER_HOME to a "
                              "folder of yours with a short path",
                              folder);
}

/* A user without a home gets a folder in /tmp, which must belong to that user alone. */
static int choose_in_tmp(char **ret, struct muster_err *err)
{
    muster_auto(free) char *folder = NULL;
    if (asprintf(&folder, "/tmp/muster-home-%u", (unsigned)geteuid()) < 0) {
        folder = NULL;
        return err_no_memory(err);
    }
    int r = file_mkdir(folder, 0700, err);
    r = r < 0 ? r : check_private(folder, err);
    if (r == 0) {
        *ret = muster_take(folder);
    }
    return r;
}

/* A home folder that does not exist is a mistake, or marks a user who must not write anything. */
static int choose_in_home(const char *user_home, char **ret, struct muster_err *err)
{
    struct stat info;
    if (stat(user_home, &info) < 0 || !S_ISDIR(info.st_mode)) {
        return muster_fail(err, MUSTER_ECREATE,
                           "the home folder %s is not there: set HOME, or MUSTER_HOME to a folder "
                           "of yours",
                           user_home);
    }
    *ret = file_join(user_home, ".local/state/muster");
    return *ret ? 0 : err_no_memory(err);
}

/* Returns the folder's name from the environment; it may be relative. */
static int choose(char **ret, struct muster_err *err)
{
    const char *set = getenv("MUSTER_HOME");
    const char *state = getenv("XDG_STATE_HOME");
    if ((set && *set) || (state && *state == '/')) {
        *ret = set && *set ? strdup(set) : file_join(state, "muster");
        return *ret ? 0 : err_no_memory(err);
    }
    const char *user_home = getenv("HOME");
    if (!user_home || *user_home != '/') {
        const struct passwd *user = getpwuid(getuid());
        user_home = user ? user->pw_dir : NULL;
    }
    return user_home ? choose_in_home(user_home, ret, err) : choose_in_tmp(ret, err);
}

static int place_socket(struct home *home, struct muster_err *err)
{
    char *path = home_file(home, "api.sock");
    if (path && strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path) {
        free(path);
        muster_auto(free) char *folder = NULL;
        if (asprintf(&folder, "/tmp/muster-%u-%016llx", (unsigned)getuid(),
                     (unsigned long long)hash_text(HASH_START, home->path)) < 0) {
            folder = NULL;
            return err_no_memory(err);
        }
        int r = file_mkdir(folder, 0700, err);
        r = r < 0 ? r : check_private(folder, err);
        if (r < 0) {
            return r;
        }
        path = file_join(folder, "api.sock");
    }
    if (!path) {
        return err_no_memory(err);
    }
    home->socket = path;
    return 0;
}

/* SQLite's limit of 512 bytes, less "/store.db" and "-journal". */
static int check_length(const char *path, struct muster_err *err)
{
    size_t length = strlen(path);
    return length <= HOME_PATH_BYTES_MAX
               ? 0
               : muster_fail(
                     err, MUSTER_ECREATE,
                     "the path of the state folder has %zu bytes, and the store takes %d at "
                     "most; set MUSTER_HOME to a shorter one: %.100s…",
                     length, HOME_PATH_BYTES_MAX, path);
}

static int make(struct home *home, struct muster_err *err)
{
    muster_auto(free) char *chosen = NULL;
    int r = choose(&chosen, err);
    if (r < 0) {
        return r;
    }
    struct muster_err why = MUSTER_ERR_INIT;
    if ((r = file_mkdir(chosen, 0700, &why)) < 0) {
        return muster_fail(err, r, "%s; set MUSTER_HOME to a folder of yours", why.text);
    }
    home->path = realpath(chosen, NULL);
    if (!home->path || access(home->path, W_OK) < 0) {
        return muster_fail(err, MUSTER_ECREATE,
                           "cannot write to %s: %s; set MUSTER_HOME to a folder of yours", chosen,
                           strerror(errno));
    }
    r = check_length(home->path, err);
    return r < 0 ? r : place_socket(home, err);
}

int home_open(struct home *ret, struct muster_err *err)
{
    struct home home = {0};
    int r = make(&home, err);
    if (r < 0) {
        home_done(&home);
        return r;
    }
    *ret = home;
    return 0;
}

void home_done(struct home *home)
{
    free(home->path);
    free(home->socket);
    *home = (struct home){0};
}

char *home_file(const struct home *home, const char *name)
{
    return file_join(home->path, name);
}
