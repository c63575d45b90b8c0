/* The summary of a run: what `muster history` lists, and summary.json.
 *
 *     {"run", "namespace", "name", "uid", "state", "exitCode", "reason", "message", "started",
 *      "finished", "durationMs", "command", "ranks", "replicas": [{"name", "state", "exitCode",
 *      "restarts"}], "bytes", "logBytesDropped"}
 *
 * exitCode is what `muster run` exits with; null while the run is not over, and of one that was
 * stopped from outside, which has none of its own. started, finished and
 * durationMs are null where the run did not get so far. The last two are of archived runs only.
 *
 * Layer: program (daemon); pure. Ownership: a new reference; NULL when out of memory.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

/* `pods`: the newest versions of all pods that the job had. */
json_t *history_summary(const json_t *job, const json_t *pods, int64_t run, int64_t now_unix_ms);
