/* The messages of `run` about a job in trouble: restarts without end, a pod that cannot start, a
 * failure with a known cause.
 *
 * Layer: cli. Ownership: init/done; texts are borrowed.
 */
#pragma once

#include "cli/follow/pod_waiting.h"
#include "cli/follow/storm.h"
#include "cli/log/pod_logs.h"

struct trouble {
    struct storm storm;
    char hopeless[POD_WAITING_TEXT_BYTES]; /* why a pod cannot run on this machine, "": it can */
    int64_t hopeless_ms;                   /* since then; 0: it was acted upon */
};

/* The job and its logs as they are now. */
struct trouble_view {
    const json_t *job;
    const struct pod_logs *logs;
};

void trouble_init(struct trouble *trouble);
void trouble_done(struct trouble *trouble);

/* A pod changed (`before`: as it was, be it another one of this name; NULL: new). Appends lines: at
 * the third restart why it restarts, and what would bound that. */
void trouble_pod(struct trouble *trouble, struct trouble_view view, const json_t *before,
                 const json_t *pod, struct buf *out);

/* trouble->hopeless has been true for long enough to end the job for it. True once. */
bool trouble_is_hopeless(struct trouble *trouble, int64_t now_ms);

/* Appends "; first failure: …" to why a job ended, where that does not say it: it was stopped, or
 * `last`, the pod that failed for good (or NULL), was restarted before. */
void trouble_add_first(const struct trouble *trouble, struct trouble_view view, const json_t *last,
                       bool stopped, struct buf *out);

/* What is advised about the last lines of this container; NULL: nothing. Static. */
const char *trouble_hint(struct trouble_view view, const char *pod, const char *container);
