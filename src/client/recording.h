/* Writes the events and answers of a worker's core, and the passes that it hands out, into its
 * recording (core/recording.h), if it has one.
 *
 * Layer: worker (part of libmuster). Thread: any; the job's mutex is held.
 */
#pragma once

#include "client/worker.h"

/* Called once the core is made. */
void recording_begin(struct muster_elastic *job);
/* Called once the plan is settled. */
void recording_note_plan(const struct muster_elastic *job);
/* Called before any effect of the step is carried out. */
void recording_note_step(const struct muster_elastic *job, const struct commit_event *event,
                         const struct commit_effects *effects);
/* Records a pass; range: the positions of its records. */
void recording_note_pass(const struct muster_elastic *job, const struct muster_elastic_pass *pass,
                         struct shard_range range);
