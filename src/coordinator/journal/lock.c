/* See lock.h. */
#include "coordinator/journal/lock.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LOCK_TEXT_BYTES = 64 };

static int fail_held(const struct journal_lock *lock, const char *folder, struct muster_err *err)
{
    char holder[LOCK_TEXT_BYTES] = "";
    ssize_t count = pread(lock->fd, holder, sizeof holder - 1, 0);
    holder[count > 0 ? count : 0] = 0;
    return muster_fail(err, MUSTER_ECONFLICT,
                       "another coordinator (%s) has the journal in %s: stop it, or use another "
                       "folder",
                       *holder ? holder : "process unknown", folder);
}

/* Whether the error means that the call, or this kind of file, is not supported: NFS without its
 * lock service, FUSE, 9p. */
static bool is_without_locks(int reason)
{
    return reason == ENOLCK || reason == ENOSYS || reason == EOPNOTSUPP;
}

int journal_lock_take(struct journal_lock *lock, const struct journal_files *files,
                      const char *folder, bool alone, struct muster_err *err)
{
    muster_auto(free) char *path = file_join(folder, "lock");
    lock->fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (lock->fd < 0) {
        return file_fail(err, MUSTER_ECREATE, "open", path ? path : folder);
    }
    lock->is_held = files->lock(files->data, lock->fd) == 0;
    if (lock->is_held || (alone && is_without_locks(errno))) {
        return 0;
    }
    if (errno == EWOULDBLOCK) {
        return fail_held(lock, folder, err);
    }
    if (!is_without_locks(errno)) {
        return file_fail(err, MUSTER_EOS, "lock", path);
    }
    return muster_fail(err, MUSTER_EIO,
                       "cannot lock %s: %s: the file system has no locks (flock), and another "
                       "coordinator could write the same journal: use a folder on a disk of this "
                       "machine, or on a cluster --lease, which keeps others away",
                       path, strerror(errno));
}

bool journal_lock_is_in(const struct journal_lock *lock, const char *folder)
{
    muster_auto(free) char *path = file_join(folder, "lock");
    return !path || journal_file_is_at(path, lock->fd);
}

int journal_lock_keep(struct journal_lock *lock, const struct journal_files *files,
                      const char *folder, struct muster_err *err)
{
    struct journal_lock again = {.fd = -1};
    if (journal_lock_is_in(lock, folder)) {
        return 0;
    }
    int r = journal_lock_take(&again, files, folder, false, err);
    if (r < 0) {
        journal_lock_leave(&again);
        return r;
    }
    journal_lock_leave(lock);
    *lock = again;
    return 0;
}

/* Writes the text, and zeros after it, so that no rest of a longer text is left. */
void journal_lock_note_term(const struct journal_lock *lock, uint64_t term)
{
    char text[LOCK_TEXT_BYTES] = "";
    (void)snprintf(text, sizeof text, "process %d, term %llu", (int)getpid(),
                   (unsigned long long)term);
    bool written = pwrite(lock->fd, text, sizeof text, 0) == (ssize_t)sizeof text;
    (void)written; /* the text is for people only */
}

void journal_lock_leave(struct journal_lock *lock)
{
    if (lock->fd >= 0) {
        close(lock->fd);
    }
    *lock = (struct journal_lock){.fd = -1};
}
