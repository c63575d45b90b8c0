/* The messages of `run` about a pod that changed. Layer: cli; pure. */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>

enum { PROGRESS_WARN_RESTARTS = 3 };

/* Appends lines (no prefix, newline after each): why the pod waits, that it started, that a
 * container was restarted, and from the third restart on a warning. `before` is NULL for a new pod.
 * `several`: more than one job is followed, so that a rank needs the name of its pod. `quiet`:
 * warnings only. */
void progress_pod(const json_t *before, const json_t *after, bool several, bool quiet,
                  struct buf *out);

/* The same for the job: suspended, resumed. */
void progress_job(const json_t *before, const json_t *after, bool quiet, struct buf *out);
