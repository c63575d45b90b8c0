/* The writer of a journal: the file `lock` in its folder, held (flock) by the writer, with its
 * process and term, for people.
 *
 * Layer: program (coordinator). Memory: the caller's struct, take/leave. Thread: one.
 */
#pragma once

#include "coordinator/journal/files.h"

#include <muster/err.h>
#include <stdbool.h>
#include <stdint.h>

struct journal_lock {
    int fd;       /* -1: it was not taken */
    bool is_held; /* false: the file system has no locks */
};

/* Takes the lock. MUSTER_ECONFLICT: another process has it; MUSTER_ECREATE. MUSTER_EIO: the file
 * system has no locks; this is not an error if others are kept away in another way. */
int journal_lock_take(struct journal_lock *lock, const struct journal_files *files,
                      const char *folder, bool alone, struct muster_err *err);
/* Whether the file has not been deleted or moved: who comes later takes another file. */
bool journal_lock_is_in(const struct journal_lock *lock, const char *folder);
/* Takes the lock again if it is not in the folder any more. */
int journal_lock_keep(struct journal_lock *lock, const struct journal_files *files,
                      const char *folder, struct muster_err *err);
void journal_lock_note_term(const struct journal_lock *lock, uint64_t term);
void journal_lock_leave(struct journal_lock *lock);
