/* Finds the job that a pod's name belongs to (control/objects.h makes the names). Layer: cli;
 * pure.
 */
#pragma once

/* "mnist" of "mnist-worker-3", "mnist-edljob-worker-3" and "elasticdl-mnist-master"; NULL when it
 * is no pod's name; the caller frees. */
char *pod_name_job(const char *pod);
