/* Finds the checkpoints of a job in a folder, and removes those that are not kept.
 *
 * Layer: worker (part of libmuster). Memory: the caller's. Thread: any; it waits for the disk.
 */
#pragma once

#include "client/checkpoint/name.h"

#include <muster/err.h>

#include <stddef.h>

/* The folder, made where its parent is there, as an absolute path (malloc). MUSTER_ECREATE. */
int folder_open(const char *path, char **ret, struct muster_err *err);

/* True when a whole file of the job of that lineage is there. */
bool folder_has_job(const char *folder, uint64_t lineage);

/* The checkpoints that the coordinator has in its journal: it may go back to them. Their versions
 * ascend. */
struct folder_known {
    const struct checkpoint_name *list;
    size_t count;     /* at least one */
    uint64_t lineage; /* of the log as it is now */
};

/* Removes what the job has beside the newest `keep` of them: known ones first, then older files,
 * while `keep` goes so far. A newer one of this lineage stays: it may still be made known. */
void folder_prune(const char *folder, const struct folder_known *known, uint32_t keep);
