/* One connection to the coordinator: frames in and out of a socket that never blocks.
 *
 * Layer: worker (part of libmuster). Memory: the caller's struct; connection_init/done. Thread: one
 * at a time; connection_next's message is the reading thread's. A forked child has it closed, so
 * that the coordinator sees the end of this process whatever its children do.
 */
#pragma once

#include "comm/system/fork.h"
#include "wire/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CONNECTION_QUEUE_MAX = 64 << 20 };

struct connection_bytes {
    uint8_t *data;
    size_t used;
    size_t room;
};

struct connection {
    int fd; /* -1: closed */
    bool connecting;
    unsigned turn; /* which of a name's addresses is next */
    struct connection_bytes in;
    struct connection_bytes out;
    struct connection_bytes room; /* of the message that was read last */
    size_t sent;                  /* of out */
    size_t taken;                 /* of in */
    struct fork_watch fork;
};

/* NULL, or what is wrong with "unix:PATH" or "tcp:HOST:PORT". */
const char *connection_check_address(const char *address);

void connection_init(struct connection *connection);
void connection_done(struct connection *connection);
void connection_close(struct connection *connection); /* what it holds is dropped */

/* Begins to connect; the events say when it is. MUSTER_EUNAVAIL, MUSTER_ENOHOST, MUSTER_EOS;
 * MUSTER_EGONE: the job is done; MUSTER_EFAILED: it has failed. */
int connection_open(struct connection *connection, const char *address, struct muster_err *err);
/* What poll is to wait for. */
short connection_events(const struct connection *connection);
/* A message to be sent: what goes now goes now. MUSTER_ETOOBIG: too much is queued. An error of the
 * socket is said by connection_move. */
int connection_send(struct connection *connection, const struct wire_message *message,
                    struct muster_err *err);
/* Sends and reads what goes now. MUSTER_EUNAVAIL: the connection has ended, or could not be made.
 */
int connection_move(struct connection *connection, struct muster_err *err);
/* 1: *ret is the next message, until the next call; 0: none is complete yet. */
int connection_next(struct connection *connection, struct wire_message *ret,
                    struct muster_err *err);
