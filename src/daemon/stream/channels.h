/* The channels of exec and attach over a WebSocket, as Kubernetes numbers them: the first byte of
 * each message (v4.channel.k8s.io, and v5, in which a client can end its input).
 *
 * Layer: program (daemon); pure.
 */
#pragma once

#include "websocket/codec.h"

#include <jansson.h>

enum channel {
    CHANNEL_STDIN,
    CHANNEL_STDOUT,
    CHANNEL_STDERR,
    CHANNEL_STATUS,      /* how the command ended: a Status, as the last message */
    CHANNEL_RESIZE,      /* {"Width": 80, "Height": 24} */
    CHANNEL_CLOSE = 255, /* v5: the number of the channel that ends */
};

enum { CHANNEL_TEXT_MAX = 256 };

/* What is kept from one piece of a message to the next. */
struct channel_reader {
    bool known;
    unsigned char channel;
    size_t used;
    char text[CHANNEL_TEXT_MAX]; /* content of RESIZE and CLOSE, which are given as a whole */
};

struct channel_data {
    enum channel channel; /* STDIN, RESIZE or CLOSE */
    const char *bytes;    /* for STDIN as much as has come; borrowed */
    size_t count;
};

/* The subprotocols, best first; ends with NULL. */
extern const char *const channel_protocols[];

/* Reads a piece. Returns false if it means nothing, or nothing yet. */
bool channel_read(struct channel_reader *reader, const struct websocket_piece *piece,
                  struct channel_data *ret);

/* Makes the size of a terminal as a session takes it ({"rows", "columns"}): a new reference, NULL
 * if the data is not a size. */
json_t *channel_size(const struct channel_data *resize);

/* Makes the Status of a command that ended with this exit code: a new reference. */
json_t *channel_status(int code);
