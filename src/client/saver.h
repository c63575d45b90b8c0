/* Writes checkpoints while training goes on. One member writes them, rank 0. A separate thread
 * copies the state of a version while the user computes, because the state does not change then,
 * and writes the copy to the disk. The member then tells the coordinator, which puts the checkpoint
 * into its journal and announces it to all members.
 *
 *     IDLE      the user's thread has updated the model, and one is due         COPYING
 *     COPYING   the thread has copied it; a write to the model waits            WRITING
 *     WRITING   it is on the disk, or could not be written                      IDLE
 *
 * Layer: worker (part of libmuster). Thread: as said; the job's mutex is held.
 */
#pragma once

#include "client/worker.h"

/* Reads the options and the environment, and opens the folder. MUSTER_ECONFIG, MUSTER_ECREATE. */
int saver_init(struct saver *saver, const struct muster_elastic_options *options,
               struct muster_err *err);
void saver_done(struct saver *saver);

/* Starts the thread; does nothing if no folder was given. Without the mutex. */
int saver_start(struct muster_elastic *job, struct muster_err *err);
/* Gives up a checkpoint that is being written. Without the mutex. */
void saver_stop(struct muster_elastic *job);

/* The pieces hold core.version, and are not written until saver_settle returns: begins a checkpoint
 * if one is due. */
void saver_offer(struct muster_elastic *job);
/* Waits until the pieces may be written. */
void saver_settle(struct muster_elastic *job);

/* Notes the checkpoints that the coordinator has in its journal. */
void saver_hear(struct muster_elastic *job, const struct wire_checkpoint *told);
/* Sends again the reports that the coordinator may have missed. */
void saver_remind(struct muster_elastic *job);
/* Reports that no worker could read the checkpoint that this generation begins with. */
void saver_refuse(struct muster_elastic *job, const char *why);
