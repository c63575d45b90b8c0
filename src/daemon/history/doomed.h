/* The folders of deleted jobs that are to be removed, and what tells the next controller which.
 *
 * Layer: program (daemon), private to the sweep. Thread: the loop's.
 */
#pragma once

#include "base/home.h"
#include "store/store.h"

struct doomed {
    const struct home *home;
    struct store *store;
    json_t *uids; /* uid -> {"lease", "namespace", "name", "run"}; lease: of the `muster run` that
                     may still read, or ""; run 0: nothing is kept */
};

/* "HOME/jobs/UID" and `name`; the caller frees. NULL: no memory. */
char *doomed_path(const struct doomed *doomed, const char *uid, const char *name);

/* Marks the folder on disk, too. */
void doomed_add(struct doomed *doomed, const char *uid, const char *lease);
/* What earlier controllers have left. */
void doomed_find(struct doomed *doomed);

/* See sweep.h. */
int64_t doomed_next_run(const struct doomed *doomed, const char *namespace, const char *name);
json_t *doomed_pending(const struct doomed *doomed, const char *namespace, const char *name);
