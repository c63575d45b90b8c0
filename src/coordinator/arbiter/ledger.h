/* The records of a job according to its log of steps: what is done, what is to do, and how to go
 * back to the newest checkpoint, or to one before it.
 *
 * Besides the present state of the records it keeps their state at the checkpoint, because a step
 * cannot be undone, and the steps since then, because the next checkpoint is of one of them.
 *
 * Layer: program (coordinator). Pure. Memory: ledger_init/done. Thread: one.
 */
#pragma once

#include "base/buf.h"
#include "coordinator/arbiter/older.h"
#include "shard/shard.h"
#include "wire/wire.h"

enum { LEDGER_TAIL_MAX = 16 << 20, LEDGER_TAIL_ROOM = LEDGER_TAIL_MAX + WIRE_FRAME_MAX };

struct ledger {
    struct shard_state *shard;
    uint64_t version;   /* of the last step */
    uint64_t max_steps; /* no step has a higher one; 0: no limit */
    uint64_t checkpoint;
    uint8_t *base; /* the records at the checkpoint; NULL: no step was committed yet */
    size_t base_bytes;
    uint64_t first; /* the version after which the tail begins */
    uint8_t *late;  /* the records at that version; NULL: it is the checkpoint's version */
    size_t late_bytes;
    struct buf tail;    /* the steps after `first`, each as a frame of COMMITS */
    struct older older; /* the records at earlier checkpoints */
};

int ledger_init(struct ledger *ledger, struct muster_err *err);
void ledger_done(struct ledger *ledger);

/* Adds a data set; if it was added before, it must be the same. *ret_new: it is new. MUSTER_EINVAL:
 * it differs, or is not valid. */
int ledger_add(struct ledger *ledger, const struct shard_dataset *spec, bool *ret_new,
               struct muster_err *err);

/* Commits the step after `version`; ret: the effects of the table of records. MUSTER_EDATA: its
 * records are done, or were not granted, or it is beyond the limit; nothing was changed. */
int ledger_commit(struct ledger *ledger, const struct wire_step *step, struct shard_effects *ret,
                  struct muster_err *err);

/* Sets the version of the checkpoint, which is between `first` and `version`. */
int ledger_set_checkpoint(struct ledger *ledger, uint64_t version, struct muster_err *err);

/* Makes the checkpoint of that version the newest one; the steps after it do not count, no worker
 * holds records, and no grants are made. MUSTER_EDATA: there is no checkpoint of that version. */
int ledger_cut(struct ledger *ledger, uint64_t version, struct muster_err *err);
/* Returns the records at that checkpoint; NULL: no step was committed yet. The caller frees them.
 * MUSTER_EDATA: there is no checkpoint of that version. */
int ledger_look_back(const struct ledger *ledger, uint64_t version, struct shard_state **ret,
                     struct muster_err *err);

/* Writes the whole ledger, except data sets that came after `first` (ledger_add). */
void ledger_write(const struct ledger *ledger, struct buf *ret);
/* Reads into a ledger that has the data sets, and no step. MUSTER_EDATA: the bytes are not
 * valid. */
int ledger_read(struct ledger *ledger, const uint8_t *bytes, size_t count, struct muster_err *err);

/* Writes the error text for a result of shard_step. */
int ledger_fail(int code, struct muster_err *err);

/* Whether no more steps can come: every record that is to be trained, or planned, is done, or the
 * limit of steps is reached. */
bool ledger_is_full(const struct ledger *ledger);
