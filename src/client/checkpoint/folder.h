/* Finds the checkpoints of a job in a folder, and removes those that are not kept.
 *
 * Layer: worker (part of libmuster). Memory: the caller's. Thread: any; it waits for the disk.
 */
#pragma once

#include "client/checkpoint/name.h"

#include <muster/err.h>

#include <stddef.h>

/* Returns in *ret the absolute path of the folder (malloc), which is created if its parent exists.
 * MUSTER_ECREATE. */
int folder_open(const char *path, char **ret, struct muster_err *err);

/* Whether the folder has a whole file of the job of that lineage. */
bool folder_has_job(const char *folder, uint64_t lineage);

/* The checkpoints in the coordinator's journal: the job may go back to them. Their versions
 * ascend. */
struct folder_known {
    const struct checkpoint_name *list;
    size_t count;     /* at least one */
    uint64_t lineage; /* of the present log */
};

/* Removes the job's files except the newest `keep` of these checkpoints; if they are fewer than
 * `keep`, older files are kept, too, up to this number. A newer file of this lineage is not
 * removed, because it may still become known. */
void folder_prune(const char *folder, const struct folder_known *known, uint32_t keep);
