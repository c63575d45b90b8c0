/* The results of a run: the last line, the JSON object of -o json, and the folder of --results.
 *
 * Layer: cli.
 */
#pragma once

#include "cli/follow/follow.h"

/* The exit code of one job in this run (if a signal ended this run, its code comes first). */
int result_exit_code(const struct followed_job *job);

/* Prints where things are, then, as the last line, "muster: job mnist succeeded after 32 s", or why
 * it failed. */
void result_say(const struct followed_job *job, const char *results);

/* {"name", "namespace", "state", "exitCode", "reason", "message", "durationMs", "replicas":
 * [{"name", "rank", "state", "exitCode", "restarts", "logFile"}], "badRanks": [… (bad_ranks.h)],
 * "volumes": […], "results"}; new reference. */
json_t *result_doc(const struct followed_job *job, const char *results);

/* [{"name", "pod", "mountPath", "path", "kept"}]: claims (kept between jobs) and empty directories;
 * new reference. */
json_t *result_volumes(const struct followed_job *job);

/* Copies volumes, logs and status of a job to a folder: DIR/status.json, DIR/logs/POD.log,
 * DIR/volumes/NAME/…; with several jobs DIR/JOB/…. What an earlier run left there is replaced as a
 * whole (results_folder.h). */
int result_copy(const struct followed_job *job, const char *folder, struct muster_err *err);
