/* The server's state, as its files share it.
 *
 * Layer: program (coordinator), private to this folder.
 */
#pragma once

#include "coordinator/arbiter/arbiter.h"
#include "coordinator/journal/journal.h"
#include "coordinator/server/connection.h"
#include "coordinator/server/listener.h"
#include "coordinator/server/pace.h"
#include "coordinator/server/probe.h"
#include "coordinator/server/report.h"
#include "coordinator/server/server.h"
#include "coordinator/server/slow.h"
#include "coordinator/server/table.h"
#include "coordinator/server/watch.h"
#include "core/recording.h"

enum {
    SERVER_STRANGERS_MAX = 128,
    SERVER_HELLO_MS = 5000,
    SERVER_WHY_BYTES = 256,
    SERVER_WARN_MS = 5000,
    SERVER_PENDING_MS = 2000
};

/* The address at which a member on another host listens, and what it shows about the member's end
 * (reach.c). */
struct server_reach {
    uint8_t address[WIRE_ADDRESS_BYTES];
    bool known;
    bool reached; /* once, by this coordinator or one before it */
    bool gone;    /* the arbiter has been informed */
    uint32_t tries, refusals, looks;
    struct server_probe *probe; /* the present probe; NULL: there is none */
};

/* A process that has shown the token. */
struct server_member {
    struct server *server;
    uint64_t incarnation;
    struct server_connection *connection; /* NULL: it is away */
    struct server_watch *watch;           /* NULL: the end of its process cannot be proven */
    struct server_reach reach;
    bool recalled;                     /* it has not connected in this term */
    int64_t died_ms;                   /* 0: it lives, or this is not known */
    char name[ARBITER_NAME_BYTES];     /* set when it died */
    char how[SERVER_WATCH_TEXT_BYTES]; /* how it ended, such as "by signal 11 (SIGSEGV)"; "": not
                                          known */
    int64_t healed_ms;                 /* when this was reported last; 0: never */
    bool silence_said;
    struct slow_worker slow;
};

struct server {
    uv_loop_t *loop;
    const struct server_options *options;
    struct muster_err *err;
    struct server_listener listeners[SERVER_LISTENERS_MAX];
    size_t listener_count;
    uv_timer_t deadline; /* of the arbiter */
    uv_timer_t look;
    uv_prepare_t prepare;
    uv_signal_t on_term, on_int;
    struct report report;
    struct pace pace;
    struct pace leased[SHARD_DATASETS_MAX]; /* samples only, by the data set's number */
    int64_t status_ms;                      /* when the status file was written last */
    bool status_due;                        /* a generation was opened, or a recovery is over */
    struct {
        uint64_t incarnation;
        struct slow_worker figures;
    } slow[SLOW_NAMED_MAX];
    size_t slow_count;
    bool status_failed; /* the status file could not be written the last time */
    /* of a term */
    struct journal *journal;
    int alive_fd;                /* -1: the file cannot be written */
    uint64_t boot;               /* identifies the start of the machine */
    struct arbiter *arbiter;     /* NULL: the journal cannot be written */
    struct recording *recording; /* NULL: nothing is recorded */
    struct arbiter_effects effects;
    struct server_table members;
    struct server_connection *open;  /* all connections */
    struct server_connection *ended; /* … whose end was not given to the arbiter yet */
    size_t strangers;
    size_t probes; /* that are under way */
    uint8_t *room; /* for the arrays of the current message */
    size_t room_bytes;
    size_t compact_bytes; /* the size at which the journal is compacted */
    bool sync_due;
    bool served;         /* in this term or an earlier one */
    bool announced;      /* its addresses are announced */
    bool over;           /* the job has ended */
    bool has_failed;     /* over: it has failed, as `err` says */
    bool journal_failed; /* the journal has failed, as `result` says */
    bool stopping;
    bool lease_held;
    bool lease_lost;     /* the lease was lost, and this must still be handled */
    bool waits_for_lock; /* the wait was reported */
    bool lacks_locks;    /* the journal's file system has none; this was reported */
    int64_t until_ms;    /* over: until then data that is not sent is kept */
    int64_t retry_ms;    /* if arbiter is NULL: when the journal is tried again; -1: never */
    int result;          /* < 0: an error */
    int64_t keep_ms;     /* until then a lost journal is not written again */
    int64_t checkpoint_said_ms[2]; /* when a checkpoint that cannot be written, or read, was
                                      reported last */
};

int64_t server_now_ms(void);
/* Notes a failure; only the first one is reported. Nothing is decided after it. */
void server_fail(struct server *s, int code);

/* Whether anything may be decided, appended or sent now. */
bool server_may_act(const struct server *s);

/* ---- The turn of this coordinator (turn.c) ---- */

/* Begins at once, or with a lease when it holds the lease. */
int server_turn_begin(struct server *s, struct muster_err *err);
/* Called while there is no arbiter: begins, or begins again, when it is time. */
void server_turn_retry(struct server *s);
/* Ends a term whose journal could not be written. The content of the journal is right, so that
 * another term begins later from its end. */
void server_turn_suspend(struct server *s);
/* The lease was lost: ends the term, because another coordinator may serve. */
void server_turn_yield(struct server *s);
void server_turn_end(struct server *s);

/* ---- Deciding (decide.c) ---- */

/* Opens the journal, and continues from its end. */
int server_begin(struct server *s, struct muster_err *err);
void server_end(struct server *s);
void server_feed(struct server *s, struct arbiter_event event);
/* Calls arbiter_step, and records it if this is requested (recording.c) before any effect is
 * carried out. */
int server_step(struct server *s, const struct arbiter_event *event, struct muster_err *err);
void server_recording_begin(struct server *s, const struct arbiter_options *options);
/* Compacts a journal that has grown. */
void server_compact(struct server *s);
/* Writes a journal again that somebody has deleted or moved. */
void server_keep_journal(struct server *s);
/* Makes appended records durable; then they are announced. */
void server_sync(struct server *s);

/* Reports what a member's message says to people, in the log and the status (note.c). */
void server_note(struct server *s, uint64_t incarnation, const struct wire_message *m);

/* Finds slow members again, for the status file, and reports them (update_slow.c). */
void server_update_slow(struct server *s);

/* ---- The time until which a coordinator lived (alive.c) ---- */

/* Returns for how long no coordinator lived, in ms; -1: not known. */
int64_t server_alive_begin(struct server *s);
/* Notes that the coordinator lives now. */
void server_alive_look(struct server *s);
void server_alive_end(struct server *s);

/* ---- The processes of the members (roll.c) ---- */

void server_roll_add(struct server *s, const struct server_member *member);
/* Reads the members of the earlier term, and informs the arbiter of those that have died
 * meanwhile. */
void server_roll_call(struct server *s);

/* ---- Members of other hosts (reach.c) ---- */

/* Notes the address at which a joining member listens. */
void server_reach_note(struct server_member *member, const uint8_t address[WIRE_ADDRESS_BYTES]);
/* Does the same for a member that works by leases; believes only an address that is certainly of
 * its own host. */
void server_reach_note_leaser(struct server_member *member,
                              const uint8_t address[WIRE_ADDRESS_BYTES]);
/* Does the same for a member of the earlier term, which was reached at this address. */
void server_reach_recall(struct server_member *member, const uint8_t address[WIRE_ADDRESS_BYTES]);
/* Ends the probe of a member that is back, or forgotten. */
void server_reach_stop(struct server_member *member);
void server_reach_look(struct server *s);

/* ---- Members (members.c) ---- */

void server_accept(void *data, int fd);
struct server_member *server_member(const struct server *s, uint64_t incarnation);
/* Adds a member that the journal has, and that may come back; its process is watched, or is gone.
 * reached: the address at which it listens; NULL: not known. */
void server_recall(struct server *s, uint64_t incarnation, const struct server_process *process,
                   const uint8_t *reached);
/* Informs the arbiter of the first connection that has ended. */
void server_bury_one(struct server *s);
/* Ends strangers that send nothing, and forgets members that the arbiter does not know any more. */
void server_tidy(struct server *s);
void server_forget_all(struct server *s);
