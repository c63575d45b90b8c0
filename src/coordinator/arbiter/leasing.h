/* Workers by leases: processes without a generation, which ask for records of one data set, report
 * records that are done, and renew their leases with each message.
 *
 *     ENROLL   the data set is declared, or must be the job's; the owner reports what it holds
 *     FETCH    records are granted, now or when there are some; or all are done
 *     DONE     records are done: first in the journal, then RECEIPT. Each DONE has a number, so
 *              that one that comes twice counts once; records that failed are to do again
 *
 * The leases have a table of records of their own (shard/shard.h), beside the ledger: these records
 * belong to no step and are never cut. If an owner's process has died, or its lease ran out, its
 * records are to do, and later messages of it are answered by EXPELLED. The records that it held
 * when it crashed are suspected, and tried in parts by others (lease_blame.c). After a restart
 * nothing is granted until each owner of the journal has come back, or its lease ran out.
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
    uint64_t sequence; /* of its last DONE that is in the journal */
    uint64_t told;     /* of its last RECEIPT */
    uint64_t wanted;   /* the number of records that it waits for; 0: it does not wait */
    uint32_t dataset;
    bool here;         /* it has enrolled with this term */
    bool ends;         /* it must be informed that all is done */
    bool disconnected; /* its connection has ended in this term, and the end of its process is not
                          watched */
    bool dying;        /* it has died; the records that it held wait until the cause is known */
    char name[ARBITER_NAME_BYTES]; /* as in a card, after it has enrolled */
};

/* The sums over the records of a data set. */
struct lease_sums {
    char names[WIRE_SUM_NAMES_MAX + 1]; /* "correct,loss" */
    uint32_t count;
    double list[WIRE_SUMS_MAX];
};

/* Records that a worker reported as failed. */
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
    size_t away; /* owners that have not enrolled with this term */
    struct lease_failure failures[LEASES_FAILURES_MAX];
    size_t failure_count;
    struct asides asides; /* they have the numbers of these data sets */
    bool serving;
    bool appended; /* receipts, or the end, must be sent once it is durable */
    bool syncing;  /* SYNC was asked for */
};

int leases_init(struct leases *leases, struct muster_err *err);
void leases_done(struct leases *leases);

/* ---- Events ---- */

void leases_start(struct arbiter *a);
/* Handles a message. Returns false if it is not for the leases. */
bool leases_hear(struct arbiter *a);
/* Handles the death of an owner. Returns false if the process is not an owner of leases. */
bool leases_bury(struct arbiter *a, uint64_t incarnation, enum arbiter_cause cause);
/* Handles a death of unknown cause and time. */
bool leases_bury_gone(struct arbiter *a, uint64_t incarnation);
void leases_note_connection(struct arbiter *a, uint64_t incarnation, bool is_new);
void leases_durable(struct arbiter *a);
void leases_tick(struct arbiter *a);
/* Called at the end of each event: does what follows from it. */
void leases_settle(struct arbiter *a);

/* ---- What is known ---- */

/* Returns NULL if the process is not an owner. */
struct lease_owner *leases_owner(const struct leases *leases, uint64_t incarnation);
/* Whether there are no data sets by leases. */
bool leases_are_unused(const struct leases *leases);
/* Whether all records of all data sets are done, and no owner is left. */
bool leases_are_over(const struct leases *leases);

/* ---- Data sets (lease_sets.c) ---- */

/* Declares a data set. Returns false if the member was refused. */
bool leases_declare(struct arbiter *a, const struct wire_enroll *told, uint32_t *ret_number);
void leases_hear_to_do(struct arbiter *a, const struct lease_owner *owner,
                       const struct wire_to_do *told);
/* Marks as done all records that told->ranges does not list, and all earlier epochs. Returns false
 * if the ranges do not fit the data set. */
bool leases_begin_at(struct arbiter *a, uint32_t dataset, const struct wire_to_do *told);
/* Returns the number of names, which are separated by commas. */
uint32_t leases_count_sums(const char *names);
void leases_add_sums(struct lease_sums *sums, const struct wire_sums *told);

/* ---- Records that workers die of (lease_blame.c) ---- */

/* Removes an owner that has died, once the cause is known: the records that it held are suspected,
 * unless it was killed from outside. */
void leases_die(struct arbiter *a, uint64_t incarnation, enum arbiter_cause cause,
                enum rendezvous_reason reason);
/* Judges a death whose cause was pending. */
void leases_settle_death(struct arbiter *a, uint64_t incarnation, enum arbiter_cause cause);
/* Handles the effect of the table that a record was named. */
void leases_name(struct arbiter *a, const struct shard_effect *named);
/* Returns the number of records that are set aside, of all epochs of the data set that have
 * begun. */
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
/* Removes an owner; its records are to do again. */
void leases_put_out(struct arbiter *a, uint64_t incarnation);
/* Sends all ranges that the owner holds, because messages with grants may have been lost with its
 * connection. */
void leases_send_held(struct arbiter *a, uint64_t owner);
/* Informs the owner that every record is done. */
void leases_send_ended(struct arbiter *a, const struct lease_owner *owner);
bool leases_tell_parts(struct arbiter *a, enum shard_event_kind kind, uint64_t owner,
                       const struct wire_ranges *ranges);
/* Returns NULL if there is no memory, or there are too many owners. */
struct lease_owner *leases_add_owner(struct leases *leases, uint64_t incarnation);
void leases_remove_owner(struct leases *leases, struct lease_owner *owner);
/* Gives an event to the table, and carries out its effects. Returns false if it was refused. */
bool leases_tell(struct arbiter *a, const struct shard_event *event);
/* Marks records as done before the table is served, even if a worker holds them. */
bool leases_commit(struct arbiter *a, uint64_t owner, const struct wire_ranges *ranges);
