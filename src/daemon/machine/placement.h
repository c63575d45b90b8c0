/* Where a job runs on this machine: the ports that stand for its service ports, and the GPUs of
 * each of its pods.
 *
 * Kept in jobs/UID/placement.json, so that a controller that adopts the job knows them: what is
 * written is there when a controller is killed. It is not synced, since after a power cut nothing
 * runs that could be adopted, and the loop does not wait for the disk. Ports are
 * leased below 32768, out of the way of the kernel's own choice for outgoing connections, and never
 * twice among living jobs.
 *
 * Layer: program (daemon). Ownership: placement_open/placement_done. One thread.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>
#include <stdbool.h>

struct placement {
    char *path;
    json_t *doc; /* {"ports":{"master":N,"rdzv":M},"gpus":{"<pod uid>":"0,1"}} */
};

/* Reads the job's placement; a missing file is an empty placement. `folder` is jobs/UID. */
int placement_open(struct placement *ret, const char *folder, struct muster_err *err);
void placement_done(struct placement *p);

/* Returns the port for `purpose` ("master", "rdzv"), which is leased at the first call. `taken`
 * says whether another job has a port. */
int placement_port(struct placement *p, const char *purpose, bool (*taken)(void *data, int port),
                   void *data, int *ret_port, struct muster_err *err);

/* Whether this job holds the port. */
bool placement_holds(const struct placement *p, int port);

/* Returns the GPUs of a pod in the form of CUDA_VISIBLE_DEVICES; NULL if none are noted. */
const char *placement_gpus(const struct placement *p, const char *pod_uid);
/* Notes the GPUs of a pod; NULL forgets them. */
int placement_set_gpus(struct placement *p, const char *pod_uid, const char *ids,
                       struct muster_err *err);
