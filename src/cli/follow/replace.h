/* Makes the name of a finished job free for a new one. Layer: cli. */
#pragma once

#include "cli/command/cli.h"

/* Finds the job of this name, which must have finished; *ret stays NULL if it does not exist (any
 * more). MUSTER_EEXIST: the job runs. */
int replace_find(struct cli *cli, const struct kube_ref *ref, json_t **ret);

/* Deletes the job and waits until it is gone. MUSTER_EINTERRUPTED: a signal asked for the end. */
int replace_finished(struct cli *cli, const json_t *object);
