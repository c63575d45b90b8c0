/* Whether all workers have the same state: each so many steps its digest goes with the manifest,
 * and all see all of them. A worker whose digest differs from most has a bit that changed by
 * itself: its passes are dropped, and it reads the state from the others. When two workers differ,
 * nobody knows which one is right: the job fails.
 *
 * Layer: worker (part of libmuster). Thread: the user's; the job's mutex is held, but by
 * vote_count.
 */
#pragma once

#include "client/worker.h"

enum { VOTE_AGAIN = 2 }; /* as a result, beside error codes: all exchange their manifests again */

/* The digest of the state of `version`, which no step has changed yet; 0: none is due. */
uint64_t vote_digest(const struct muster_elastic *job, uint64_t version);

/* The digests of all, by rank. 0: they are alike. VOTE_AGAIN: odd of *ret says which ranks differ.
 * Without the mutex. */
int vote_count(const uint64_t *digests, int size, struct vote *ret);

/* What VOTE_AGAIN means here: this worker is to load, or waits for the ones that are. 0, or the
 * user's error. */
int vote_take(struct muster_elastic *job, struct muster_err *err);
