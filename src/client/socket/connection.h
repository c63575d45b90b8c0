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
    unsigned turn; /* the number of the next address to try, if the name has several */
    struct connection_bytes in;
    struct connection_bytes out;
    struct connection_bytes room; /* of the message that was read last */
    size_t sent;                  /* how much of out was sent */
    size_t taken;                 /* how much of in was taken */
    struct fork_watch fork;
};

/* Returns NULL, or what is wrong with "unix:PATH" or "tcp:HOST:PORT". */
const char *connection_check_address(const char *address);

void connection_init(struct connection *connection);
void connection_done(struct connection *connection);
void connection_close(struct connection *connection); /* drops unsent and unread data */

/* Begins to connect; connection_move finishes it. MUSTER_EUNAVAIL, MUSTER_ENOHOST, MUSTER_EOS;
 * MUSTER_EGONE: the job is done; MUSTER_EFAILED: the job has failed. */
int connection_open(struct connection *connection, const char *address, struct muster_err *err);
/* Returns the events that poll must wait for. */
short connection_events(const struct connection *connection);
/* Queues a message, and sends at once as much as possible. MUSTER_ETOOBIG: too much is queued.
 * connection_move returns the errors of the socket. */
int connection_send(struct connection *connection, const struct wire_message *message,
                    struct muster_err *err);
/* Sends and reads as much as possible without waiting. MUSTER_EUNAVAIL: the connection has ended,
 * or could not be made. */
int connection_move(struct connection *connection, struct muster_err *err);
/* Returns 1 with the next message in *ret, which is valid until the next call; 0: none is complete
 * yet. */
int connection_next(struct connection *connection, struct wire_message *ret,
                    struct muster_err *err);
