/* Names of a job's pods for people. Layer: cli; pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Writes "rank 1", by the environment of the pod's training; without a rank "worker 0", else the
 * pod's name. */
void ranks_label(const json_t *pod, char *ret, size_t size);

/* The rank, -1 when the pod has none. */
long ranks_number(const json_t *pod);

/* The container that trains: "pytorch", else the first. Borrowed; "" when there is none. */
const char *ranks_main_container(const json_t *pod);

/* The items of a pod list in the order of their ranks; new array. */
json_t *ranks_sort(const json_t *pods);

/* The status of a container (init or main) by its name; NULL when the pod has none yet. */
const json_t *ranks_container_status(const json_t *pod, const char *container);
