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
    CHANNEL_STATUS,      /* how it ended: a Status, the last message */
    CHANNEL_RESIZE,      /* {"Width": 80, "Height": 24} */
    CHANNEL_CLOSE = 255, /* v5: the number of the channel that ends */
};

enum { CHANNEL_TEXT_MAX = 256 };

/* What is kept between the pieces of a message. */
struct channel_reader {
    bool known;
    unsigned char channel;
    size_t used;
    char text[CHANNEL_TEXT_MAX]; /* of RESIZE and CLOSE, which come as a whole */
};

struct channel_data {
    enum channel channel; /* STDIN, RESIZE or CLOSE */
    const char *bytes;    /* of standard input as much as is there; borrowed */
    size_t count;
};

/* The subprotocols, the best first; ends with NULL. */
extern const char *const channel_protocols[];

/* False: the piece says nothing (yet). */
bool channel_read(struct channel_reader *reader, const struct websocket_piece *piece,
                  struct channel_data *ret);

/* The size of a terminal as a session takes it ({"rows", "columns"}), new; NULL: it is none. */
json_t *channel_size(const struct channel_data *resize);

/* The Status of a command that ended with this exit code; new. */
json_t *channel_status(int code);
