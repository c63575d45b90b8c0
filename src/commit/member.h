/* The member's side of a step as a transaction: when a worker enters a step, prepares it, commits
 * it, freezes, and goes on in the next generation. docs/step-commit.md has the protocol; the
 * numbers below are its rules.
 *
 * commit_member_step() is told one event and says what is to be done, in order (effects). Only
 * versions are kept here: what a step consists of (its sum, every member's records) is kept by the
 * caller under the step's version, until an effect lets it go. Step v + 1 is the step that makes
 * version v + 1 of version v.
 *
 *     stage     event              becomes   effects                                        rule
 *     OUT       OPEN               WORKING   FORM, LOAD                                     7, 8
 *     OUT       OPEN, restore      WORKING   FORM, RESTORE                                  11
 *     WORKING   READY              WORKING   ENTER                                          1, 13
 *     WORKING   REDUCED, LOADED    PREPARED  BARRIER: once both are true                    2, 8
 *     WORKING   LOST, CLOSE        CLOSED    ABORT, REPORT                                  4
 *     PREPARED  PASSED             WORKING   APPLY, COMMITS                                 3
 *     PREPARED  LOST, CLOSE        CLOSED    ABORT, REPORT; the sum is kept                 4
 *     CLOSED    OPEN, base = v     WORKING   DISCARD if it has a sum, FORM                  7
 *     CLOSED    OPEN, base = v + 1 WORKING   APPLY, FORM; FAIL without a sum                7
 *     CLOSED    OPEN, no state     WORKING   FORM, LOAD                                     8
 *     CLOSED    OPEN, restore      WORKING   FORM, RESTORE                                  11
 *     CLOSED    the same, but it   OVER      FAIL: the state was to be restored only if     11
 *               has the state                nobody has it
 *     any       EXPELLED           OVER      ABORT, DISCARD, REJOIN                         12
 *     any       ACK                          TRIM; FINISH (OVER) once the ledger is full    14
 *     any       CONNECTED                    JOIN while OUT, else REPORT                    9
 *
 * Each OPEN that becomes WORKING also has TRIM: the log is durable through its base.
 *
 * What is not in the table changes nothing: above all REDUCED and PASSED of another generation or
 * step, or after the generation was closed (4), messages of an older term, and OPEN of a generation
 * that is not newer. CLOSE at a boundary waits for the end of a step that was entered.
 *
 * Layer: pure (part of libmuster). Memory: the caller's; no pointer is kept, so that a copy of the
 * struct is a copy of the state. Thread: one at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Versions and generations never reach this limit, so that the next number always exists. */
#define COMMIT_VERSION_MAX (UINT64_MAX / 2)

enum commit_stage {
    COMMIT_OUT,      /* in no generation yet */
    COMMIT_WORKING,  /* W: on step version + 1 */
    COMMIT_PREPARED, /* P: holds the complete sum, every member's records, and the state */
    COMMIT_CLOSED,   /* frozen until OPEN */
    COMMIT_OVER,     /* expelled, finished or failed */
};

struct commit_member {
    uint64_t incarnation;
    uint64_t term;       /* the newest that it has heard of */
    uint64_t generation; /* 0: none yet */
    uint64_t lineage;
    uint64_t version; /* applied */
    uint64_t acked;   /* durable with the coordinator */
    enum commit_stage stage;
    bool connected;
    bool entered;  /* WORKING: the others can see its contribution to the step */
    bool reduced;  /* WORKING: the step is complete here, the state is still being loaded */
    bool prepared; /* PREPARED, CLOSED: holds the sum of step version + 1 */
    bool loaded;   /* has the state of `version` */
    bool boundary; /* it must close when the step that it entered is over */
    bool leaving;  /* was asked to end (pre-emption) */
    bool complete; /* the ledger says that no record is left */
};

enum commit_event_kind {
    /* the coordinator's connection; all but DISCONNECTED carry the sender's term */
    COMMIT_CONNECTED,
    COMMIT_WELCOMED, /* the coordinator has answered: messages of an older term are ignored */
    COMMIT_DISCONNECTED,
    COMMIT_OPEN,     /* generation, version (base), lineage, restore */
    COMMIT_CLOSE,    /* generation, boundary */
    COMMIT_ACK,      /* version: durable */
    COMMIT_EXPELLED, /* incarnation */
    COMMIT_GRANT,    /* incarnation */
    /* the data plane; all carry the generation */
    COMMIT_READY,   /* it has records, or a peer has entered the step */
    COMMIT_REDUCED, /* version: of the step whose reductions and manifests are all here */
    COMMIT_PASSED,  /* version: of the step whose barrier it has passed */
    COMMIT_LOST,    /* a peer is dead, suspected, closed or of a newer generation; incarnation */
    COMMIT_LOADED,  /* version: of the state that LOAD or RESTORE has read, valid at its end */
    /* this process */
    COMMIT_LEAVE,    /* it is asked to end */
    COMMIT_COMPLETE, /* the ledger of applied steps has every record of the job */
    COMMIT_EVENT_KINDS,
};

struct commit_event {
    enum commit_event_kind kind;
    uint64_t term;
    uint64_t generation;
    uint64_t version;
    uint64_t lineage;
    uint64_t incarnation;
    bool restore;
    bool boundary;
    bool ended; /* LOST: its end of the connection was closed by its kernel, or it is dead */
};

enum commit_effect_kind {
    COMMIT_DO_JOIN,    /* send JOIN */
    COMMIT_DO_REPORT,  /* send REPORT: this struct, leases, steps after `acked` up to `version`, and
                          if prepared the records of version + 1; incarnation: the member that was
                          lost, or 0; ended: as in LOST */
    COMMIT_DO_COMMITS, /* send COMMITS: step `version` */
    COMMIT_DO_LEAVE,   /* send LEAVE; finished: after the last step */
    COMMIT_DO_ENTER, /* show the others its contribution to step `version`; begin the reductions */
    COMMIT_DO_BARRIER, /* enter the barrier of step `version` */
    COMMIT_DO_APPLY, /* update the model by the sum of step `version`; keep its records until TRIM,
                        and drop their leases */
    COMMIT_DO_DISCARD, /* drop the sum of step `version`: its records must be trained again */
    COMMIT_DO_ABORT,   /* abort the communicator of `generation`: none of its calls may complete */
    COMMIT_DO_FORM,    /* form the communicator of OPEN's members */
    COMMIT_DO_LOAD,    /* read the state of `version` from members that have it; then LOADED */
    COMMIT_DO_RESTORE, /* drop all leases and kept steps; read the checkpoint of `version` */
    COMMIT_DO_TRIM,    /* drop the kept steps up to `version` */
    COMMIT_DO_KEEP, /* the grant is valid: take its records, except those that it holds and those of
                       kept steps */
    COMMIT_DO_REJOIN, /* drop model, leases and sums; end, or join again as another incarnation */
    COMMIT_DO_FINISH, /* the job is done: exit 0 */
    COMMIT_DO_FAIL,   /* OPEN asks for something that this member cannot do: stop with an error */
};

struct commit_effect {
    enum commit_effect_kind kind;
    uint64_t generation;
    uint64_t version;
    uint64_t incarnation;
    bool finished;
    bool ended;
};

enum { COMMIT_EFFECTS_MAX = 8 };

struct commit_effects {
    size_t count;
    struct commit_effect list[COMMIT_EFFECTS_MAX];
};

void commit_member_init(struct commit_member *member, uint64_t incarnation);

/* Writes to ret the effects of the event, in the order in which they must be carried out;
 * overwrites its former content. */
void commit_member_step(struct commit_member *member, const struct commit_event *event,
                        struct commit_effects *ret);

/* Returns NULL, or the name of the invariant that is violated. Invariants hold between steps; tests
 * check them after each step. */
const char *commit_member_check(const struct commit_member *member);
