/* A worker of one data set by leases, as the files of this folder share it: muster/shards.h.
 *
 * Two threads: the user's, which fetches and reports, and the link's, which keeps the connection,
 * renews the leases and hears the coordinator. Either sends, under the mutex.
 *
 * Layer: worker (part of libmuster). Memory: leaser_open/free. Thread: as said.
 */
#pragma once

#include "client/holdings.h"
#include "client/socket/connection.h"
#include "comm/endpoint/endpoint.h"
#include "shard/order.h"

#include <muster/shards.h>

#include <pthread.h>
#include <sys/types.h>

enum leaser_phase {
    LEASER_DOWN,
    LEASER_GREETING,  /* HELLO was sent */
    LEASER_ENROLLING, /* ENROLL was sent */
    LEASER_UP,
};

/* The records to do, as the answer TO_DO lists them. */
struct leaser_position {
    struct muster_shards_range *ranges; /* to do, then held */
    uint64_t epoch;
    size_t to_do_count;
    size_t held_count;
    bool begun;
};

struct muster_shards {
    /* ---- as it was opened ---- */
    char *coordinator;
    char *name;
    char *dataset;
    char *sum_names;
    uint8_t token[WIRE_TOKEN_BYTES];
    struct muster_shards_options options; /* its texts are the copies above */
    bool set_aside; /* a record that crashes workers is set aside; otherwise it fails the job */
    pid_t owner;
    uint64_t incarnation;
    pthread_t thread;
    int wake_fd; /* an eventfd: the link has something to do */

    /* ---- the user's thread ---- */
    struct shard_order order; /* of order_epoch */
    uint64_t order_epoch;     /* UINT64_MAX: none yet */
    uint64_t *records;        /* of the shard that was fetched last */
    uint64_t epoch;           /* its epoch */

    /* ---- both, under the mutex ---- */
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* on the monotonic clock */
    struct connection connection;
    struct muster_endpoint *listener; /* the link's; NULL: the process does not listen */
    enum leaser_phase phase;
    uint64_t term;
    uint32_t number; /* of the data set */
    bool enrolled;   /* the link was up at least once */
    bool stop;       /* the link's thread must end */
    struct holdings holdings;
    bool asked;       /* a FETCH has no answer yet */
    bool none_now;    /* … or the answer was that others hold all that is left */
    int64_t asked_ns; /* when the last FETCH was sent */
    uint64_t ask;     /* how many shards a FETCH asks for */
    bool ended;
    bool wants_position; /* a TO_DO must be sent, or was sent */
    const struct muster_shards_position *begins;
    struct leaser_position position;
    double sums[WIRE_SUMS_MAX]; /* if ended: over all records … */
    uint64_t left_out;          /* … except this number, which were set aside */
    int failed;            /* the code of the error that has ended all work; its text is why.text */
    struct muster_err why; /* of `failed`; otherwise the last error of the link */
};

int leaser_open(const struct muster_shards_options *options, struct muster_shards **ret,
                struct muster_err *err);
void leaser_free(struct muster_shards *s);
/* Ends all work with an error; only the first reason is kept. The mutex is held. */
void leaser_fail(struct muster_shards *s, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- Messages to the coordinator (leaser_say.c), under the mutex ---- */

void leaser_say_hello(struct muster_shards *s);
void leaser_say_enroll(struct muster_shards *s);
void leaser_say_fetch(struct muster_shards *s);
/* Sends DONE, unless one is under way or there is nothing to report. */
void leaser_say_done(struct muster_shards *s);
/* MUSTER_ETOOBIG: s->begins has too many ranges for a message; MUSTER_ENOMEM. */
int leaser_say_to_do(struct muster_shards *s, struct muster_err *err);
void leaser_say_progress(struct muster_shards *s);
void leaser_say_leave(struct muster_shards *s);
/* Sends again the messages that had no answer before the connection was lost. */
void leaser_say_again(struct muster_shards *s);

/* ---- Answers whether this process lives (leaser_listener.c), on the link's thread ---- */

/* Begins to listen if the coordinator is on another host, at the address from which this process
 * reaches the coordinator. If this fails, the process cannot be asked. */
void leaser_listener_open(struct muster_shards *s);
void leaser_listener_close(struct muster_shards *s);
/* Returns the descriptor that poll must wait for; -1: none. */
int leaser_listener_fd(const struct muster_shards *s);
/* Accepts and disconnects those that have connected. Returns false if there is no descriptor for a
 * connection now. */
bool leaser_listener_answer(struct muster_shards *s);
/* Writes the address that ENROLL contains. */
void leaser_listener_address(const struct muster_shards *s, uint8_t ret[WIRE_ADDRESS_BYTES]);

/* ---- The link (leaser_link.c) ---- */

int leaser_start(struct muster_shards *s, struct muster_err *err);
/* Ends the link; sends LEAVE if it can. */
void leaser_stop(struct muster_shards *s);
