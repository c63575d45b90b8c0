/* The decisions of a job's coordinator: it combines which workers train together
 * (rendezvous/rendezvous.h), which of them gets which records (shard/shard.h), and the journal.
 *
 * arbiter_step() gets one event and returns what is to be done, in order (effects.h): a record is
 * appended before the messages that announce it are sent. If an append fails, no later effect may
 * be carried out; the journal is still right, and the coordinator is started again from it.
 *
 *     the journal's records, then START; once SERVE comes, messages
 *     SYNC      answered by DURABLE
 *     TICK      at arbiter_next_ms() or later
 *
 * Data sets are declared in the options, or by members. The records of members are planned: no
 * lease is needed, and a step with other records than the plan's next ones is a contradiction
 * (MUSTER_EDATA).
 *
 * Besides, there are data sets by leases, for processes that are members of no generation (ENROLL):
 * the job is done when their records are done, too. The records that such a process held when it
 * died are also tried in parts.
 *
 * Training ends with the last epoch, or with step max_steps of the log, which the journal has:
 * steps that were undone do not count. Members get this limit with their data set.
 *
 * Members ask for records without naming a data set: the data sets to be trained are served one
 * after the other, in the order of the options. Grants are the last effects of a step. A grant
 * without records, marked as the last one, says that no other records are free now: its member
 * trains those that it has, and asks again.
 *
 * A job fails (ARBITER_FAILED) when a worker says so (FAIL), or when ARBITER_TRIES workers have
 * died with the same record at hand (PASS). This record is named. If its data set has the option,
 * the record is set aside instead: members get it with OPEN, and train it in no epoch. The records
 * that a worker had at hand when it died are suspected, in parts, until their step is committed;
 * members get the parts with OPEN, and compute them one by one. The journal does not have suspected
 * records, but it has the failure of the job.
 *
 * A member that is silent for the time of a lease is assumed dead; if the log has every record, it
 * is assumed to have ended well. The same is assumed at once of a member that is gone. If a death
 * is proven its cause decides, even if the cause becomes known later.
 *
 * Layer: program (coordinator). Pure: no clock, no I/O. Memory: arbiter_new/free; what events point
 * to is borrowed for the call. Thread: one.
 */
#pragma once

#include "coordinator/arbiter/aside.h"
#include "coordinator/arbiter/effects.h"
#include "coordinator/arbiter/losses.h"
#include "rendezvous/rendezvous.h"
#include "shard/shard.h"
#include "wire/wire.h"

enum {
    ARBITER_PEERS_MAX = 16384,
    ARBITER_DEADLINE_MS = 800, /* for reports, once a generation is closed */
    ARBITER_MISSED_MS = 100, /* if only members are late that others have lost: these were silent to
                                the others before */
    ARBITER_TRIES = 3
};

struct arbiter_options {
    struct rendezvous_config sizes;
    uint32_t peers; /* the number of processes at a time, members and joiners */
    const struct shard_dataset *datasets; /* borrowed until START */
    size_t dataset_count;
    uint32_t micro_batches; /* of a planned data set whose members do not set it; 0: 1 */
    int64_t lease_ms;       /* at least SHARD_LEASE_MS */
    int64_t pass_ms; /* how long a step function may take while others wait; 0: 20 times the median
                        of the last passes, at least 10 s; < 0: no limit */
    int64_t pass_max_ms; /* the maximum of a limit that depends on the last passes; 0: no limit */
    int64_t first_ms;    /* how long the first generation waits for sizes.first_size members */
    uint64_t least_term; /* 0: the one after the journal's */
    uint64_t max_steps;  /* the job is done when its log has this number of steps; 0: the journal's
                            number, or no limit */
};

enum arbiter_event_kind {
    ARBITER_REPLAY,       /* record, bytes, count: from the journal */
    ARBITER_START,        /* the journal has no more */
    ARBITER_MESSAGE,      /* incarnation, message */
    ARBITER_DISCONNECTED, /* incarnation; cause: PENDING if its process is watched, and DEAD will
                             say how that has ended */
    ARBITER_CONNECTED, /* incarnation: it has connected again; messages that were sent to it before
                          may be lost */
    ARBITER_DEAD,      /* incarnation, cause: proven */
    ARBITER_CAUSE,     /* incarnation, cause: of a process whose cause was pending */
    ARBITER_GONE, /* incarnation: its process ended at an unknown time, before it sent anything in
                     this term */
    ARBITER_DURABLE,
    ARBITER_TICK,
};

/* The cause of a death. It decides whether the records that were at hand are blamed for the
 * death. */
enum arbiter_cause {
    ARBITER_CAUSE_UNKNOWN,
    ARBITER_CAUSE_PENDING, /* it is reported later */
    ARBITER_CAUSE_OWN,     /* the process itself: it crashed, or was out of memory */
    ARBITER_CAUSE_OUTSIDE, /* it was killed */
    ARBITER_CAUSE_ENDED,   /* with exit code 0: this is a good end if the log has every record */
};

struct arbiter_event {
    enum arbiter_event_kind kind;
    enum arbiter_cause cause;
    int64_t now_ms;
    uint64_t incarnation;
    const struct wire_message *message;
    uint32_t record; /* enum entry_kind */
    const uint8_t *bytes;
    size_t count;
};

struct arbiter;

int arbiter_new(const struct arbiter_options *options, struct arbiter **ret,
                struct muster_err *err);
/* The argument may be NULL. */
void arbiter_free(struct arbiter *arbiter);

/* Writes to ret the effects of the event, also those before a failure. After a failure the arbiter
 * cannot be used any more, but what was appended is right. MUSTER_EDATA: the journal or members
 * contradict themselves. */
int arbiter_step(struct arbiter *arbiter, const struct arbiter_event *event,
                 struct arbiter_effects *ret, struct muster_err *err);

/* May be called between steps, while nothing is being written to the disk. */
bool arbiter_may_compact(const struct arbiter *arbiter);
/* Writes ENTRY_SNAPSHOT, a record that can replace all records of the journal. */
int arbiter_snapshot(struct arbiter *arbiter, struct buf *ret, struct muster_err *err);

uint64_t arbiter_term(const struct arbiter *arbiter);
uint64_t arbiter_generation(const struct arbiter *arbiter);
bool arbiter_is_open(const struct arbiter *arbiter);     /* its generation is not being closed */
bool arbiter_is_restored(const struct arbiter *arbiter); /* … has begun from a checkpoint */
uint64_t arbiter_version(const struct arbiter *arbiter); /* of the last step in the log */
/* Returns when the next time limit ends; INT64_MAX: there is none. */
int64_t arbiter_next_ms(const struct arbiter *arbiter);

struct arbiter_figures {
    uint64_t term;
    uint64_t generation;
    uint64_t version;
    uint32_t members; /* members of the open generation that continue */
    uint32_t joiners;
    uint32_t epoch; /* of the first data set that is not done, from 0; equal to `epochs` if all are
                       done */
    uint32_t epochs;
    uint64_t records_done;  /* of all data sets that are trained or planned */
    uint64_t records;       /* all that the log will have of these; UINT64_MAX: no end */
    uint64_t records_asked; /* all records of all their epochs, even beyond the limit of steps */
    uint64_t max_steps;     /* 0: no limit */
};

/* Returns the name of the process's pod, ARBITER_NAME_BYTES at most; "": it has sent none, or is
 * forgotten. */
const char *arbiter_name(const struct arbiter *arbiter, uint64_t incarnation);
const struct losses *arbiter_losses(const struct arbiter *arbiter);
struct arbiter_aside {
    struct aside aside;
    bool leased;                    /* of a data set by leases: these come last */
    char dataset[SHARD_NAME_BYTES]; /* its name */
};

/* Returns a record that is set aside, by number from 0; false: there are no more. */
bool arbiter_aside(const struct arbiter *arbiter, uint32_t number, struct arbiter_aside *ret);
bool arbiter_knows(const struct arbiter *arbiter, uint64_t incarnation);
void arbiter_figures(const struct arbiter *arbiter, struct arbiter_figures *ret);
/* Returns the progress of a data set, by its number from 0; false: there are no more. */
bool arbiter_dataset(const struct arbiter *arbiter, uint32_t number, struct shard_progress *ret);
/* Does the same for data sets by leases. Returns also the names of their sums, separated by commas,
 * and the values. */
bool arbiter_leased(const struct arbiter *arbiter, uint32_t number, struct shard_progress *ret,
                    const char **ret_names, const double **ret_sums);
/* Returns the number of records that are set aside, of all its epochs until now: they are done, but
 * in no sum. */
uint64_t arbiter_left_out(const struct arbiter *arbiter, uint32_t number);
/* Returns a text such as "it did not answer, …". */
const char *arbiter_why(enum rendezvous_reason reason);

/* Returns why the job has failed, a line for people and the details; NULL: it has not failed. */
const char *arbiter_failure(const struct arbiter *arbiter);

/* Returns NULL, or the name of the invariant that is violated. For tests. */
const char *arbiter_check(const struct arbiter *arbiter);
