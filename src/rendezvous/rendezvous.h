/* Which processes train together, as the coordinator decides it: processes join and leave,
 * generations of them are closed and opened, what they have committed is logged.
 * docs/step-commit.md has the protocol; the numbers below are its rules. Whether a step counts is
 * decided by commit/tally.h.
 *
 * rendezvous_step() is told one event and says what is to be done, in order (effects). Only
 * versions and incarnations are kept here; the records of steps, leases, addresses and files are
 * the caller's.
 *
 *     phase      event                      becomes    effects                                rule
 *     READING    REPLAY_…                   READING    (the journal, from its beginning)
 *     READING    START                      RUNNING    TERM, SYNC; SERVE once durable; CLOSING
 *                                                      where no generation was ever opened
 *     RUNNING    REPORT closed, DEAD,       CLOSING    CLOSE to the others, AWAIT                4
 *                REOPEN
 *     RUNNING    JOIN, LEAVE, once settled  CLOSING    CLOSE at a boundary                       4
 *     CLOSING    REPORT, DEAD, DEADLINE …   RECORDING  GENERATION, SYNC: once the verdict is    5,
 *                                                      in, and there are members enough      6, 11
 *     RECORDING  DURABLE                    RUNNING    CUT (11), EXPELLED, RETURN_LEASES (10),
 *                                                      OPEN (7)
 *     CLOSING    … the log is complete,     OVER       EXPELLED to all, END                     14
 *                one has finished, none
 *                has the state
 *     RUNNING    UNREADABLE                 CLOSING    CLOSE; the next one restores the         11
 *                                                      checkpoint before that
 *     any        CHECKPOINT                            CHECKPOINT, SYNC; TELL_CHECKPOINTS once
 *                                                      durable
 *     any        COMMITS, REPORT with steps            LOG, SYNC; ACK once durable               3
 *     any        COMMITS of durable steps              ACK, again                                3
 *     any        REPORT of an unknown one              EXPELLED                                 12
 *     any        REPORT of a former                    OPEN, again                               7
 *                generation
 *
 * Order. What is appended is durable when DURABLE answers SYNC; one SYNC is under way at a time. An
 * effect that announces something (OPEN, ACK, EXPELLED, RETURN_LEASES) is given after that DURABLE.
 * A generation is one record of the journal: its members, its base and, where base is not in the
 * log yet, the records of that step, which a report brought (KEEP_PREPARED). After a crash the
 * journal may end earlier than it was written, never before what was durable.
 *
 * Settled: all members are known to have the state. Before, a generation is not closed for joins
 * and leaves, so that each generation gets on by a step at least.
 *
 * Checkpoints. Some are kept beside the newest: where no member can read it, the next generation
 * goes back to the one before it, and what came after that is cut. GEN with `restore` says that the
 * checkpoints after its base are forgotten.
 *
 * Ends. Once the log is complete, a silent member may have ended well: nobody is left out by a
 * deadline any more, and nothing is closed for joins and leaves. Members that leave stay in the
 * next generation while nobody else has the state; where nobody else is, they are let go.
 *
 * Time. AWAIT asks for DEADLINE (in less than a second): a member that has not reported by then is
 * silent, and is left out if others have the state. So is, at once, a member that has lost its
 * connection to a member and, in this term, that to the coordinator, both by its kernel, and has no
 * new one: as a rule its process is gone. If none has, it is waited for: the caller says DEAD of
 * each member that it gives up (after the time of a lease).
 *
 * Members. Where a member of the open generation does not go on, two that cannot reach each other
 * among others, it is left out by the next. The generation's order of ranks is that of its slots.
 *
 * Layer: pure (part of libmuster). Memory: the caller's, one block; no pointer is kept, so that a
 * copy of the bytes is a copy of the state. Thread: one at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Checkpoints that a job can go back to: the newest, and those before it. */
enum { RENDEZVOUS_CHECKPOINTS_MAX = 4 };

enum rendezvous_phase {
    RENDEZVOUS_READING,
    RENDEZVOUS_RUNNING,
    RENDEZVOUS_CLOSING,
    RENDEZVOUS_RECORDING,
    RENDEZVOUS_OVER,
};

enum rendezvous_standing { RENDEZVOUS_FREE, RENDEZVOUS_JOINING, RENDEZVOUS_MEMBER };

struct rendezvous_peer {
    uint64_t incarnation;
    uint64_t age;     /* the number of its join: a higher number is younger */
    uint64_t version; /* reported */
    enum rendezvous_standing standing;
    bool connected; /* what is sent to it arrives, as far as anybody knows */
    bool parted;    /* its connection has ended in this term, and it has no new one */
    bool counted;   /* member: its leases are in the table of this term */
    bool leaving;
    bool gone;     /* dead, given up, or finished */
    bool finished; /* it is gone as it has ended well */
    bool ended;    /* by the word of another member its kernel has ended their connection */
    bool silent;   /* did not report by the deadline, or both its connections have ended */
    bool reported; /* closed the generation, with version, loaded and prepared */
    bool loaded;
    bool opened_loaded; /* when the generation began: OPEN says so whenever it is sent */
    bool prepared;
    bool next; /* is in the generation that is being recorded */
};

struct rendezvous_config {
    uint32_t min_size;
    uint32_t max_size;
    uint32_t first_size; /* members that the first generation waits for; DEADLINE of generation 0
                            makes it min_size */
    uint64_t lineage;    /* of a job that begins: its upper half is the job's, the lower 0 */
};

struct rendezvous {
    struct rendezvous_config config;
    enum rendezvous_phase phase;
    uint64_t term;
    uint64_t generation;
    uint64_t lineage;
    uint64_t base;
    uint64_t logged; /* appended to the journal */
    uint64_t durable;
    uint64_t checkpoint;         /* the newest in the journal; 0: the model as it was at first */
    uint64_t pending_checkpoint; /* the log has not reached it; 0: none */
    uint64_t older_checkpoints[RENDEZVOUS_CHECKPOINTS_MAX - 1]; /* ascending */
    uint32_t older_count;
    bool unreadable;   /* the newest one is, as members of the open generation say */
    bool tell_pending; /* an appended checkpoint is to be told once it is durable */
    bool syncing_checkpoint;
    uint64_t next_base;
    uint64_t last_age;
    uint64_t suspecting, suspected; /* the first pair of this round; 0: none */
    uint64_t syncing_log;           /* what `logged` was at SYNC */
    uint32_t stalled;               /* rounds in a row without a step, for such a pair */
    bool restored;                  /* the generation began from a checkpoint */
    bool next_restore;
    bool settled;
    bool hard; /* CLOSING: not at a boundary */
    bool serving;
    bool granting; /* all leases of this term are known */
    bool appended; /* since the last SYNC */
    bool syncing;
    bool syncing_generation;
    bool complete; /* the log has every record of the job */
    bool finished; /* a member has ended well */
    uint32_t room;
    uint32_t taken;                 /* slots */
    struct rendezvous_peer peers[]; /* `room` slots; behind them their index, see turn.h */
};

enum rendezvous_event_kind {
    /* the journal, record by record */
    RENDEZVOUS_REPLAY_TERM,       /* term */
    RENDEZVOUS_REPLAY_GENERATION, /* generation, version (base), lineage, restore; then its members
                                   */
    RENDEZVOUS_REPLAY_MEMBER,     /* incarnation, age, loaded: as in OPEN */
    RENDEZVOUS_REPLAY_LOG,        /* version */
    RENDEZVOUS_REPLAY_CHECKPOINT, /* version */
    RENDEZVOUS_START, /* term: the new one is this at least; 0: the one after the journal's */
    /* messages; incarnation is that of the sender */
    RENDEZVOUS_JOIN,
    RENDEZVOUS_LEAVE,  /* finished: the caller says so, too, of any process that it saw end well */
    RENDEZVOUS_REPORT, /* generation, closed, loaded, prepared, version, first: of the steps that it
                          brings, up to version; lost: an incarnation that it lost, 0;
                          ended: the kernel of that one has ended their connection */
    RENDEZVOUS_COMMITS,    /* generation, first, version: steps first … version */
    RENDEZVOUS_UNREADABLE, /* generation, version: nobody can read the checkpoint it begins with */
    RENDEZVOUS_CHECKPOINT, /* generation, version: it has written this one */
    /* the caller */
    RENDEZVOUS_DISCONNECTED, /* incarnation */
    RENDEZVOUS_CONNECTED,    /* incarnation: it has a new connection, on which it is going to say
                                REPORT; what it was sent before may be lost */
    RENDEZVOUS_DEAD,         /* incarnation: proven, or given up; after LEAVE of those that ended
                                well, or a job that is done begins again */
    RENDEZVOUS_DEADLINE,     /* generation */
    RENDEZVOUS_DURABLE,
    RENDEZVOUS_COMPLETE, /* the log has every record of the job */
    RENDEZVOUS_REOPEN,   /* what members have to know of it has changed since it was opened */
    RENDEZVOUS_EVENT_KINDS,
};

struct rendezvous_event {
    enum rendezvous_event_kind kind;
    uint64_t incarnation;
    uint64_t term;
    uint64_t generation;
    uint64_t lineage;
    uint64_t version;
    uint64_t first;
    uint64_t age;
    uint64_t lost;
    bool restore;
    bool closed;
    bool loaded;
    bool prepared;
    bool finished;
    bool ended;
};

enum rendezvous_effect_kind {
    RENDEZVOUS_APPEND_TERM,       /* term */
    RENDEZVOUS_APPEND_LOG,        /* steps first … version, of the event's message */
    RENDEZVOUS_APPEND_GENERATION, /* generation, version (base), lineage, restore; its members are
                                     the peers with `next`, with their ages; prepared: with the
                                     records of step `version`, those of KEEP_PREPARED */
    RENDEZVOUS_APPEND_CHECKPOINT, /* version */
    RENDEZVOUS_SYNC,              /* make all of it durable; then DURABLE */
    RENDEZVOUS_SERVE,             /* members may connect now */
    RENDEZVOUS_OPEN,          /* to: generation, version (base), lineage, restore; its members are
                                 the peers that are RENDEZVOUS_MEMBER */
    RENDEZVOUS_CLOSE,         /* to: generation, boundary */
    RENDEZVOUS_ACK,           /* to: version */
    RENDEZVOUS_EXPEL,         /* to: reason */
    RENDEZVOUS_KEEP_PREPARED, /* keep the records that the event's report prepared */
    RENDEZVOUS_TAKE_LEASES,   /* to: the leases of its report are what it has */
    RENDEZVOUS_RESEND_GRANTS, /* to: all it has in the table */
    RENDEZVOUS_RETURN_LEASES, /* to: what it has is free again, as it is left out: reason */
    RENDEZVOUS_CUT,   /* the steps after `version` do not count, nor do checkpoints after it;
                         all leases are void */
    RENDEZVOUS_AWAIT, /* begin the deadline of `generation` */
    RENDEZVOUS_END,   /* the job is done */
    RENDEZVOUS_TELL_CHECKPOINTS, /* to: those that the job may go back to */
    RENDEZVOUS_LOST_STATE,       /* no checkpoint can be read: the job cannot go on */
};

enum rendezvous_reason {
    RENDEZVOUS_LEFT,        /* as it wished */
    RENDEZVOUS_SILENT,      /* the others go on without it */
    RENDEZVOUS_UNREACHABLE, /* for an older member */
    RENDEZVOUS_UNKNOWN,     /* no member of this job's generations */
    RENDEZVOUS_BROKEN,      /* its report does not fit the log */
    RENDEZVOUS_AHEAD,       /* of a generation that the journal does not have */
    RENDEZVOUS_FULL,        /* too many processes */
    RENDEZVOUS_DONE,        /* the job is, or its own part */
    RENDEZVOUS_DIED,        /* its end was proven, both its connections have ended, or it was given
                               up */
    RENDEZVOUS_FAILED,      /* the job has; the caller's */
    RENDEZVOUS_HANGS,       /* it does not come back from its step function; the caller's */
};

struct rendezvous_effect {
    enum rendezvous_effect_kind kind;
    enum rendezvous_reason reason;
    uint64_t to; /* an incarnation */
    uint64_t term;
    uint64_t generation;
    uint64_t lineage;
    uint64_t version;
    uint64_t first;
    bool restore;
    bool boundary;
    bool prepared;
};

/* The list is the caller's, of RENDEZVOUS_EFFECTS_MAX(peers). */
struct rendezvous_effects {
    size_t count;
    size_t room;
    struct rendezvous_effect *list;
};
#define RENDEZVOUS_EFFECTS_MAX(peers) (6 * (size_t)(peers) + 8)

/* The bytes of a state for so many processes at a time, members and joiners. */
#define RENDEZVOUS_SIZE_BYTES(peers)                                                               \
    (sizeof(struct rendezvous) +                                                                   \
     (size_t)(peers) * (sizeof(struct rendezvous_peer) + sizeof(uint32_t)))
size_t rendezvous_size_bytes(uint32_t peers);
/* 0 < min_size <= first_size <= max_size <= peers. */
void rendezvous_init(struct rendezvous *state, struct rendezvous_config config, uint32_t peers);

/* ret: what is to be done, in this order; what it had is overwritten. */
void rendezvous_step(struct rendezvous *state, const struct rendezvous_event *event,
                     struct rendezvous_effects *ret);

/* NULL: it is not known. */
const struct rendezvous_peer *rendezvous_find(const struct rendezvous *state, uint64_t incarnation);
/* Whether records may be granted to it now (9). */
bool rendezvous_may_grant(const struct rendezvous *state, uint64_t incarnation);

/* NULL, or which invariant is violated. Holds between steps; tests ask after each. */
const char *rendezvous_check(const struct rendezvous *state);
