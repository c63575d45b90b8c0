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
    int64_t hopeless_ms;                   /* since when; 0: this was handled */
};

/* The job and its logs as they are now. */
struct trouble_view {
    const json_t *job;
    const struct pod_logs *logs;
};

void trouble_init(struct trouble *trouble);
void trouble_done(struct trouble *trouble);

/* Takes a pod that changed (`before`: the pod as it was, or an earlier pod of this name; NULL: the
 * pod is new). Appends lines at the third restart: why the pod restarts, and what would bound that.
 */
void trouble_pod(struct trouble *trouble, struct trouble_view view, const json_t *before,
                 const json_t *pod, struct buf *out);

/* True once, when trouble->hopeless was set for long enough to end the job because of it. */
bool trouble_is_hopeless(struct trouble *trouble, int64_t now_ms);

/* Appends "; first failure: …" to the reason why a job ended, unless the reason has it: if the job
 * was stopped, or if `last`, the pod that failed for good (or NULL), was restarted before. */
void trouble_add_first(const struct trouble *trouble, struct trouble_view view, const json_t *last,
                       bool stopped, struct buf *out);

/* The advice about the last lines of this container; NULL if there is none. Static. */
const char *trouble_hint(struct trouble_view view, const char *pod, const char *container);
