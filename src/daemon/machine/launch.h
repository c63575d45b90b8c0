/* From a pod's container to what the supervisor executes: words, environment, folder, mounts,
 * limits.
 *
 * The environment is built in this order, later winning: what the submitter's shell had
 * (daemon/machine/environments.h), the container's own with the addresses made local, what the
 * submitter asked for by name, and what a launcher sets (job/shell_variables.h: the operator's
 * variables, then CUDA_VISIBLE_DEVICES and MUSTER_*). The values of the shell, and those given by
 * name, stay in their file, which the supervisor reads: names that are in that file are only
 * removed from the container's variables here.
 *
 * Layer: program (daemon). Ownership: everything borrowed but what is returned.
 */
#pragma once

#include "daemon/machine/address.h"
#include "daemon/machine/volumes.h"
#include "pod/pod.h"

struct launch {
    json_t *job;                  /* the PyTorchJob object; NULL for a pod without a job */
    const json_t *pod;            /* the Pod object */
    const json_t *container;      /* of the pod's spec */
    const char *gpus;             /* CUDA_VISIBLE_DEVICES; NULL: the pod asked for none */
    bool hide_gpus;               /* the machine has GPUs, and this pod asked for none */
    struct address_map addresses; /* addresses.job NULL: nothing must be made local */
    struct volume_sources volumes;
    const json_t *config_maps; /* name → object, for envFrom and valueFrom */
    const json_t *secrets;
    const char *node_name;
    const char *environment_file; /* NULL: the job has none (it came by kubectl) */
};

/* Makes the spec that process_job_start takes; new reference. Returns MUSTER_ENOENT if something is
 * missing that may still be created. */
int launch_spec(const struct launch *launch, json_t **ret, struct muster_err *err);
