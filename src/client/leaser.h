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

/* What is to do, as TO_DO said it. */
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
    struct muster_shards_options options; /* its texts are those above */
    bool set_aside; /* a record that crashes workers is; else it fails the job */
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
    struct muster_endpoint *listener; /* the link's; NULL: it listens nowhere */
    enum leaser_phase phase;
    uint64_t term;
    uint32_t number; /* of the data set */
    bool enrolled;   /* it was up once */
    bool stop;       /* the link's thread ends */
    struct holdings holdings;
    bool asked;       /* a FETCH is not answered */
    bool none_now;    /* … it is: others hold what is left */
    int64_t asked_ns; /* the last FETCH */
    uint64_t ask;     /* how many shards it asks for */
    bool ended;
    bool wants_position; /* TO_DO is to be sent, or was */
    const struct muster_shards_position *begins;
    struct leaser_position position;
    double sums[WIRE_SUMS_MAX]; /* ended: of all records, */
    uint64_t left_out;          /* but these */
    int failed;                 /* nothing goes on any more: the code, why.text */
    struct muster_err why;      /* of `failed`; else the link's last trouble */
};

int leaser_open(const struct muster_shards_options *options, struct muster_shards **ret,
                struct muster_err *err);
void leaser_free(struct muster_shards *s);
/* Nothing goes on any more; the first reason is kept. The mutex is held. */
void leaser_fail(struct muster_shards *s, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- What is said (leaser_say.c), under the mutex ---- */

void leaser_say_hello(struct muster_shards *s);
void leaser_say_enroll(struct muster_shards *s);
void leaser_say_fetch(struct muster_shards *s);
/* Sends unless a message is under way, or there is nothing to say. */
void leaser_say_done(struct muster_shards *s);
void leaser_say_to_do(struct muster_shards *s);
void leaser_say_progress(struct muster_shards *s);
void leaser_say_leave(struct muster_shards *s);
/* What was said before the connection was lost, and has no answer. */
void leaser_say_again(struct muster_shards *s);

/* ---- Being asked whether it lives (leaser_listener.c), on the link's thread ---- */

/* When the coordinator is on another host, this process listens from then on, at the address from
 * which it reaches the coordinator. When it cannot, nobody can ask it. */
void leaser_listener_open(struct muster_shards *s);
void leaser_listener_close(struct muster_shards *s);
/* What poll is to wait for; -1: nothing. */
int leaser_listener_fd(const struct muster_shards *s);
/* Disconnects whoever came. False: there is no descriptor for it now. */
bool leaser_listener_answer(struct muster_shards *s);
/* What ENROLL says of it. */
void leaser_listener_address(const struct muster_shards *s, uint8_t ret[WIRE_ADDRESS_BYTES]);

/* ---- The link (leaser_link.c) ---- */

int leaser_start(struct muster_shards *s, struct muster_err *err);
/* Says LEAVE, if it can. */
void leaser_stop(struct muster_shards *s);
