/* The GPUs that containers, pods and jobs request.
 *
 * Layer: pure.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#define JOB_GPU_RESOURCE "nvidia.com/gpu"

/* Limits over requests; a part of a GPU counts as none. */
int64_t job_gpus_of_container(const json_t *container);

/* The sum over its containers. */
int64_t job_gpus_of_pod(const json_t *pod_spec);

struct job_gpus {
    int64_t most;     /* what one pod requests at most */
    int64_t all;      /* what all pods request together */
    const char *role; /* whose pods request most; borrowed from the job; NULL: none request any */
};

struct job_gpus job_gpus_of(const json_t *job);
