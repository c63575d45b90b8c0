/* What happened is told to the member's core, and what the core says is done: at once what concerns
 * the coordinator and the region, the rest by whose turn it is (struct todo, abort_wanted).
 *
 * Layer: worker (part of libmuster). Thread: any; the job's mutex is held.
 */
#pragma once

#include "client/worker.h"

/* open: of COMMIT_OPEN, else NULL. */
void obey(struct muster_elastic *job, const struct commit_event *event,
          const struct generation *open);

/* An event of this process, or of the data plane: of the generation that was formed last. */
void obey_own(struct muster_elastic *job, enum commit_event_kind kind, uint64_t version);

/* This worker closes the generation that was formed last; lost: an incarnation that it could not
 * reach, 0: none; ended: its kernel has ended the connection. */
void obey_lost(struct muster_elastic *job, uint64_t lost, bool ended);

/* The communicator of a generation that was closed, also one that is being formed. The mutex is let
 * go meanwhile. */
void obey_abort(struct muster_elastic *job);

/* The pieces hold core.version from now on, and may be read. */
void obey_show(struct muster_elastic *job);
void obey_hide(struct muster_elastic *job);
