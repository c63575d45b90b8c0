/* Which replicas of a role have ended well, so that none is made again when its pod is gone: an
 * administrator, a node's end or Kubernetes' pod garbage collection may take finished pods before
 * their job is over. Stored as .status.counters.completed.worker, in the form of a Job's
 * completedIndexes: "0,2-5".
 *
 * Layer: pure. Ownership: control_completed_init/_done.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>

/* Replicas past that are not remembered. */
enum { CONTROL_COMPLETED_MAX = 65536 };

struct control_completed {
    bool *has;
    int count; /* of `has` */
};

/* For so many replicas. MUSTER_ENOMEM. */
int control_completed_init(struct control_completed *completed, int replicas);
void control_completed_done(struct control_completed *completed);

/* Adds those of the text; NULL, and what is no such text, adds none. */
void control_completed_read(struct control_completed *completed, const char *text);
void control_completed_add(struct control_completed *completed, int index);
bool control_completed_has(const struct control_completed *completed, int index);

/* "" for none. */
void control_completed_write(const struct control_completed *completed, struct buf *out);
