/* Tells the coordinator what this worker has done. Nothing is sent while there is no connection: a
 * new one begins with a report of everything.
 *
 * Layer: worker (part of libmuster). Thread: any; the job's mutex is held.
 */
#pragma once

#include "client/worker.h"

void report_hello(struct muster_elastic *job);
void report_dataset(struct muster_elastic *job);
void report_join(struct muster_elastic *job);
/* REPORT: what it did since the last acknowledgement. lost: an incarnation, 0; ended: its kernel
 * has ended the connection. */
void report_state(struct muster_elastic *job, uint64_t lost, bool ended);
void report_commit(struct muster_elastic *job, uint64_t version);
void report_leave(struct muster_elastic *job, bool finished);
/* What is at hand, job->at_hand. */
void report_pass(struct muster_elastic *job);
/* The user's thread has called: what happens from now on is no fault of its records. */
void report_pass_end(struct muster_elastic *job);
void report_failure(struct muster_elastic *job, const char *why);
void report_progress(struct muster_elastic *job);
/* Its state is that of the others again. */
void report_healed(struct muster_elastic *job);
/* A member was silent for so long, and its process was ended for that. */
void report_silent(struct muster_elastic *job, uint64_t incarnation, int64_t silent_ms);
/* It has written one. */
void report_checkpoint(struct muster_elastic *job, const struct checkpoint_place *place);
/* One could not be written, or (reading) be read by anybody. */
void report_checkpoint_failed(struct muster_elastic *job, uint64_t version, bool reading,
                              const char *why);
