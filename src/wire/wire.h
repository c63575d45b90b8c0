/* The messages between the coordinator and the members of a job, as bytes.
 *
 * A frame is its length (4 bytes, without these), a kind (1), the sender's term (8) and the
 * message's fields, all little-endian, and nothing else. No field is optional except the anchor of
 * OPEN, its last field, which is present if the data set needs it. A connection begins with HELLO,
 * which is answered by WELCOME or REFUSED; its version says which fields exist. A message has one
 * encoding: a message that is read and written again has the same bytes.
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
 * The programs exchange neither ASK nor GRANT, and REPORT has no leases, because the records of
 * members are planned; test/simulation gives these messages to the cores (docs/step-commit.md).
 *
 * A worker by leases, without a generation, sends after each WELCOME:
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
    WIRE_FRAME_MAX = 4 << 20, /* the whole frame; OPEN of 10,000 members is the largest */
    WIRE_FIRST_MAX = 128,     /* of HELLO: nothing longer is read from a stranger */
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

/* A file with the name of a Unix socket and this suffix says that the coordinator of the socket has
 * ended: an empty file that the job is done, any other why the job has failed. `muster coordinator
 * --mark-done` writes it. */
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
    const char *bytes; /* no NUL within or at the end */
    uint32_t count;
};

struct wire_ranges {
    const struct shard_range *list;
    uint32_t count;
};

/* The records of a step, of all members. */
struct wire_step {
    uint64_t version; /* > 0 */
    uint32_t flags;
    struct wire_ranges ranges;
};

/* Steps whose versions follow each other. */
struct wire_steps {
    const struct wire_step *list;
    uint32_t count;
};

struct wire_address {
    uint8_t endpoint[WIRE_ADDRESS_BYTES]; /* communicators are formed with it */
    uint8_t region[WIRE_ADDRESS_BYTES];   /* the process's state is read from it */
};

struct wire_hello {
    uint32_t version; /* WIRE_VERSION */
    uint64_t incarnation;
    uint8_t token[WIRE_TOKEN_BYTES];
    uint64_t pid_space; /* the PID namespace in which `pid` is its number (core/pid_space.h); 0: not
                           known */
    uint32_t pid;
};

struct wire_join {
    struct wire_address address;
    uint64_t environment;  /* a digest of all that decides whether results have equal bits */
    struct wire_text name; /* of its pod, for people */
};

struct wire_leave {
    bool finished;
    bool broken_off; /* its program has ended its loop early, with records left */
};

struct wire_report {
    uint64_t generation;
    uint64_t version; /* of the last of the steps */
    uint64_t lost;    /* an incarnation, 0: none */
    bool ended;       /* the kernel of the lost member has ended their connection */
    bool closed;
    bool loaded;
    struct wire_steps steps;
    struct wire_steps prepared; /* none, or one: step version + 1 */
    struct wire_ranges leases;
};

struct wire_commits {
    uint64_t generation;
    struct wire_steps steps; /* at least one */
};

struct wire_ask {
    uint64_t records;
};

struct wire_progress {
    uint64_t generation;
    uint64_t version;
    uint64_t records; /* that this process has trained */
    uint64_t step_ns; /* means over the last steps: the whole step, and the exchange with others */
    uint64_t wait_ns;
};

struct wire_checkpoint {
    uint64_t generation;
    uint64_t version;
    uint8_t digest[WIRE_DIGEST_BYTES];
    struct wire_text path; /* of its file; in the answer: names, one on a line, newest last */
};

struct wire_checkpoint_failed {
    uint64_t generation;
    uint64_t version;
    bool reading;
    struct wire_text why;
};

/* Records that a step function has from now on: if the process dies, they become suspects. */
struct wire_pass {
    uint64_t generation;        /* in which the pass is computed; a newer one may be open */
    struct wire_ranges at_hand; /* empty, or one range: that of one micro-batch */
};

struct wire_fail {
    struct wire_text why;
};

/* A vote has found that this member's state differed from that of most members. */
struct wire_healed {
    uint64_t generation;
    uint64_t version; /* of the state that was voted about */
    uint64_t took_ns; /* from the vote until the member had the others' state */
};

/* A process was silent to this member, because it was stopped, for example; it was ended, so that
 * it writes nowhere. */
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
    struct wire_text checkpoint; /* restore: its path; empty: the model of the beginning */
    uint8_t digest[WIRE_DIGEST_BYTES];
    struct wire_members members; /* in the order of their ranks, at least one */
    struct wire_ranges suspects; /* a worker that has any of them at hand reports it by PASS */
    struct wire_ranges aside;    /* WIRE_ASIDE_MAX at most: records (not positions) that no worker
                                    trains any more, one in each range, in no epoch */
    struct shard_anchor anchor;  /* present if the data set has `per_worker` */
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
    bool last; /* nothing else can be granted now */
    struct wire_ranges ranges;
};

/* A data set whose records are planned, not leased: each step has the next positions in their
 * order, micro_batches * batch of them, and fewer in the last step of an epoch; with `per_worker`,
 * as many as the anchor of its generation says. */
struct wire_dataset {
    struct wire_text name; /* WIRE_DATASET_NAME_MAX bytes at most */
    uint32_t number;       /* in the job, as in ranges; valid in the coordinator's answer */
    uint32_t task;         /* enum shard_task */
    uint64_t records;      /* > 0 */
    uint32_t epochs;
    uint32_t batch;         /* records of a micro-batch, > 0 */
    uint32_t micro_batches; /* of a step; 0 from a member: the number of the others, or else 1 */
    uint32_t block;         /* of the shuffle, see shard/order.h */
    uint64_t seed;
    bool set_aside;     /* a record that crashes workers is set aside, and does not fail the job */
    bool per_worker;    /* micro_batches are for each worker, not for a step */
    uint64_t max_steps; /* from the coordinator: the log ends with this step; 0: with the last
                           epoch. From a worker 0: it does not decide about this */
};

/* Sums over the records that are done, as the bits of doubles. DONE adds a part to them. */
struct wire_sums {
    const uint64_t *list;
    uint32_t count; /* WIRE_SUMS_MAX at most */
};

struct wire_enroll {
    struct wire_dataset dataset; /* batch: records of a lease; micro_batches: 0 */
    struct wire_text sums;       /* their names, separated by commas; WIRE_SUM_NAMES_MAX bytes */
    struct wire_text name;       /* of its pod, for people */
    bool again;                  /* it was enrolled before, with this incarnation */
    struct wire_ranges held;
    uint8_t address[WIRE_ADDRESS_BYTES]; /* its process listens at this address; zeroes: nowhere */
};

struct wire_fetch {
    uint64_t records;
};

struct wire_done {
    uint64_t sequence; /* from 1, increased by 1 each time; a repeated number is the same message */
    struct wire_ranges done;
    struct wire_ranges failed; /* they must be done again */
    struct wire_sums sums;     /* over the records of `done` */
};

struct wire_leased {
    bool ended;        /* every record of every epoch is done */
    bool all;          /* these are all that it holds */
    uint64_t sequence; /* if `all`: after this DONE */
    struct wire_ranges ranges;
    struct wire_sums sums; /* if `ended`: over all records */
    uint64_t left_out;     /* if `ended`: records, of all epochs, that were set aside and are not in
                              `sums` */
};

struct wire_receipt {
    uint64_t sequence; /* the messages up to this one are durable */
};

struct wire_to_do {
    bool begin; /* →: asks that the data set begins with these records; ←: it does */
    uint32_t epoch;
    struct wire_ranges ranges; /* →: the records to do of that epoch; all earlier epochs are done */
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

/* Memory for the arrays of a message that is read. WIRE_ROOM_BYTES(frame) bytes are always enough:
 * an element is at most twice as large in memory as in the frame, as a struct wire_step without
 * ranges is. */
struct wire_room {
    void *memory; /* aligned as by malloc */
    size_t size_bytes;
    size_t used_bytes;
};
#define WIRE_ROOM_BYTES(frame_bytes) (2 * (size_t)(frame_bytes))

/* Returns the size of the frame that begins at `bytes`; 0 when `count` bytes are too few to know
 * it. MUSTER_ETOOBIG: it is more than `most`; MUSTER_EPROTO: it is too small for a frame. */
int64_t wire_frame_bytes(const uint8_t *bytes, size_t count, size_t most, struct muster_err *err);

/* Reads one whole frame. MUSTER_EPROTO: it is not a valid message; MUSTER_ETOOBIG: the room is too
 * small. */
int wire_read(const uint8_t *frame, size_t count, struct wire_room *room, struct wire_message *ret,
              struct muster_err *err);

/* Returns the size of the frame, and writes the frame if there is room for all of it.
 * MUSTER_ETOOBIG: it is larger than WIRE_FRAME_MAX. bytes may be NULL if room is 0. */
int64_t wire_write(const struct wire_message *message, uint8_t *bytes, size_t room,
                   struct muster_err *err);

/* Returns the name of a kind, such as "REPORT". */
const char *wire_kind_name(enum wire_kind kind);

/* Whether a worker that was let in may send this kind: not HELLO, and not the messages of a
 * coordinator. */
bool wire_kind_of_workers(enum wire_kind kind);
