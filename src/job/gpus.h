/* The GPUs that containers, pods and jobs request.
 *
 * Layer: pure.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#define JOB_GPU_RESOURCE "nvidia.com/gpu"

/* Returns the limit, or the request if there is no limit; a part of a GPU counts as none. */
int64_t job_gpus_of_container(const json_t *container);

/* Returns the sum over the pod's containers. */
int64_t job_gpus_of_pod(const json_t *pod_spec);

struct job_gpus {
    int64_t most;     /* the most that one pod requests */
    int64_t all;      /* what all pods request together */
    const char *role; /* the role whose pods request most, borrowed from the job; NULL: none */
};

struct job_gpus job_gpus_of(const json_t *job);
