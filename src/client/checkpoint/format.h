/* A checkpoint as bytes: a head that says what it is, then the worker's state.
 *
 *     magic (8), version of the format (4), bytes of the head (4)
 *     lineage, version, epoch, position, digest of the plan, bytes of the state (8 each)
 *     number of pieces (4), bytes of a block (4)
 *     the bytes of each piece (8 each)
 *     the checksum of each block of the state (8 each)
 *     the checksum of all of that (8)
 *     the state: the pieces one after the other
 *
 * Numbers are little-endian. A file has no room for anything else: its size follows from its head.
 * The digest of a checkpoint is that of its head, which has the checksums of all the rest.
 *
 * Layer: worker (part of libmuster). Pure. Memory: the caller's. Thread: any.
 */
#pragma once

#include <muster/elastic.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CHECKPOINT_FORMAT = 1,
    CHECKPOINT_FIXED_BYTES = 72,
    CHECKPOINT_BLOCK_BYTES = 1 << 20,
    CHECKPOINT_PIECES_MAX = 65536,
    CHECKPOINT_DIGEST_BYTES = 32,
};
#define CHECKPOINT_STATE_MAX (UINT64_C(1) << 42)

struct checkpoint_head {
    uint64_t lineage; /* of the log that it belongs to: rendezvous/rendezvous.h */
    uint64_t version;
    uint64_t epoch;    /* of the next step … */
    uint64_t position; /* … and the position of its first record */
    uint64_t plan;     /* plan_digest */
    uint64_t state_bytes;
    uint32_t num_pieces;
    uint32_t head_bytes;
    const uint8_t *pieces; /* of a head that was read: see checkpoint_piece_bytes */
    const uint8_t *sums;   /* … and checkpoint_block_sum */
};

/* Returns the number of blocks of the state; the last one may have fewer bytes. */
uint64_t checkpoint_blocks(const struct checkpoint_head *head);
size_t checkpoint_head_bytes(uint32_t num_pieces, uint64_t state_bytes);
uint64_t checkpoint_piece_bytes(const struct checkpoint_head *head, uint32_t piece);
uint64_t checkpoint_block_sum(const struct checkpoint_head *head, uint64_t block);

/* Writes checkpoint_head_bytes bytes to ret. sizes: those of the pieces; state: all pieces, one
 * after the other. */
void checkpoint_write_head(const struct checkpoint_head *head, const uint64_t *sizes,
                           const char *state, uint8_t *ret);

/* Returns the size of the head, by the first bytes of a file, at least CHECKPOINT_FIXED_BYTES. In
 * every version of the format a head has its size at the same place, and ends with its checksum.
 * MUSTER_EDATA: it is not a checkpoint, or is torn or damaged. */
int64_t checkpoint_measure(const uint8_t *bytes, size_t count, uint64_t file_bytes,
                           struct muster_err *err);
/* Reads the whole head. The pointers in ret point into `bytes`. MUSTER_EDATA: it is damaged;
 * MUSTER_EUNSUPPORTED: it is whole, but of another version. */
int checkpoint_read_head(const uint8_t *bytes, size_t count, uint64_t file_bytes,
                         struct checkpoint_head *ret, struct muster_err *err);

void checkpoint_digest(const uint8_t *head, size_t count, uint8_t ret[CHECKPOINT_DIGEST_BYTES]);
