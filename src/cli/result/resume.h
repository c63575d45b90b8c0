/* Finds where a training that failed can go on: the newest checkpoint that this run saved, among
 * those that its ranks printed and those in its volumes.
 *
 * Layer: cli; looks at files, a bounded number of them.
 */
#pragma once

#include "cli/follow/followed.h"
#include "cli/result/checkpoint.h"

struct resume {
    char path[CHECKPOINT_PATH_BYTES]; /* on this machine; "" when there is none */
    int64_t saved_unix_ms;
};

/* Finds the newest checkpoint. `volumes` are those of result_volumes. */
void resume_find(const struct followed_job *job, const json_t *pods, const json_t *volumes,
                 struct resume *ret);

/* Prints "newest checkpoint: runs/a/epoch3.pt (12 s before the end)", if there is one. */
void resume_say(const struct followed_job *job, const struct resume *resume);
