/* Makes the name of a finished job free for a new one. Layer: cli. */
#pragma once

#include "cli/command/cli.h"

/* The job of this name, which must be a finished one; *ret stays NULL when there is none (any
 * more). MUSTER_EEXIST: it runs. */
int replace_find(struct cli *cli, const struct kube_ref *ref, json_t **ret);

/* Deletes it, and waits until it is gone, or a signal asks for the end: MUSTER_EINTERRUPTED. */
int replace_finished(struct cli *cli, const json_t *object);
