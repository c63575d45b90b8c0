/* Runs of the history, as the controller answers (daemon/route/history.h).
 *
 * Layer: cli. Ownership: new references.
 */
#pragma once

#include "base/buf.h"
#include "cli/pod/pod_set.h"
#include "cli/pod/target.h"

/* Checks the job's name (NULL: any), which becomes part of a request; args_parse has checked
 * --namespace. MUSTER_EINVAL: it is not a valid name, or not the name of a job. */
int runs_check(struct cli *cli, const struct target *job);

/* Makes "/muster/v1/history/NS/JOB/RUN"; the caller frees it. NULL when out of memory. */
char *runs_path(const struct cli *cli, const char *job, int64_t run);

/* Gets one run, whole. MUSTER_ENOENT: there is no run of that number (any more). */
int runs_get(struct cli *cli, const char *job, int64_t run, json_t **ret);

/* Finds the run of the job with this uid, whole, among the newest runs of that name; NULL if there
 * is none, or if it cannot be read. */
json_t *runs_find_uid(struct cli *cli, const char *namespace, const char *name, const char *uid);

/* Finds the pods that WORD, a job or one of its pods, means in a run; all are marked as gone.
 * *ret_job is the job's name, which the caller frees. */
int runs_find_pods(struct cli *cli, const char *word, int64_t run, struct pod_set *ret,
                   char **ret_job);

/* Makes the table of a list of runs: a Table in the API's form (cli/show/table.h). */
json_t *runs_table(const json_t *runs);

/* Prints one run for people: how it ended, its ranks, its events. */
void runs_describe(const json_t *run, int64_t now_unix_ms, struct buf *out);
