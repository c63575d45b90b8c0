/* Makes a PyTorchJob of a command line of `elasticdl train`: the coordinator is its Master, the
 * workers are its Workers (docs/elasticdl.md).
 *
 * Layer: cli; pure.
 */
#pragma once

#include "cli/command/args.h"

#include <jansson.h>

/* The place where the job is to run. */
struct translate_site {
    const char *program; /* the muster that coordinates; NULL: "muster" of MUSTER_IMAGE, which a
                            cluster pulls */
    const char *folder;  /* where a coordinator of this machine keeps its journal; NULL: a volume */
    const char *token;   /* of the Secret; NULL: the workers get it beside the object */
    /* Runs the file of --cluster_spec, which changes the job's pods. */
    int (*run_file)(const char *file, json_t *job, struct muster_err *err);
};

/* Makes the job, and its Secret if there is one. MUSTER_EINVAL names the flag that is wrong. */
int translate_objects(const struct args *args, const struct translate_site *site,
                      json_t **ret_secret, json_t **ret_job, struct muster_err *err);
