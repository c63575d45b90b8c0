/* The coordinator's decision which processes train together: processes join and leave, generations
 * of them are closed and opened, and their committed steps are logged. docs/step-commit.md has the
 * protocol; the numbers below are its rules. commit/tally.h decides whether a step counts.
 *
 * rendezvous_step() gets one event and returns what is to be done, in order (effects). Only
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
 *     RUNNING,   UNREADABLE, none before it            LOST_STATE
 *     CLOSING
 *     any        CHECKPOINT                            CHECKPOINT, SYNC; TELL_CHECKPOINTS once
 *                                                      durable
 *     any        COMMITS, REPORT with steps            LOG, SYNC; ACK once durable               3
 *     any        COMMITS of durable steps              ACK, again                                3
 *     any        REPORT of an unknown one              EXPELLED                                 12
 *     any        REPORT of a former                    OPEN, again                               7
 *                generation
 *
 * Order. Appended records are durable when DURABLE answers SYNC; one SYNC is under way at a time.
 * An effect that announces something (OPEN, ACK, EXPELLED, RETURN_LEASES) is given after that
 * DURABLE. A generation is one record of the journal: its members, its base and, if the base is not
 * in the log yet, the records of that step, which a report brought (KEEP_PREPARED). After a crash
 * the last records of the journal may be missing, but none that was durable.
 *
 * Settled. A generation is settled when all members are known to have the state. Before that it is
 * not closed for joins and leaves, so that each generation makes at least one step.
 *
 * Checkpoints. Some are kept beside the newest: if no member can read the newest one, the next
 * generation goes back to the one before it, and later steps are cut. GEN with `restore` says that
 * the checkpoints after its base are forgotten.
 *
 * Ends. Once the log is complete, a silent member may have ended well: no member is left out by a
 * deadline any more, and no generation is closed for joins and leaves. Members that leave stay in
 * the next generation while no other member has the state; if there is no other member, they may
 * leave.
 *
 * Time. AWAIT asks for DEADLINE (in less than a second): a member that has not reported by then is
 * silent, and is left out if others have the state. A member is left out at once if its kernel has
 * ended both its connection to another member and, in this term, its connection to the coordinator,
 * and it has no new one: as a rule its process is gone. If no other member has the state, the
 * silent member is waited for: the caller gives DEAD for each member that it gives up (after the
 * time of a lease).
 *
 * Members. The next generation leaves out a member of the open one that does not go on, for
 * instance one of two members that cannot reach each other. The ranks of a generation have the
 * order of their slots.
 *
 * Layer: pure (part of libmuster). Memory: the caller's, one block; no pointer is kept, so that a
 * copy of the bytes is a copy of the state. Thread: one at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Checkpoints that a job can go back to: the newest one and those before it. */
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
    uint64_t version; /* as reported */
    enum rendezvous_standing standing;
    bool connected; /* messages that are sent to it arrive, as far as is known */
    bool parted;    /* its connection has ended in this term, and it has no new one */
    bool counted;   /* member: its leases are in the table of this term */
    bool leaving;
    bool gone;     /* dead, given up, or finished */
    bool finished; /* it is gone because it has ended well */
    bool ended; /* another member reported that the kernel of this one has ended their connection */
    bool silent;   /* did not report by the deadline, or both its connections have ended */
    bool reported; /* has closed the generation, with version, loaded and prepared */
    bool loaded;
    bool opened_loaded; /* `loaded` at the beginning of the generation: each OPEN contains it */
    bool prepared;
    bool next; /* is a member of the generation that is being recorded */
};

struct rendezvous_config {
    uint32_t min_size;
    uint32_t max_size;
    uint32_t first_size; /* members that the first generation waits for; DEADLINE of generation 0
                            makes it min_size */
    uint64_t lineage;    /* of a job that begins: the upper half is the job's, the lower half 0 */
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
    uint64_t pending_checkpoint; /* waits until the log has reached it; 0: none */
    uint64_t older_checkpoints[RENDEZVOUS_CHECKPOINTS_MAX - 1]; /* ascending */
    uint32_t older_count;
    bool unreadable;   /* the newest checkpoint cannot be read, as members of the open generation
                          report */
    bool tell_pending; /* members must be informed of an appended checkpoint once it is durable */
    bool syncing_checkpoint;
    uint64_t next_base;
    uint64_t last_age;
    uint64_t suspecting, suspected; /* the first pair of this round; 0: none */
    uint64_t syncing_log;           /* what `logged` was at SYNC */
    uint32_t stalled;               /* rounds in a row without a step, while such a pair exists */
    bool restored;                  /* the generation began from a checkpoint */
    bool next_restore;
    bool settled;
    bool hard; /* CLOSING: not at a boundary */
    bool serving;
    bool granting;           /* all leases of this term are known */
    bool appended;           /* entries were appended since the last SYNC */
    bool syncing;            /* SYNC has no DURABLE yet */
    bool syncing_generation; /* … and the generation that is recorded is among what it makes
                                durable */
    bool complete;           /* the log has every record of the job */
    bool finished;           /* a member has ended well */
    uint32_t room;
    uint32_t taken;                 /* slots in use */
    struct rendezvous_peer peers[]; /* `room` slots; their index follows, see turn.h */
};

enum rendezvous_event_kind {
    /* the journal, record by record */
    RENDEZVOUS_REPLAY_TERM,       /* term */
    RENDEZVOUS_REPLAY_GENERATION, /* generation, version (base), lineage, restore; then its members
                                   */
    RENDEZVOUS_REPLAY_MEMBER,     /* incarnation, age, loaded: as in OPEN */
    RENDEZVOUS_REPLAY_LOG,        /* version */
    RENDEZVOUS_REPLAY_CHECKPOINT, /* version */
    RENDEZVOUS_START, /* term: the new term is at least this; 0: the one after the journal's */
    /* messages; incarnation is that of the sender */
    RENDEZVOUS_JOIN,
    RENDEZVOUS_LEAVE,  /* finished: also from the caller, for any process whose good end it saw */
    RENDEZVOUS_REPORT, /* generation, closed, loaded, prepared, version, first: of the steps that it
                          brings, up to version; lost: the incarnation of a member that it lost, or
                          0; ended: the kernel of the lost member has ended their connection */
    RENDEZVOUS_COMMITS,    /* generation, first, version: steps first … version */
    RENDEZVOUS_UNREADABLE, /* generation, version: no member can read the checkpoint that it begins
                              with */
    RENDEZVOUS_CHECKPOINT, /* generation, version: the member has written this checkpoint */
    /* the caller */
    RENDEZVOUS_DISCONNECTED, /* incarnation */
    RENDEZVOUS_CONNECTED,    /* incarnation: it has a new connection, on which it will send REPORT;
                                messages that were sent to it before may be lost */
    RENDEZVOUS_DEAD,     /* incarnation: its death is proven, or it was given up. For a process that
                            ended well, LEAVE must come first, because otherwise a job that is done
                            begins again */
    RENDEZVOUS_DEADLINE, /* generation */
    RENDEZVOUS_DURABLE,
    RENDEZVOUS_COMPLETE, /* the log has every record of the job */
    RENDEZVOUS_REOPEN,   /* the content of its OPEN has changed since it was opened */
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
    RENDEZVOUS_SYNC,              /* make all appended entries durable; then DURABLE */
    RENDEZVOUS_SERVE,             /* members may connect now */
    RENDEZVOUS_OPEN,          /* to: generation, version (base), lineage, restore; its members are
                                 the peers that are RENDEZVOUS_MEMBER */
    RENDEZVOUS_CLOSE,         /* to: generation, boundary */
    RENDEZVOUS_ACK,           /* to: version */
    RENDEZVOUS_EXPEL,         /* to: reason */
    RENDEZVOUS_KEEP_PREPARED, /* keep the records that the event's report prepared */
    RENDEZVOUS_TAKE_LEASES,   /* to: the leases of its report are those that it holds */
    RENDEZVOUS_RESEND_GRANTS, /* to: all records that it holds by the table */
    RENDEZVOUS_RETURN_LEASES, /* to: the records that it holds are free again, because it is left
                                 out: reason */
    RENDEZVOUS_CUT,   /* steps and checkpoints after `version` do not count; all leases are void */
    RENDEZVOUS_AWAIT, /* begin the deadline of `generation` */
    RENDEZVOUS_END,   /* the job is done */
    RENDEZVOUS_TELL_CHECKPOINTS, /* to: the checkpoints that the job may go back to */
    RENDEZVOUS_LOST_STATE,       /* no checkpoint can be read: the job cannot go on */
};

enum rendezvous_reason {
    RENDEZVOUS_LEFT,        /* by its own wish */
    RENDEZVOUS_SILENT,      /* the others continue without it */
    RENDEZVOUS_UNREACHABLE, /* an older member could not reach it */
    RENDEZVOUS_UNKNOWN,     /* not a member of a generation of this job */
    RENDEZVOUS_BROKEN,      /* its report does not fit the log */
    RENDEZVOUS_AHEAD,       /* it is of a generation that the journal does not have */
    RENDEZVOUS_FULL,        /* too many processes */
    RENDEZVOUS_DONE,        /* the job is done, or its own part */
    RENDEZVOUS_DIED,        /* its end was proven, both its connections have ended, or it was given
                               up */
    RENDEZVOUS_FAILED,      /* the job has failed; only the caller uses this */
    RENDEZVOUS_HANGS, /* it does not return from its step function; only the caller uses this */
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

/* The caller provides the list, of RENDEZVOUS_EFFECTS_MAX(peers). */
struct rendezvous_effects {
    size_t count;
    size_t room;
    struct rendezvous_effect *list;
};
#define RENDEZVOUS_EFFECTS_MAX(peers) (6 * (size_t)(peers) + 8)

/* The size of a state for this number of processes at a time, members and joiners. */
#define RENDEZVOUS_SIZE_BYTES(peers)                                                               \
    (sizeof(struct rendezvous) +                                                                   \
     (size_t)(peers) * (sizeof(struct rendezvous_peer) + sizeof(uint32_t)))
size_t rendezvous_size_bytes(uint32_t peers);
/* Requires 0 < min_size <= first_size <= max_size <= peers. */
void rendezvous_init(struct rendezvous *state, struct rendezvous_config config, uint32_t peers);

/* Writes to ret the effects of the event, in the order in which they must be carried out;
 * overwrites its former content. */
void rendezvous_step(struct rendezvous *state, const struct rendezvous_event *event,
                     struct rendezvous_effects *ret);

/* Returns NULL if the process is not known. */
const struct rendezvous_peer *rendezvous_find(const struct rendezvous *state, uint64_t incarnation);
/* Whether records may be granted to the process now (rule 9). */
bool rendezvous_may_grant(const struct rendezvous *state, uint64_t incarnation);

/* Returns NULL, or the name of the invariant that is violated. Invariants hold between steps; tests
 * check them after each step. */
const char *rendezvous_check(const struct rendezvous *state);
