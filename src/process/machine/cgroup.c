/* See cgroup.h. Version 1 keeps one tree per controller; version 2 has one tree, and a controller
 * serves only groups whose parent delegates it and holds no process itself. */
#include "process/machine/cgroup.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PERIOD_US = 100000 };

static const char *const controllers[CGROUP_KINDS] = {"memory", "cpu"};
static const char *const limit_v1[CGROUP_KINDS] = {"memory.limit_in_bytes", "cpu.cfs_quota_us"};
static const char *const limit_v2[CGROUP_KINDS] = {"memory.max", "cpu.max"};

/* ---- Small files ---- */

static bool put(const char *folder, const char *name, const char *text)
{
    muster_auto(free) char *path = file_join(folder, name);
    muster_auto(close) int fd = path ? open(path, O_WRONLY | O_CLOEXEC) : -1;
    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

static bool has(const char *folder, const char *name)
{
    muster_auto(free) char *path = file_join(folder, name);
    return path && file_exists(path);
}

static bool may_write(const char *folder, const char *name)
{
    muster_auto(free) char *path = file_join(folder, name);
    return path && access(path, W_OK) == 0;
}

/* ---- Where the job's group is made ---- */

/* A group that existed before is not removed on failure: in version 2 it may serve another
 * controller. */
static bool make_group(const char *parent, const char *name, const char *limit, char **ret)
{
    char *folder = file_join(parent, name);
    bool made = folder && mkdir(folder, 0755) == 0;
    if ((made || (folder && errno == EEXIST)) && may_write(folder, limit)) {
        *ret = folder;
        return true;
    }
    if (made) {
        (void)rmdir(folder);
    }
    free(folder);
    return false;
}

static bool place_v1(struct cgroup_job *job, enum cgroup_kind kind, const char *root,
                     const char *own, const char *name)
{
    muster_auto(free) char *tree = cgroup_v1_root(root, own, controllers[kind]);
    muster_auto(free) char *path = cgroup_own_path(own, controllers[kind]);
    muster_auto(free) char *parent = NULL;
    if (!tree || !path || asprintf(&parent, "%s%s", tree, path) < 0) {
        parent = NULL;
        return false;
    }
    return make_group(parent, name, limit_v1[kind], &job->folder[kind]);
}

static void delegate(const char *folder, enum cgroup_kind kind)
{
    char text[16];
    (void)snprintf(text, sizeof text, "+%s", controllers[kind]);
    (void)put(folder, "cgroup.subtree_control", text);
}

/* A group has only the controllers that every group above it hands down. A write to a group that is
 * not ours fails and is ignored: the group may already hand down what is needed. */
static void delegate_down_to(const char *root, const char *folder, enum cgroup_kind kind)
{
    muster_auto(free) char *path = strdup(folder);
    for (char *end = path ? path + strlen(root) : NULL; end; end += 1 + strcspn(end + 1, "/")) {
        char next = *end;
        *end = '\0';
        delegate(path, kind);
        if (next == '\0') {
            return;
        }
        *end = next;
    }
}

/* Returns the group in which to make the job's group: our own group if it is the root, since only
 * the root may hold processes and hand controllers down too; else the one above it. NULL: that
 * group is not visible, as in a container. In the kernel's hierarchy only the root has no
 * cgroup.type. The caller frees. */
static char *parent_v2(const char *root, const char *own)
{
    muster_auto(free) char *path = cgroup_own_path(own, "");
    bool at_top = path && strcmp(path, "/") == 0;
    char *parent = NULL;
    if (!path || asprintf(&parent, "%s%s", root, at_top ? "" : path) < 0) {
        return NULL;
    }
    if (!has(parent, "cgroup.type")) {
        return parent;
    }
    if (at_top) {
        free(parent);
        return NULL;
    }
    *strrchr(parent, '/') = '\0';
    return parent;
}

static bool place_v2(struct cgroup_job *job, enum cgroup_kind kind, const char *root,
                     const char *own, const char *name)
{
    muster_auto(free) char *parent = parent_v2(root, own);
    if (!parent) {
        return false;
    }
    delegate_down_to(root, parent, kind);
    if (!make_group(parent, name, limit_v2[kind], &job->folder[kind])) {
        return false;
    }
    delegate(job->folder[kind], kind);
    job->v2[kind] = true;
    return true;
}

/* ---- Public ---- */

static void remove_children(const char *folder)
{
    DIR *entries = opendir(folder);
    for (struct dirent *e = entries ? readdir(entries) : NULL; e; e = readdir(entries)) {
        if (e->d_type == DT_DIR && e->d_name[0] != '.') {
            (void)unlinkat(dirfd(entries), e->d_name, AT_REMOVEDIR);
        }
    }
    if (entries) {
        closedir(entries);
    }
}

void cgroup_job_init(struct cgroup_job *job, const char *root, const char *own, const char *name)
{
    muster_auto(free) char *unified = NULL;
    const char *root2 = cgroup_v2_root(root, &unified);
    *job = (struct cgroup_job){0};
    for (enum cgroup_kind kind = 0; kind < CGROUP_KINDS; kind++) {
        if (place_v1(job, kind, root, own, name) || place_v2(job, kind, root2, own, name)) {
            remove_children(job->folder[kind]);
            continue;
        }
        const char *hint = geteuid() != 0 && has(root2, "cgroup.procs")
                               ? "; with systemd, systemd-run --user --scope starts muster where "
                                 "one can"
                               : "";
        (void)snprintf(job->why_not, sizeof job->why_not,
                       "no control group with %s can be made under %s%s", controllers[kind], root,
                       hint);
    }
}

void cgroup_job_done(struct cgroup_job *job)
{
    for (enum cgroup_kind kind = 0; kind < CGROUP_KINDS; kind++) {
        if (job->folder[kind]) {
            remove_children(job->folder[kind]);
            (void)rmdir(job->folder[kind]);
        }
        free(job->folder[kind]);
    }
    *job = (struct cgroup_job){0};
}

static bool limit(const char *folder, bool v2, enum cgroup_kind kind, int64_t value)
{
    char text[64];
    if (kind == CGROUP_MEMORY) {
        (void)snprintf(text, sizeof text, "%" PRId64, value);
        bool done = put(folder, v2 ? "memory.max" : "memory.limit_in_bytes", text);
        /* Without this a process over its limit swaps instead of being killed. Not every kernel
         * accounts for swap. */
        (void)put(folder, v2 ? "memory.swap.max" : "memory.memsw.limit_in_bytes", v2 ? "0" : text);
        return done;
    }
    int64_t quota_us = value * PERIOD_US / 1000;
    quota_us = quota_us < 1000 ? 1000 : quota_us; /* the smallest value that the kernel takes */
    (void)snprintf(text, sizeof text, v2 ? "%" PRId64 " %d" : "%" PRId64, quota_us, PERIOD_US);
    if (!v2) {
        char period[16];
        (void)snprintf(period, sizeof period, "%d", PERIOD_US);
        (void)put(folder, "cpu.cfs_period_us", period);
    }
    return put(folder, v2 ? "cpu.max" : "cpu.cfs_quota_us", text);
}

static int say_not_enforced(const bool failed[CGROUP_KINDS], const char *why,
                            struct muster_err *err)
{
    if (failed[CGROUP_MEMORY] && failed[CGROUP_CPU]) {
        return muster_fail(err, MUSTER_EUNSUPPORTED,
                           "the memory and cpu limits are not enforced: %s", why);
    }
    return muster_fail(err, MUSTER_EUNSUPPORTED, "the %s limit is not enforced: %s",
                       controllers[failed[CGROUP_MEMORY] ? CGROUP_MEMORY : CGROUP_CPU], why);
}

int cgroup_init(struct cgroup *group, const struct cgroup_job *job, const char *name,
                const struct cgroup_limits *limits, struct muster_err *err)
{
    const int64_t wanted[CGROUP_KINDS] = {limits->memory_bytes, limits->cpu_millis};
    bool failed[CGROUP_KINDS] = {false};
    const char *why = NULL;
    *group = (struct cgroup){0};
    for (enum cgroup_kind kind = 0; kind < CGROUP_KINDS; kind++) {
        bool v2 = job->v2[kind];
        if (wanted[kind] == 0) {
            continue;
        }
        bool made = job->folder[kind] &&
                    make_group(job->folder[kind], name, v2 ? limit_v2[kind] : limit_v1[kind],
                               &group->folder[kind]);
        group->v2[kind] = v2;
        if (!made || !limit(group->folder[kind], v2, kind, wanted[kind])) {
            failed[kind] = true;
            why = made ? "the kernel refuses the value" : job->why_not;
        }
    }
    return why ? say_not_enforced(failed, why, err) : 0;
}

void cgroup_done(struct cgroup *group)
{
    for (enum cgroup_kind kind = 0; kind < CGROUP_KINDS; kind++) {
        if (group->folder[kind]) {
            (void)rmdir(group->folder[kind]); /* a busy group is removed with the job's */
        }
        free(group->folder[kind]);
    }
    *group = (struct cgroup){0};
}

/* In version 2 the caller must also be able to write to the common parent of both groups, and
 * neither group may be threaded. */
static int cannot_enter(enum cgroup_kind kind, int why, struct muster_err *err)
{
    bool not_permitted = why == EACCES || why == EPERM || why == EROFS || why == EOPNOTSUPP;
    return muster_fail(err, not_permitted ? MUSTER_EUNSUPPORTED : MUSTER_EOS,
                       "the %s limit is not enforced: its control group cannot be entered: %s",
                       controllers[kind], strerror(why));
}

int cgroup_entrance(const struct cgroup *group, enum cgroup_kind kind, int *ret_fd,
                    struct muster_err *err)
{
    *ret_fd = -1;
    if (!group->folder[kind]) {
        return 0;
    }
    muster_auto(free) char *path = file_join(group->folder[kind], "cgroup.procs");
    int fd = path ? open(path, O_WRONLY | O_CLOEXEC) : -1;
    if (fd < 0) {
        return cannot_enter(kind, path ? errno : ENOMEM, err);
    }
    *ret_fd = fd;
    return 0;
}

int cgroup_enter(enum cgroup_kind kind, int entrance_fd, struct muster_err *err)
{
    return entrance_fd < 0 || write(entrance_fd, "0", 1) == 1 ? 0 : cannot_enter(kind, errno, err);
}
