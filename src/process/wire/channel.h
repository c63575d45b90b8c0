/* JSON lines over a stream socket, both ways: how controller and supervisor talk.
 *
 * Layer: services. Thread: the loop's. Ownership: channel_open takes the descriptor; after
 * channel_close no hook is called, and the memory goes when the loop has run. Bounded: a line may
 * have CHANNEL_LINE_MAX bytes, and a peer that does not read loses the connection.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>
#include <uv.h>

enum { CHANNEL_LINE_MAX = 8 << 20, CHANNEL_QUEUE_MAX = 16 << 20 };

struct channel;

struct channel_hooks {
    void (*message)(void *data, const json_t *message);
    /* The peer is gone, or sends data that is not valid (then err->code is MUSTER_EPROTO): close
     * the channel. Called once. */
    void (*gone)(void *data, const struct muster_err *err);
};

int channel_open(uv_loop_t *loop, int fd, const struct channel_hooks *hooks, void *data,
                 struct channel **ret, struct muster_err *err);

/* Takes the message. A message that cannot be sent any more is dropped; then `gone` is called. */
void channel_send(struct channel *channel, json_t *message);

/* Closes when everything was sent. `channel` may be NULL. */
void channel_close(struct channel *channel);
