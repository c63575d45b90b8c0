/* Workers by leases: processes without a generation, which ask for records of one data set, say
 * when they are done, and renew their leases by whatever they say.
 *
 *     ENROLL   the data set is declared, or must be the job's; what an owner holds is settled
 *     FETCH    records are granted, now or when there are some; or all are done
 *     DONE     records are done: in the journal first, then RECEIPT. Each has a number, so that one
 *              that comes twice counts once; what failed is to do again
 *
 * A table of records of its own (shard/shard.h), beside the ledger: these records belong to no step
 * and are never cut. An owner whose process has died, or whose lease ran out, is out: its records
 * are to do, and what it says then is answered by EXPELLED. What one held that crashed is
 * suspected, and tried in parts by others (lease_blame.c). After a restart nothing is granted until
 * each owner of the journal has come back, or its lease ran out.
 *
 * Layer: program (coordinator), private to this folder. Pure. Memory: leases_init/done.
 */
#pragma once

#include "coordinator/arbiter/arbiter.h"
#include "coordinator/arbiter/aside.h"
#include "coordinator/arbiter/entry.h"
#include "shard/shard.h"
#include "wire/wire.h"

enum { LEASES_FAILURES_MAX = 256, LEASES_TRIES = 3, LEASES_OWNERS_MAX = 16384 };

struct lease_owner {
    uint64_t incarnation;
    uint64_t sequence; /* of its last DONE in the journal */
    uint64_t told;     /* in its last RECEIPT */
    uint64_t wanted;   /* it waits for so many records; 0: for none */
    uint32_t dataset;
    bool here;         /* it has enrolled with this term */
    bool ends;         /* it is to be told that all is done */
    bool disconnected; /* its connection has ended in this term, and nobody sees how it ends */
    bool dying;        /* it has died; what it held waits until the cause is known */
    char name[ARBITER_NAME_BYTES]; /* as a card's, once it is here */
};

/* What is summed up over the records of a data set. */
struct lease_sums {
    char names[WIRE_SUM_NAMES_MAX + 1]; /* "correct,loss" */
    uint32_t count;
    double list[WIRE_SUMS_MAX];
};

/* Records that a worker could not do. */
struct lease_failure {
    struct shard_range range;
    uint32_t tries;
};

struct leases {
    struct shard_state *shard;
    struct lease_sums sums[SHARD_DATASETS_MAX];
    struct lease_owner *owners; /* by incarnation */
    size_t owner_count;
    size_t owner_room;
    size_t away; /* owners that are not here */
    struct lease_failure failures[LEASES_FAILURES_MAX];
    size_t failure_count;
    struct asides asides; /* by the numbers of these data sets */
    bool serving;
    bool appended; /* receipts, or the end, are due once it is durable */
    bool syncing;  /* SYNC was asked for */
};

int leases_init(struct leases *leases, struct muster_err *err);
void leases_done(struct leases *leases);

/* ---- Events ---- */

void leases_start(struct arbiter *a);
/* False: the message is not for the leases. */
bool leases_hear(struct arbiter *a);
/* It has died. False: it is no owner of leases. */
bool leases_bury(struct arbiter *a, uint64_t incarnation, enum arbiter_cause cause);
/* … and nobody knows how, or when. */
bool leases_bury_gone(struct arbiter *a, uint64_t incarnation);
void leases_note_connection(struct arbiter *a, uint64_t incarnation, bool is_new);
void leases_durable(struct arbiter *a);
void leases_tick(struct arbiter *a);
/* What follows from the event: at its end. */
void leases_settle(struct arbiter *a);

/* ---- What is known ---- */

/* NULL: it is no owner. */
struct lease_owner *leases_owner(const struct leases *leases, uint64_t incarnation);
/* There are none. */
bool leases_are_unused(const struct leases *leases);
/* All records of all data sets are done, and nobody is there any more. */
bool leases_are_over(const struct leases *leases);

/* ---- Data sets (lease_sets.c) ---- */

/* False: the member was refused. */
bool leases_declare(struct arbiter *a, const struct wire_enroll *told, uint32_t *ret_number);
void leases_hear_to_do(struct arbiter *a, const struct lease_owner *owner,
                       const struct wire_to_do *told);
/* Marks all done that told->ranges does not list, and earlier epochs whole. False: the ranges do
 * not fit the data set. */
bool leases_begin_at(struct arbiter *a, uint32_t dataset, const struct wire_to_do *told);
/* Number n of them; they are separated by commas. */
uint32_t leases_count_sums(const char *names);
void leases_add_sums(struct lease_sums *sums, const struct wire_sums *told);

/* ---- Records that workers die of (lease_blame.c) ---- */

/* It is out, once the cause is known: what it held is suspected, unless it was killed from outside.
 */
void leases_die(struct arbiter *a, uint64_t incarnation, enum arbiter_cause cause,
                enum rendezvous_reason reason);
/* Judges a death whose cause was pending. */
void leases_settle_death(struct arbiter *a, uint64_t incarnation, enum arbiter_cause cause);
/* The table has named a record. */
void leases_name(struct arbiter *a, const struct shard_effect *named);
/* Records of a data set, of all epochs that have begun, which are set aside. */
uint64_t leases_left_out(const struct leases *leases, uint32_t dataset);
void leases_replay_aside(struct arbiter *a, const uint8_t *bytes, size_t count);

/* ---- The journal (lease_journal.c) ---- */

void leases_append_owner(struct arbiter *a, const struct lease_owner *owner, bool joined);
void leases_append_done(struct arbiter *a, uint64_t incarnation, const struct wire_done *done);
void leases_append_begin(struct arbiter *a, uint32_t dataset, const struct wire_to_do *told);
void leases_replay_dataset(struct arbiter *a, const struct arbiter_event *event);
void leases_replay_owner(struct arbiter *a, const struct arbiter_event *event);
void leases_replay_done(struct arbiter *a, const struct arbiter_event *event);
void leases_replay_begin(struct arbiter *a, const struct arbiter_event *event);
void leases_write(const struct leases *leases, struct buf *ret);
void leases_read(struct arbiter *a, const uint8_t *bytes, size_t count);

/* ---- The table (lease_table.c) ---- */

void leases_expel(struct arbiter *a, uint64_t to, const char *why);
/* Its records are to do again. */
void leases_put_out(struct arbiter *a, uint64_t incarnation);
/* All that it holds: what was granted to it may have been lost with its connection. */
void leases_send_held(struct arbiter *a, uint64_t owner);
/* Every record is done. */
void leases_send_ended(struct arbiter *a, const struct lease_owner *owner);
bool leases_tell_parts(struct arbiter *a, enum shard_event_kind kind, uint64_t owner,
                       const struct wire_ranges *ranges);
/* NULL: no memory, or there are too many. */
struct lease_owner *leases_add_owner(struct leases *leases, uint64_t incarnation);
void leases_remove_owner(struct leases *leases, struct lease_owner *owner);
/* A step of the table; what it says is carried out. False: it was refused. */
bool leases_tell(struct arbiter *a, const struct shard_event *event);
/* Marks them done, even if a worker holds them: before the table is served. */
bool leases_commit(struct arbiter *a, uint64_t owner, const struct wire_ranges *ranges);
