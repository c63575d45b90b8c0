/* How a channel and a link end. Layer: comm; see ending.h. */
#include "comm/tcp/ending.h"

#include <assert.h>

static const bool channel_may[CHANNEL_STATES][CHANNEL_STATES] = {
    [CHANNEL_OPEN] = {[CHANNEL_SHUT] = true, [CHANNEL_ENDED] = true},
    [CHANNEL_SHUT] = {[CHANNEL_ENDED] = true},
    [CHANNEL_ENDED] = {false},
};

static const bool link_may[LINK_STATES][LINK_STATES] = {
    [LINK_SPEAKS] = {[LINK_LEFT] = true, [LINK_DRIED] = true},
    [LINK_LEFT] = {[LINK_DRIED] = true},
    [LINK_DRIED] = {false},
};

bool ending_channel_may(enum channel_state from, enum channel_state to)
{
    return channel_may[from][to];
}

bool ending_link_may(enum link_state from, enum link_state to)
{
    return link_may[from][to];
}

void ending_channel(_Atomic int *state, enum channel_state to)
{
    int from = atomic_load(state);
    assert(from >= 0 && from < CHANNEL_STATES);
    if (from != (int)to) {
        assert(channel_may[from][to]);
        atomic_store(state, (int)to);
    }
}

void ending_link(_Atomic int *state, enum link_state to)
{
    int from = atomic_load(state);
    assert(from >= 0 && from < LINK_STATES);
    if (from != (int)to) {
        assert(link_may[from][to]);
        atomic_store(state, (int)to);
    }
}
