/* Checkpoints are written while training goes on. One member writes, rank 0: the state of a version
 * is copied by a thread of its own while the user computes, as nobody writes it then, and goes to
 * the disk from the copy. The coordinator is told; what it has in its journal it tells all members.
 *
 *     IDLE      the user's thread has updated the model, and one is due         COPYING
 *     COPYING   the thread has copied it; a write to the model waits    WRITING
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

/* The thread; nothing where no folder was given. Without the mutex. */
int saver_start(struct muster_elastic *job, struct muster_err *err);
/* What is being written is given up. Without the mutex. */
void saver_stop(struct muster_elastic *job);

/* The pieces hold core.version, and nobody writes them until saver_settle. */
void saver_offer(struct muster_elastic *job);
/* The pieces may be written from now on. */
void saver_settle(struct muster_elastic *job);

/* The coordinator has it in its journal. */
void saver_hear(struct muster_elastic *job, const struct wire_checkpoint *told);
/* What the coordinator may have missed is said again. */
void saver_remind(struct muster_elastic *job);
/* Nobody could read the checkpoint that this generation begins with. */
void saver_refuse(struct muster_elastic *job, const char *why);
