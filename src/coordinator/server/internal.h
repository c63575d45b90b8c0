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
#include "coordinator/server/report.h"
#include "coordinator/server/server.h"
#include "coordinator/server/slow.h"
#include "coordinator/server/table.h"
#include "coordinator/server/watch.h"

enum {
    SERVER_STRANGERS_MAX = 128,
    SERVER_HELLO_MS = 5000,
    SERVER_WHY_BYTES = 256,
    SERVER_WARN_MS = 5000,
    SERVER_PENDING_MS = 2000
};

/* A process that has shown the token. */
struct server_member {
    struct server *server;
    uint64_t incarnation;
    struct server_connection *connection; /* NULL: it is away */
    struct server_watch *watch;           /* NULL: its end is not proven to us */
    bool recalled;                        /* it has not connected in this term */
    int64_t died_ms;                      /* 0: it lives, or nobody knows */
    char name[ARBITER_NAME_BYTES];        /* when it died */
    char how[SERVER_WATCH_TEXT_BYTES];    /* it ended: "by signal 11 (SIGSEGV)"; "": nobody knows */
    int64_t healed_ms;                    /* when that was said last; 0: never */
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
    struct pace leased[SHARD_DATASETS_MAX]; /* samples, by the data set\'s number */
    int64_t status_ms;                      /* when the status file was written last */
    bool status_due;                        /* a generation was opened, or a recovery is over */
    struct {
        uint64_t incarnation;
        struct slow_worker figures;
    } slow[SLOW_NAMED_MAX];
    size_t slow_count;
    /* of a term */
    struct journal *journal;
    int alive_fd;            /* -1: it cannot be written */
    uint64_t boot;           /* which start of the machine this is */
    struct arbiter *arbiter; /* NULL: the journal cannot be written */
    struct arbiter_effects effects;
    struct server_table members;
    struct server_connection *open;  /* all connections */
    struct server_connection *ended; /* … that the arbiter has not heard of */
    size_t strangers;
    uint8_t *room; /* of the message at hand */
    size_t room_bytes;
    size_t compact_bytes; /* of the journal, until it is compacted */
    bool sync_due;
    bool announced;      /* it has served */
    bool over;           /* the job is */
    bool has_failed;     /* over: … so, as `err` says */
    bool journal_failed; /* as `result` says */
    bool stopping;
    int64_t until_ms;              /* over: when what is not sent is given up */
    int64_t retry_ms;              /* arbiter is NULL: when the journal is tried again */
    int result;                    /* < 0: it has failed */
    int64_t checkpoint_said_ms[2]; /* when it was said last that one cannot be written, read */
};

int64_t server_now_ms(void);
/* The first failure is what is said. Nothing is decided after it. */
void server_fail(struct server *s, int code);

/* ---- Deciding (decide.c) ---- */

/* Opens the journal, and decides from where it ends. */
int server_begin(struct server *s, struct muster_err *err);
void server_end(struct server *s);
void server_feed(struct server *s, struct arbiter_event event);
/* A journal that has grown becomes a short one. */
void server_compact(struct server *s);
/* What was appended is made durable, and is announced then. */
void server_sync(struct server *s);

/* What a member's message says to people, in the log and the status (note.c). */
void server_note(struct server *s, uint64_t incarnation, const struct wire_message *m);

/* Who is slow now is said, and noted (find_slow.c). */
void server_find_slow(struct server *s);

/* ---- When it lived last (alive.c) ---- */

/* How long nobody coordinated, in ms; -1: nobody knows. */
int64_t server_alive_begin(struct server *s);
/* It lives now. */
void server_alive_look(struct server *s);
void server_alive_end(struct server *s);

/* ---- Which processes they are (roll.c) ---- */

void server_roll_add(struct server *s, const struct server_member *member);
/* Those of the term before: who has died meanwhile is told to the arbiter. */
void server_roll_call(struct server *s);

/* ---- Members (members.c) ---- */

void server_accept(void *data, int fd);
struct server_member *server_member(const struct server *s, uint64_t incarnation);
/* One that the journal has, and that may come back; it is watched, or is gone. */
void server_recall(struct server *s, uint64_t incarnation, const struct server_process *process);
/* The arbiter hears of the first connection that has ended. */
void server_bury_one(struct server *s);
/* Strangers that say nothing; members that nobody knows any more. */
void server_tidy(struct server *s);
void server_forget_all(struct server *s);
