/* Makes volumes of a pod and mounts of its container from ElasticDL's --volume.
 *
 * Layer: cli; pure. Ownership: new references in ret_. MUSTER_EINVAL names the flag and what of it
 * is wrong.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>

/* Reads "host_path=/a,mount_path=/b;claim_name=c,mount_path=/d" as the pod's volumes, called
 * <job>-volume-0 …, and the container's mounts. A path may contain any character, as long as what
 * follows a comma or semicolon in it is not one of the keys. */
int volumes_read(const char *flag, const char *text, const char *job, json_t **ret_volumes,
                 json_t **ret_mounts, struct muster_err *err);
