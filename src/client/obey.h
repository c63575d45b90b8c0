/* Hands events to the member's core and carries out its effects: those for the coordinator and the
 * region at once, the others later, in the thread that they are for (struct todo, abort_wanted).
 *
 * Layer: worker (part of libmuster). Thread: any; the job's mutex is held.
 */
#pragma once

#include "client/worker.h"

/* Gives an event to the core and carries out the effects. open: the generation of COMMIT_OPEN,
 * otherwise NULL. */
void obey(struct muster_elastic *job, const struct commit_event *event,
          const struct generation *open);

/* Gives an event of this process, or of the data plane, in the generation that was formed last. */
void obey_own(struct muster_elastic *job, enum commit_event_kind kind, uint64_t version);

/* Closes the generation that was formed last. lost: the incarnation of a member that could not be
 * reached, 0: none; ended: its kernel has ended the connection. */
void obey_lost(struct muster_elastic *job, uint64_t lost, bool ended);

/* Aborts the communicator of a generation that was closed, also one that is being formed. The mutex
 * is released meanwhile. */
void obey_abort(struct muster_elastic *job);

/* Declares that the pieces hold core.version from now on, and may be read. */
void obey_show(struct muster_elastic *job);
void obey_hide(struct muster_elastic *job);
