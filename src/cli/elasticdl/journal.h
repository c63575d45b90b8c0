/* Where the coordinator of a job on a cluster keeps its journal: in a folder that is deleted with
 * its pod, or on the volume that --journal_volume names, which outlives the pod.
 *
 * Layer: cli; pure. Ownership: read/done, the caller's struct.
 */
#pragma once

#include "base/build.h"

#include <jansson.h>
#include <muster/err.h>
#include <stdbool.h>

struct journal_place {
    bool outlives_pod;
    json_t *volume, *mount; /* both have the name "journal" */
};

/* Reads "claim_name=CLAIM" or "host_path=PATH", with sub_path and type if needed; "" means the
 * folder that is deleted with the pod. */
int journal_place_read(const char *text, struct journal_place *ret, struct muster_err *err);
void journal_place_done(struct journal_place *place);

/* The folder in the container. A volume may have the journals of many jobs: each job has a folder
 * that is named by its uid. */
const char *journal_folder(const struct journal_place *place);

/* Adds the options that the job's coordinator needs in addition. */
void journal_add_words(const struct journal_place *place, const char *job, struct build *b,
                       json_t *command);
/* Adds the volume, and the account by which the coordinator may keep its Lease. */
void journal_add_volume(const struct journal_place *place, struct build *b, json_t *pod,
                        json_t *container);
