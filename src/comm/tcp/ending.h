/* How a channel and a link end: each has one state, which only goes forward, as the tables in
 * ending.c say. Any other transition is a bug, and asserted.
 *
 * Layer: comm. Memory: the link's. Thread: a channel's state is written by the thread that holds
 * its lane (of the heartbeat channel, its mutex), a link's by the thread that holds that mutex; all
 * may read.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

enum channel_state {
    CHANNEL_OPEN,
    CHANNEL_SHUT,  /* nothing can be written any more; what has arrived can still be read */
    CHANNEL_ENDED, /* its end was read, or it has failed */
    CHANNEL_STATES,
};

/* The state of the other side, as long as its kernel is there. */
enum link_state {
    LINK_SPEAKS,
    LINK_LEFT,  /* it freed the communicator in good order; what it sent still arrives */
    LINK_DRIED, /* nothing has arrived for long after it left, or it was silent for
                   heartbeat_timeout_ms before */
    LINK_STATES,
};

bool ending_channel_may(enum channel_state from, enum channel_state to);
bool ending_link_may(enum link_state from, enum link_state to);

/* Changes the state; does nothing if it has that value already. */
void ending_channel(_Atomic int *state, enum channel_state to);
void ending_link(_Atomic int *state, enum link_state to);
