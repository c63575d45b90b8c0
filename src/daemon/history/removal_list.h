/* The list of deleted jobs' folders that are to be removed; it is on the disk, so that the next
 * controller knows it.
 *
 * Layer: program (daemon), private to the sweep. Thread: the loop's.
 */
#pragma once

#include "base/home.h"
#include "store/store.h"

struct removal_list {
    const struct home *home;
    struct store *store;
    json_t *uids; /* uid -> {"lease", "namespace", "name", "run"}; lease: of the `muster run`
                     that may still read there, or ""; run 0: nothing is kept */
};

/* Makes the path "HOME/jobs/UID" followed by `name`; the caller frees it. Returns NULL if out of
 * memory. */
char *removal_list_path(const struct removal_list *list, const char *uid, const char *name);

/* Adds a folder, and marks it on disk. */
void removal_list_add(struct removal_list *list, const char *uid, const char *lease);
/* Adds the folders that earlier controllers have left. */
void removal_list_find(struct removal_list *list);

/* See sweep.h. */
int64_t removal_list_next_run(const struct removal_list *list, const char *namespace,
                              const char *name);
json_t *removal_list_pending(const struct removal_list *list, const char *namespace,
                             const char *name);
