/* The content of the coordinator's journal, record by record: the kinds, and their bytes.
 *
 * Messages of members are kept as the frames of wire/wire.h. Numbers are little-endian.
 *
 * Layer: program (coordinator). Pure. Memory: the caller's; an entry that was read points into the
 * record and the room. Thread: any.
 */
#pragma once

#include "base/buf.h"
#include "shard/shard.h"
#include "wire/wire.h"

enum entry_kind {
    ENTRY_DATASET = 1, /* entry_write_dataset: with one more number if it has per_worker */
    ENTRY_TERM,        /* a number */
    ENTRY_GENERATION, /* OPEN, as sent; the ages of its members; the step that it commits, if any */
    ENTRY_STEPS,      /* COMMITS */
    ENTRY_CHECKPOINT, /* CHECKPOINT */
    ENTRY_END,        /* nothing: the job is done */
    ENTRY_SNAPSHOT,   /* all of the journal until here: records as sections, data sets and the limit
                         before the ledger */
    ENTRY_LEDGER,     /* in a snapshot only: ledger_write */
    ENTRY_LOGGED,     /* in a snapshot only: the version of the log, a number */
    ENTRY_LEASED,     /* the names of sums, then as ENTRY_DATASET; leasing.h has all of these */
    ENTRY_OWNER,      /* an incarnation, its data set, 1 (it has enrolled) or 0 (it is out) */
    ENTRY_DONE,       /* an incarnation, DONE */
    ENTRY_BEGIN,      /* a data set, TO_DO */
    ENTRY_LEASES,     /* in a snapshot only: leases_write */
    ENTRY_LOST,       /* losses_write */
    ENTRY_NAMES,      /* of the generation's members, in their order: arbiter_write_names */
    ENTRY_OLDER,      /* in a snapshot only: the version of an older checkpoint, its records */
    ENTRY_FAILURE,    /* why the job has failed, a text */
    ENTRY_ASIDE,      /* asides_write */
    ENTRY_LEASE_ASIDE, /* the same, of a data set by leases; its position, except in a snapshot */
    ENTRY_ENVIRONMENT, /* of all workers of the job, as the first one sent it: a number, not 0 */
    ENTRY_MAX_STEPS,   /* the last step of the job: a number, not 0; before all steps */
    ENTRY_KINDS,
};

struct entry_generation {
    struct wire_message open;
    const uint8_t *ages; /* one for each member: entry_age */
    bool commits;
    struct wire_message step; /* COMMITS of one step */
};

void entry_write_number(uint64_t number, struct buf *ret);
uint64_t entry_read_number(const uint8_t *bytes); /* reads 8 bytes */

/* Sections of a snapshot. The bytes of a section follow its head. */
enum { ENTRY_SECTION_BYTES = 16 };
void entry_write_section(enum entry_kind kind, const void *bytes, size_t count, struct buf *ret);
/* Reads the section at *at, and moves *at on. Returns false if there are no more sections, or
 * *ret_wrong is set. */
bool entry_read_section(const uint8_t *bytes, size_t count, size_t *at, uint32_t *ret_kind,
                        const uint8_t **ret_bytes, size_t *ret_count, bool *ret_wrong);

void entry_write_term(uint64_t term, struct buf *ret);
void entry_write_dataset(const struct shard_dataset *spec, struct buf *ret);
int entry_write_message(const struct wire_message *message, struct buf *ret,
                        struct muster_err *err);
void entry_write_age(uint64_t age, struct buf *ret);

/* Read an entry. MUSTER_EDATA: the bytes are not valid. */
int entry_read_term(const uint8_t *bytes, size_t count, uint64_t *ret, struct muster_err *err);
int entry_read_dataset(const uint8_t *bytes, size_t count, struct shard_dataset *ret,
                       struct muster_err *err);
int entry_read_message(const uint8_t *bytes, size_t count, enum wire_kind kind,
                       struct wire_room *room, struct wire_message *ret, struct muster_err *err);
int entry_read_generation(const uint8_t *bytes, size_t count, struct wire_room *room,
                          struct entry_generation *ret, struct muster_err *err);
uint64_t entry_age(const struct entry_generation *generation, uint32_t member);
