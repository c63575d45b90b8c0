/* Checkpoints as files of a folder: written aside, made durable, renamed; read and checked.
 *
 * Layer: worker (part of libmuster). Memory: the caller's. Thread: any; it waits for the disk.
 */
#pragma once

#include "client/checkpoint/format.h"
#include "client/checkpoint/name.h"

/* The place in training at which a checkpoint was made. */
struct checkpoint_place {
    struct checkpoint_name name;
    uint8_t digest[CHECKPOINT_DIGEST_BYTES];
};

/* Writes a checkpoint. writer: the incarnation of this worker. cancelled is called now and then; if
 * it returns true: MUSTER_EABORTED. MUSTER_ECREATE, MUSTER_EIO: no file is left behind. The pieces
 * and sums of the head are not used: the function computes its own. */
int checkpoint_save(const char *folder, uint64_t writer, const struct checkpoint_head *head,
                    const uint64_t *sizes, const char *state, bool (*cancelled)(void *context),
                    void *context, struct checkpoint_place *ret, struct muster_err *err);

/* The properties that a checkpoint must have. */
struct checkpoint_wanted {
    const char *folder;
    const char *name;
    const uint8_t *digest;
    uint64_t version;
    uint64_t plan;
    const struct muster_elastic_piece *pieces;
    size_t num_pieces;
};

/* Checks by its head whether the checkpoint exists and fits. MUSTER_ENOENT: the folder has no
 * checkpoint of this job; MUSTER_EDATA: it is damaged, or only this one is missing;
 * MUSTER_ECONFLICT: it is of another model or data set; MUSTER_EUNSUPPORTED: it is of another
 * version of muster. */
int checkpoint_look(const struct checkpoint_wanted *wanted, struct muster_err *err);
/* Reads the checkpoint into the pieces, block by block: on failure they are partly overwritten. The
 * errors are those of checkpoint_look. */
int checkpoint_load(const struct checkpoint_wanted *wanted, struct muster_err *err);
