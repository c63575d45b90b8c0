/* Reads --image: the command of an image (IMAGE=COMMAND), or with `run -n` the image of the pods.
 *
 * Layer: cli.
 */
#pragma once

#include "cli/submit/objects.h"

/* Adds the annotation of every --image IMAGE=COMMAND; no-op without one. MUSTER_EINVAL. */
int images_annotate(struct cli *cli, json_t *job);

/* MUSTER_EINVAL for an --image that has no effect on these objects: no container has the image, or
 * each that has it names its own command. */
int images_check(struct cli *cli, const struct objects *objects);
