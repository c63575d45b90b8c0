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

/* The address at which a member of another host listens, as far as it tells of the member's end
 * (reach.c). */
struct server_reach {
    uint8_t address[WIRE_ADDRESS_BYTES];
    bool known;
    bool reached; /* once, by this coordinator or one before it */
    bool gone;    /* the arbiter has heard so */
    uint32_t tries, refusals, looks;
    struct server_probe *probe; /* under way; NULL: none is */
};

/* A process that has shown the token. */
struct server_member {
    struct server *server;
    uint64_t incarnation;
    struct server_connection *connection; /* NULL: it is away */
    struct server_watch *watch;           /* NULL: its end is not proven to us */
    struct server_reach reach;
    bool recalled;                     /* it has not connected in this term */
    int64_t died_ms;                   /* 0: it lives, or nobody knows */
    char name[ARBITER_NAME_BYTES];     /* when it died */
    char how[SERVER_WATCH_TEXT_BYTES]; /* it ended: "by signal 11 (SIGSEGV)"; "": nobody knows */
    int64_t healed_ms;                 /* when that was said last; 0: never */
    bool silence_said;
    struct slow_worker slow;
};

struct server {
    uv_loop_t *loop;
    const struct server_options *options;
    struct muster_err *err;
    struct server_listener listeners[SERVER_LISTENERS_MAX];
    size_t listener_count;
    uv_timer_t deadline; /* the arbiter's */
    uv_timer_t look;
    uv_prepare_t prepare;
    uv_signal_t on_term, on_int;
    struct report report;
    struct pace pace;
    struct pace leased[SHARD_DATASETS_MAX]; /* samples, by the data set's number */
    int64_t status_ms;                      /* when the status file was written last */
    bool status_due;                        /* a generation was opened, or a recovery is over */
    struct {
        uint64_t incarnation;
        struct slow_worker figures;
    } slow[SLOW_NAMED_MAX];
    size_t slow_count;
    /* of a term */
    struct journal *journal;
    int alive_fd;                /* -1: it cannot be written */
    uint64_t boot;               /* which start of the machine this is */
    struct arbiter *arbiter;     /* NULL: the journal cannot be written */
    struct recording *recording; /* NULL: nothing is recorded */
    struct arbiter_effects effects;
    struct server_table members;
    struct server_connection *open;  /* all connections */
    struct server_connection *ended; /* … that the arbiter has not heard of */
    size_t strangers;
    size_t probes; /* under way */
    uint8_t *room; /* of the message at hand */
    size_t room_bytes;
    size_t compact_bytes; /* of the journal, until it is compacted */
    bool sync_due;
    bool served;         /* in this term or an earlier one */
    bool announced;      /* where it listens is told */
    bool over;           /* the job is */
    bool has_failed;     /* over: … so, as `err` says */
    bool journal_failed; /* as `result` says */
    bool stopping;
    bool lease_held;
    bool lease_lost;     /* and that is still to be dealt with */
    bool waits_for_lock; /* it has said so */
    bool lacks_locks;    /* the journal's file system; it has said so */
    int64_t until_ms;    /* over: when what is not sent is given up */
    int64_t retry_ms;    /* arbiter is NULL: when the journal is tried again; -1: it is not */
    int result;          /* < 0: it has failed */
    int64_t checkpoint_said_ms[2]; /* when it was said last that one cannot be written, read */
};

int64_t server_now_ms(void);
/* The first failure is what is said. Nothing is decided after it. */
void server_fail(struct server *s, int code);

/* Whether anything may be decided, appended or sent now. */
bool server_may_act(const struct server *s);

/* ---- Its turn (turn.c) ---- */

/* Begins at once, or where there is a lease when that is held. */
int server_turn_begin(struct server *s, struct muster_err *err);
/* While there is no arbiter: begins, or begins again, when the time has come. */
void server_turn_retry(struct server *s);
/* Ends a term whose journal could not be written. What is in the journal is right, so another term
 * begins where it ends, later. */
void server_turn_suspend(struct server *s);
/* The lease was lost: another one may serve. */
void server_turn_yield(struct server *s);
void server_turn_end(struct server *s);

/* ---- Deciding (decide.c) ---- */

/* Opens the journal, and decides from where it ends. */
int server_begin(struct server *s, struct muster_err *err);
void server_end(struct server *s);
void server_feed(struct server *s, struct arbiter_event event);
/* arbiter_step, recorded where that is asked for (recording.c): nothing of it is carried out
 * before.
 */
int server_step(struct server *s, const struct arbiter_event *event, struct muster_err *err);
void server_recording_begin(struct server *s, const struct arbiter_options *options);
/* Compacts a journal that has grown. */
void server_compact(struct server *s);
/* Makes durable what was appended, which is announced then. */
void server_sync(struct server *s);

/* What a member's message says to people, in the log and the status (note.c). */
void server_note(struct server *s, uint64_t incarnation, const struct wire_message *m);

/* Finds slow members anew, for the status file, and reports them (update_slow.c). */
void server_update_slow(struct server *s);

/* ---- When it lived last (alive.c) ---- */

/* How long nobody coordinated, in ms; -1: nobody knows. */
int64_t server_alive_begin(struct server *s);
/* Notes that the coordinator lives now. */
void server_alive_look(struct server *s);
void server_alive_end(struct server *s);

/* ---- Which processes they are (roll.c) ---- */

void server_roll_add(struct server *s, const struct server_member *member);
/* Reads the members of the term before, and tells the arbiter who has died meanwhile. */
void server_roll_call(struct server *s);

/* ---- Members of other hosts (reach.c) ---- */

/* Notes where a member that joins listens. */
void server_reach_note(struct server_member *member, const uint8_t address[WIRE_ADDRESS_BYTES]);
/* The same, of one that works by leases: only what is surely said of its own host is believed. */
void server_reach_note_leaser(struct server_member *member,
                              const uint8_t address[WIRE_ADDRESS_BYTES]);
/* The same for a member of the term before, which was reached there. */
void server_reach_recall(struct server_member *member, const uint8_t address[WIRE_ADDRESS_BYTES]);
/* Ends the probing of a member that is back, or forgotten. */
void server_reach_stop(struct server_member *member);
void server_reach_look(struct server *s);

/* ---- Members (members.c) ---- */

void server_accept(void *data, int fd);
struct server_member *server_member(const struct server *s, uint64_t incarnation);
/* Adds a member that the journal has, and that may come back; it is watched, or is gone. reached:
 * where it listens; NULL: nobody knows. */
void server_recall(struct server *s, uint64_t incarnation, const struct server_process *process,
                   const uint8_t *reached);
/* Tells the arbiter of the first connection that has ended. */
void server_bury_one(struct server *s);
/* Ends strangers that say nothing, and forgets members that the arbiter does not know any more. */
void server_tidy(struct server *s);
void server_forget_all(struct server *s);
