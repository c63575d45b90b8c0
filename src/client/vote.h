/* Checks whether all workers have the same state: at an interval of some steps the manifest has a
 * digest of it, and every worker sees the digests of all. In a worker whose digest differs from
 * most, a bit has changed by itself: its passes are dropped, and it reads the state from the
 * others. When two workers differ, it is unknown which one is right: the job fails.
 *
 * Layer: worker (part of libmuster). Thread: the user's; the job's mutex is held, but by
 * vote_count.
 */
#pragma once

#include "client/worker.h"

enum { VOTE_AGAIN = 2 }; /* a result beside error codes: all exchange their manifests again */

/* Returns the digest of the state of `version`, which no step has changed yet; 0: no vote is
 * due. */
uint64_t vote_digest(const struct muster_elastic *job, uint64_t version);

/* Compares the digests of all members, by rank. Returns 0 if they are equal, otherwise VOTE_AGAIN:
 * ret->odd says which ranks differ. Without the mutex. */
int vote_count(const uint64_t *digests, int size, struct vote *ret);

/* Handles VOTE_AGAIN: this worker must read the state, or waits for those that must. Returns 0, or
 * an error for the user. */
int vote_take(struct muster_elastic *job, struct muster_err *err);
