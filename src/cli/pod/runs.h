/* Runs of the history, as the controller answers (daemon/route/history.h).
 *
 * Layer: cli. Ownership: new references.
 */
#pragma once

#include "base/buf.h"
#include "cli/pod/pod_set.h"
#include "cli/pod/target.h"

/* The job's name (NULL: any) becomes part of a request, as does --namespace, which args_parse has
 * checked. MUSTER_EINVAL: it is no name, or of something else than a job. */
int runs_check(struct cli *cli, const struct target *job);

/* "/muster/v1/history/NS/JOB/RUN"; the caller frees. NULL when out of memory. */
char *runs_path(const struct cli *cli, const char *job, int64_t run);

/* One run, whole. MUSTER_ENOENT: there is none of that number (any more). */
int runs_get(struct cli *cli, const char *job, int64_t run, json_t **ret);

/* The run of the job with this uid, whole, among the newest of that name; NULL: there is none, or
 * it cannot be asked for. */
json_t *runs_find_uid(struct cli *cli, const char *namespace, const char *name, const char *uid);

/* The pods that WORD, a job or one of its pods, means in a run; each is told as gone. *ret_job is
 * the job's name, which the caller frees. */
int runs_find_pods(struct cli *cli, const char *word, int64_t run, struct pod_set *ret,
                   char **ret_job);

/* The table of a list: a Table as the API makes them (cli/show/table.h). */
json_t *runs_table(const json_t *runs);

/* One run for people: how it ended, its ranks, its events. */
void runs_describe(const json_t *run, int64_t now_unix_ms, struct buf *out);
