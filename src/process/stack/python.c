/* See python.h. */
#include "process/stack/python.h"

#include "base/cleanup.h"
#include "process/stack/text.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STATUS_BYTES_MAX = 8192, THREADS_MAX = 4096 };

/* ---- Reading /proc ---- */

/* Whether a field of /proc/PID/status, a mask of signals, has the signal. */
static bool has_signal(const char *status, const char *field)
{
    const char *at = strstr(status, field);
    uint64_t mask = 0;
    return at && sscanf(at + strlen(field), " %" SCNx64, &mask) == 1 &&
           mask & 1ULL << (PYTHON_STACKS_SIGNAL - 1);
}

static bool read_status(pid_t pid, pid_t thread, char status[STATUS_BYTES_MAX])
{
    char name[64];
    (void)snprintf(name, sizeof name, "task/%d/status", (int)thread);
    size_t used = descendants_read(pid, name, status, STATUS_BYTES_MAX - 1);
    status[used] = '\0';
    return used > 0;
}

static bool is_ours(pid_t pid, const char *thread)
{
    char name[300], comm[32];
    (void)snprintf(name, sizeof name, "task/%s/comm", thread);
    size_t used = descendants_read(pid, name, comm, sizeof comm - 1);
    comm[used] = '\0';
    return strcmp(comm, "muster-stacks\n") == 0;
}

/* Returns the thread that answers requests for stacks; 0: there is none. */
static pid_t find_thread(pid_t pid)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    pid_t found = 0;
    int looked = 0;
    for (struct dirent *e = folder ? readdir(folder) : NULL; e && !found && looked < THREADS_MAX;
         e = readdir(folder)) {
        looked++;
        if (e->d_name[0] != '.' && is_ours(pid, e->d_name)) {
            found = (pid_t)strtol(e->d_name, NULL, 10);
        }
    }
    if (folder) {
        closedir(folder);
    }
    return found;
}

/* Opens the memory file that the process has among its descriptors; -1: it has none. */
static int open_file(pid_t pid)
{
    char path[64], link[64];
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *folder = opendir(path);
    int fd = -1;
    for (struct dirent *e = folder ? readdir(folder) : NULL; e && fd < 0; e = readdir(folder)) {
        ssize_t length = readlinkat(dirfd(folder), e->d_name, link, sizeof link - 1);
        link[length < 0 ? 0 : length] = '\0';
        if (strcmp(link, "/memfd:muster-stacks (deleted)") == 0) {
            fd = openat(dirfd(folder), e->d_name, O_RDWR | O_CLOEXEC);
        }
    }
    if (folder) {
        closedir(folder);
    }
    return fd;
}

/* ---- Asking ---- */

/* The signal's default action is to kill: only a process that catches it may get it. */
static int check(const struct descendant *process, pid_t thread, struct muster_err *err)
{
    char status[STATUS_BYTES_MAX];
    if (process->state == 'T' || process->state == 't') {
        return muster_fail(err, MUSTER_EAGAIN,
                           "%s: no stacks until it is continued (kill -CONT %d)",
                           process->state == 'T' ? "stopped (SIGSTOP)" : "stopped by a debugger",
                           (int)process->pid);
    }
    if (thread <= 0 || !read_status(process->pid, thread, status) ||
        !has_signal(status, "SigCgt:")) {
        return muster_fail(err, MUSTER_EUNSUPPORTED,
                           "not a Python process with muster's handler: no stacks");
    }
    return 0;
}

/* The pidfd is taken before the check and closed after the signal, so the number refers to the same
 * process throughout. A thread keeps its process's number as long as that process lives. */
static int send_signal(const struct descendant *process, pid_t thread, struct muster_err *err)
{
    muster_auto(close) int pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    int r = pidfd < 0 ? muster_fail(err, MUSTER_ENOENT, "it is gone") : check(process, thread, err);
    if (r == 0 && syscall(SYS_tgkill, process->pid, thread, PYTHON_STACKS_SIGNAL) < 0) {
        r = muster_fail(err, MUSTER_EUNSUPPORTED, "it cannot be asked for its stacks: %s",
                        strerror(errno));
    }
    return r;
}

int python_stacks_ask(const struct descendant *process, struct python_stacks *ret,
                      struct muster_err *err)
{
    pid_t thread = find_thread(process->pid);
    int r = check(process, thread, err);
    if (r < 0) {
        return r;
    }
    struct python_stacks stacks = {
        .pid = process->pid, .thread = thread, .file_fd = open_file(process->pid)};
    if (stacks.file_fd < 0) {
        return muster_fail(err, MUSTER_EUNSUPPORTED,
                           "not a Python process with muster's handler (its file for them was "
                           "closed): no stacks");
    }
    r = ftruncate(stacks.file_fd, 0) == 0
            ? send_signal(process, thread, err)
            : muster_fail(err, MUSTER_EOS, "its stacks cannot be read: %s", strerror(errno));
    if (r < 0) {
        python_stacks_done(&stacks);
        return r;
    }
    *ret = stacks;
    return 0;
}

/* ---- Waiting for the answer ---- */

/* While a handler runs, its signal is blocked. */
static bool in_handler(const struct python_stacks *stacks)
{
    char status[STATUS_BYTES_MAX];
    return read_status(stacks->pid, stacks->thread, status) && has_signal(status, "SigBlk:");
}

bool python_stacks_poll(struct python_stacks *stacks)
{
    struct stat info;
    size_t before = stacks->size_bytes;
    assert(stacks->file_fd >= 0);
    if (fstat(stacks->file_fd, &info) == 0) {
        stacks->size_bytes = (size_t)info.st_size;
    }
    return stacks->size_bytes > 0 && stacks->size_bytes == before && !in_handler(stacks);
}

char *python_stacks_text(const struct python_stacks *stacks)
{
    char *text = malloc(PYTHON_STACKS_BYTES_MAX + 1);
    ssize_t used = text ? pread(stacks->file_fd, text, PYTHON_STACKS_BYTES_MAX, 0) : 0;
    if (used <= 0) {
        free(text);
        return NULL;
    }
    text[used] = '\0';
    stack_text_drop_asked(text);
    return text;
}

void python_stacks_done(struct python_stacks *stacks)
{
    if (stacks->file_fd >= 0) {
        close(stacks->file_fd);
    }
    stacks->file_fd = -1;
}
