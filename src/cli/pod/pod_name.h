/* Finds the job that a pod's name belongs to (control/objects.h makes the names). Layer: cli;
 * pure.
 */
#pragma once

/* The job's name: "mnist" for "mnist-worker-3", "mnist-edljob-worker-3" and
 * "elasticdl-mnist-master". NULL if `pod` is not the name of a pod; the caller frees it. */
char *pod_name_job(const char *pod);
