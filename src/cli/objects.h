/* The objects of the files on a command line, checked whole before anything is done with them.
 *
 * Layer: cli. Ownership: objects_done.
 */
#pragma once

#include "cli/cli.h"

struct objects {
    json_t **list; /* what jobs use first (claims, config maps, secrets), then the jobs */
    size_t count;
};

/* Reads the files of -f and of the operands, prints every problem on standard error. MUSTER_EDATA
 * when there is an error in any; MUSTER_EINVAL when no file is named. `quiet` prints errors only.
 */
int objects_read(struct cli *cli, bool quiet, struct objects *ret);
void objects_done(struct objects *objects);

/* Where an object is or will be: --namespace wins, then its own, then default. Borrowed. */
struct kube_ref objects_ref(const struct cli *cli, const json_t *object);

/* Adds what a job needs to run here as it would for its submitter: muster.dev/submit (cwd and
 * allowed environment), and the annotations of --image, --network, … as far as the command has
 * these options. No-op for other kinds. */
int objects_annotate(struct cli *cli, json_t *object);

/* Creates one; prints nothing. */
int objects_create(struct cli *cli, const json_t *object, json_t **ret);
