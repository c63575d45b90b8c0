/* The folder of --results: one run's files in it at a time, whole.
 *
 * What a run leaves is first copied to DIR/.muster-results.new and then exchanged for what an
 * earlier run left, so that an interrupted copy changes nothing in DIR. Of DIR only logs, volumes,
 * status.json and muster.json are ours; muster.json marks them as a run's. An exchange that was cut
 * short (kill -9 between two renames) is finished by the next run that names DIR.
 *
 * Layer: cli (does I/O). Two runs into one DIR take turns.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>

struct results_folder {
    char *path;
    char *staging; /* the folder to copy into; it exists and is empty */
    int lock_fd;
};

/* Makes DIR if it is missing, finishes an exchange that was cut short, and refuses (MUSTER_EEXIST)
 * to write over files that no run has written. */
int results_folder_check(const char *path, struct muster_err *err);

/* Ownership: begin/done. */
int results_folder_begin(const char *path, struct results_folder *ret, struct muster_err *err);
/* Replaces the old results by the copied ones. `manifest` becomes muster.json. */
int results_folder_commit(struct results_folder *folder, const json_t *manifest,
                          struct muster_err *err);
/* Ends the copy. If nothing was committed, the folder stays as it was. */
void results_folder_done(struct results_folder *folder);
