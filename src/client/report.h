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
/* Sends REPORT: what this worker did since the last acknowledgement. lost: an incarnation, or 0;
 * ended: its kernel has ended the connection. */
void report_state(struct muster_elastic *job, uint64_t lost, bool ended);
void report_commit(struct muster_elastic *job, uint64_t version);
void report_leave(struct muster_elastic *job, bool finished);
/* Reports the pass at hand, job->at_hand. */
void report_pass(struct muster_elastic *job);
/* Reports that no pass is at hand: the user's thread has called, and what happens from now on is
 * not caused by its records. */
void report_pass_end(struct muster_elastic *job);
/* Reports an error that ends the job, again and again until the job has ended: the coordinator may
 * be away, or be replaced by one that does not know of it. Returns 0; MUSTER_EUNAVAIL: it has not
 * ended by then; MUSTER_EINTERRUPTED. */
int report_until_ended(struct muster_elastic *job, const char *why, int64_t end_ns,
                       struct muster_err *err);
void report_progress(struct muster_elastic *job);
/* Reports that its state is equal to that of the others again. */
void report_healed(struct muster_elastic *job);
/* Reports a member that was silent for this time, and whose process was ended for that reason. */
void report_silent(struct muster_elastic *job, uint64_t incarnation, int64_t silent_ms);
/* Reports a checkpoint that it has written. */
void report_checkpoint(struct muster_elastic *job, const struct checkpoint_place *place);
/* Reports a checkpoint that could not be written, or (reading) that no worker can read. */
void report_checkpoint_failed(struct muster_elastic *job, uint64_t version, bool reading,
                              const char *why);
