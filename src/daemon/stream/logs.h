/* Pod logs for the API, and what `muster cp` needs to know of a container: its folder, mounts and
 * log files.
 *
 * Layer: program (daemon). Thread: the loop's. All of it is read from the job's folder: no
 * supervisor is asked.
 */
#pragma once

#include "api/api.h"
#include "base/home.h"

/* Streams a log and completes the reply. With `follow` it ends when the container has ended, or
 * when the client leaves. */
void logs_stream(uv_loop_t *loop, const struct home *home, const struct api_log_query *query,
                 const json_t *pod, struct http_reply *reply);

/* Does the same for the container whose attempts are in `folder` (NULL: out of memory). */
void logs_stream_folder(uv_loop_t *loop, const char *folder, const struct api_log_query *query,
                        const json_t *pod, struct http_reply *reply);

/* Whether the container ran before its newest run. */
bool logs_has_previous(const struct home *home, const json_t *pod, const char *container);

/* Returns {"cwd","mounts":[{"name","mountPath","hostPath"}],"logs":[paths],"logBytesRotated"} of
 * the newest attempt; new reference. MUSTER_ENOENT: the container has not started. */
int logs_describe(const struct home *home, const json_t *pod, const char *container, json_t **ret,
                  struct muster_err *err);
