/* What the coordinator and the members of a job say to each other, as bytes.
 *
 * A frame is its length (4 bytes, of what follows), a kind (1), the sender's term (8) and the
 * message's fields, all little-endian; it has no room for anything else. None of them is optional
 * but the anchor of OPEN, its last field, which is there where the data set asks for it. A
 * connection begins with HELLO, which is answered by WELCOME or REFUSED; its version says which
 * fields there are. One message has one encoding: what is read and written again is the same bytes.
 *
 *     HELLO     who it is, and the job's token        WELCOME   the term; how long leases last
 *     JOIN      it can be reached, and is ready       REFUSED   why; the connection ends
 *     LEAVE     it is going                           OPEN      the members of a generation
 *     REPORT    what it did, and holds                CLOSE     the end of a generation
 *     COMMITS   steps that count                      ACK       steps that are durable
 *     ASK       for records                           GRANT     records to train
 *     PROGRESS  renews its leases; figures            EXPELLED  the others go on without it
 *     CHECKPOINT  it has written one; the answer, to all: those that the job may go back to
 *     CHECKPOINT_FAILED  it could not write one, or nobody can read the generation's
 *     PASS      the records that it has at hand
 *     FAIL      its program has found an error that ends the job
 *     HEALED    a bit of its state had changed by itself: it has read the others'
 *     DATASET   what is trained, both ways: after each WELCOME, before JOIN or REPORT, a member
 *               says which data set it has; the answer is the job's, or REFUSED
 *
 * The programs exchange neither ASK nor GRANT, and the leases of REPORT are none, as the records of
 * members are planned; test/simulation tells them to the cores (docs/step-commit.md).
 *
 * Who works by leases, without a generation, says after each WELCOME:
 *
 *     ENROLL    its data set, what it holds          DATASET   the job's, with its number
 *     FETCH     asks for records                      LEASED    records, none for now, or all done
 *     DONE      records are done, or have failed      RECEIPT   such messages that are durable
 *     TO_DO     asks what is to do, or says where     TO_DO     what is to do, and what is held
 *               the data set begins
 *     LEAVE, PROGRESS (renews)                        EXPELLED  its leases are lost
 *
 * Layer: pure (part of libmuster). Memory: the caller's; arrays of a message that was read lie in
 * the room it was read into, texts in the frame. Thread: any.
 */
#pragma once

#include "shard/anchor.h"
#include "shard/range.h"

#include <muster/err.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WIRE_VERSION = 10,
    WIRE_LENGTH_BYTES = 4,
    WIRE_FRAME_MAX = 4 << 20, /* whole; OPEN of 10,000 members is the largest */
    WIRE_FIRST_MAX = 128,     /* of HELLO: strangers are not read further */
    WIRE_TOKEN_BYTES = 32,
    WIRE_ADDRESS_BYTES = 128, /* MUSTER_MEMBER_BYTES */
    WIRE_DIGEST_BYTES = 32,
    WIRE_DATASET_NAME_MAX = 63,
    WIRE_SUMS_MAX = 8, /* of a data set */
    WIRE_SUM_NAMES_MAX = 255,
    WIRE_TEXT_MAX = 4096,
    WIRE_SUSPECTS_MAX = 64,
    WIRE_ASIDE_MAX = 256,
};

/* A file of a Unix socket's name and this says that its coordinator has ended: as the job is done,
 * where it is empty, or has failed, as it says. `muster coordinator --mark-done`. */
#define WIRE_DONE_SUFFIX ".done"

enum wire_kind {
    WIRE_HELLO = 1,
    WIRE_JOIN,
    WIRE_LEAVE,
    WIRE_REPORT,
    WIRE_COMMITS,
    WIRE_ASK,
    WIRE_PROGRESS,
    WIRE_CHECKPOINT,
    WIRE_WELCOME,
    WIRE_REFUSED,
    WIRE_OPEN,
    WIRE_CLOSE,
    WIRE_ACK,
    WIRE_GRANT,
    WIRE_EXPELLED,
    WIRE_DATASET,
    WIRE_ENROLL,
    WIRE_FETCH,
    WIRE_DONE,
    WIRE_LEASED,
    WIRE_RECEIPT,
    WIRE_TO_DO,
    WIRE_CHECKPOINT_FAILED,
    WIRE_PASS,
    WIRE_FAIL,
    WIRE_HEALED,
    WIRE_SILENT,
    WIRE_KINDS,
};

struct wire_text {
    const char *bytes; /* no NUL within, none at the end */
    uint32_t count;
};

struct wire_ranges {
    const struct shard_range *list;
    uint32_t count;
};

/* The records of a step, those of all members. */
struct wire_step {
    uint64_t version; /* > 0 */
    uint32_t flags;
    struct wire_ranges ranges;
};

/* Their versions follow each other. */
struct wire_steps {
    const struct wire_step *list;
    uint32_t count;
};

struct wire_address {
    uint8_t endpoint[WIRE_ADDRESS_BYTES]; /* communicators are formed with it */
    uint8_t region[WIRE_ADDRESS_BYTES];   /* its state is read from it */
};

struct wire_hello {
    uint32_t version; /* WIRE_VERSION */
    uint64_t incarnation;
    uint8_t token[WIRE_TOKEN_BYTES];
    uint64_t pid_space; /* where `pid` is its number (core/pid_space.h); 0: not known */
    uint32_t pid;
};

struct wire_join {
    struct wire_address address;
    uint64_t environment;  /* a digest of what equal bits depend on */
    struct wire_text name; /* of its pod, for people */
};

struct wire_leave {
    bool finished;
    bool broken_off; /* its program has ended its loop by itself, with records left */
};

struct wire_report {
    uint64_t generation;
    uint64_t version; /* the steps end there */
    uint64_t lost;    /* an incarnation, 0: none */
    bool ended;       /* its kernel has ended the connection to it */
    bool closed;
    bool loaded;
    struct wire_steps steps;
    struct wire_steps prepared; /* none, or one: step version + 1 */
    struct wire_ranges leases;
};

struct wire_commits {
    uint64_t generation;
    struct wire_steps steps; /* one at least */
};

struct wire_ask {
    uint64_t records;
};

struct wire_progress {
    uint64_t generation;
    uint64_t version;
    uint64_t records; /* trained here */
    uint64_t step_ns; /* means of late steps: whole, and in the exchange with others */
    uint64_t wait_ns;
};

struct wire_checkpoint {
    uint64_t generation;
    uint64_t version;
    uint8_t digest[WIRE_DIGEST_BYTES];
    struct wire_text
        path; /* the name of its file; of the answer: names, one on a line, newest last */
};

struct wire_checkpoint_failed {
    uint64_t generation;
    uint64_t version;
    bool reading;
    struct wire_text why;
};

/* Records that a step function has from now on: if the process dies, they are suspected. */
struct wire_pass {
    uint64_t generation;        /* in which it is computed, a newer one may be open */
    struct wire_ranges at_hand; /* none, or one range: of one micro-batch */
};

struct wire_fail {
    struct wire_text why;
};

/* A vote has found its state to be another one than that of most. */
struct wire_healed {
    uint64_t generation;
    uint64_t version; /* of the state that was voted about */
    uint64_t took_ns; /* from the vote until it had the others' state */
};

/* It was silent to this member, and stopped, say: its process was ended so that it writes nowhere.
 */
struct wire_silent {
    uint64_t incarnation;
    uint32_t silent_ms;
};

struct wire_welcome {
    uint32_t version; /* WIRE_VERSION */
    uint64_t lease_ms;
};

struct wire_refused {
    struct wire_text why;
};

struct wire_member {
    uint64_t incarnation;
    bool loaded; /* the state can be read from it */
    struct wire_address address;
};

struct wire_members {
    const struct wire_member *list;
    uint32_t count;
};

struct wire_open {
    uint64_t generation;
    uint64_t base;
    uint64_t lineage;
    bool restore;
    struct wire_text checkpoint; /* restore: its path, empty for the model as it was at first */
    uint8_t digest[WIRE_DIGEST_BYTES];
    struct wire_members members; /* in the order of their ranks, one at least */
    struct wire_ranges suspects; /* a worker that has any of them at hand says so: PASS */
    struct wire_ranges aside;    /* WIRE_ASIDE_MAX at most: records, not positions, one each, of no
                                    epoch, that nobody trains any more */
    struct shard_anchor anchor;  /* where the data set has `per_worker`; none otherwise */
};

struct wire_close {
    uint64_t generation;
    bool boundary;
};

struct wire_ack {
    uint64_t version;
};

struct wire_grant {
    uint64_t incarnation;
    bool last; /* there is nothing else to grant now */
    struct wire_ranges ranges;
};

/* A data set whose records are planned, not leased: step by step, its positions come in their
 * order, micro_batches * batch of them to a step, fewer in the last step of an epoch; where it has
 * `per_worker`, as many as the anchor of its generation says. */
struct wire_dataset {
    struct wire_text name; /* WIRE_DATASET_NAME_MAX bytes at most */
    uint32_t number;       /* in the job, as ranges name it; the coordinator's answer has it */
    uint32_t task;         /* enum shard_task */
    uint64_t records;      /* > 0 */
    uint32_t epochs;
    uint32_t batch;         /* records of a micro-batch, > 0 */
    uint32_t micro_batches; /* of a step; a member's 0: as the others say, or else 1 */
    uint32_t block;         /* of the shuffle, see shard/order.h */
    uint64_t seed;
    bool set_aside;     /* a record that crashes workers is, and does not fail the job */
    bool per_worker;    /* micro_batches are those of each worker, not of a step */
    uint64_t max_steps; /* the coordinator's: the log ends with this step; 0: with the last epoch. A
                           worker's 0: it has no word in it */
};

/* Sums over the records that are done, of which DONE brings a part: bits of doubles. */
struct wire_sums {
    const uint64_t *list;
    uint32_t count; /* WIRE_SUMS_MAX at most */
};

struct wire_enroll {
    struct wire_dataset dataset; /* batch: records of a lease; micro_batches: 0 */
    struct wire_text sums;       /* their names, a comma between two; WIRE_SUM_NAMES_MAX bytes */
    struct wire_text name;       /* of its pod, for people */
    bool again;                  /* it was enrolled before, with this incarnation */
    struct wire_ranges held;
    uint8_t address[WIRE_ADDRESS_BYTES]; /* its process listens there; zeroes: nowhere */
};

struct wire_fetch {
    uint64_t records;
};

struct wire_done {
    uint64_t sequence; /* from 1, one more each time; the same again is the same message */
    struct wire_ranges done;
    struct wire_ranges failed; /* they are to do again */
    struct wire_sums sums;     /* of those that are done */
};

struct wire_leased {
    bool ended;        /* every record of every epoch is done */
    bool all;          /* these are all that it holds, */
    uint64_t sequence; /* all: since this DONE */
    struct wire_ranges ranges;
    struct wire_sums sums; /* ended: of all records, */
    uint64_t left_out;     /* but so many, of all epochs, which are set aside */
};

struct wire_receipt {
    uint64_t sequence; /* up to this one they are durable */
};

struct wire_to_do {
    bool begin; /* →: the data set begins so; ←: it does */
    uint32_t epoch;
    struct wire_ranges ranges; /* →: of that epoch; those before it are done */
    struct wire_ranges held;
};

struct wire_expelled {
    uint64_t incarnation;
    uint32_t reason; /* enum rendezvous_reason */
    struct wire_text why;
};

struct wire_message {
    enum wire_kind kind;
    uint64_t term;
    union {
        struct wire_hello hello;
        struct wire_join join;
        struct wire_leave leave;
        struct wire_report report;
        struct wire_commits commits;
        struct wire_ask ask;
        struct wire_progress progress;
        struct wire_checkpoint checkpoint;
        struct wire_welcome welcome;
        struct wire_refused refused;
        struct wire_open open;
        struct wire_close close;
        struct wire_ack ack;
        struct wire_grant grant;
        struct wire_expelled expelled;
        struct wire_dataset dataset;
        struct wire_enroll enroll;
        struct wire_fetch fetch;
        struct wire_done done;
        struct wire_leased leased;
        struct wire_receipt receipt;
        struct wire_to_do to_do;
        struct wire_checkpoint_failed checkpoint_failed;
        struct wire_pass pass;
        struct wire_fail fail;
        struct wire_healed healed;
        struct wire_silent silent;
    };
};

/* Memory for the arrays of messages that are read. WIRE_ROOM_BYTES(frame) bytes are always enough.
 */
struct wire_room {
    void *memory; /* aligned as by malloc */
    size_t size_bytes;
    size_t used_bytes;
};
#define WIRE_ROOM_BYTES(frame_bytes) (2 * (size_t)(frame_bytes))

/* How many bytes the frame has that begins there; 0: `count` bytes do not tell yet. MUSTER_ETOOBIG:
 * more than `most`; MUSTER_EPROTO: too few to be one. */
int64_t wire_frame_bytes(const uint8_t *bytes, size_t count, size_t most, struct muster_err *err);

/* One whole frame. MUSTER_EPROTO: it is none of ours; MUSTER_ETOOBIG: the room is too small. */
int wire_read(const uint8_t *frame, size_t count, struct wire_room *room, struct wire_message *ret,
              struct muster_err *err);

/* The bytes of the frame, which is written if there is room for all of them. MUSTER_ETOOBIG: more
 * than WIRE_FRAME_MAX. bytes may be NULL where room is 0. */
int64_t wire_write(const struct wire_message *message, uint8_t *bytes, size_t room,
                   struct muster_err *err);

/* "REPORT" */
const char *wire_kind_name(enum wire_kind kind);

/* True when a worker may send it once it was let in: not HELLO, and not what only a coordinator
 * says. */
bool wire_kind_of_workers(enum wire_kind kind);
