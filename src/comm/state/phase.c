/* The life of a communicator. Layer: comm; see phase.h. */
#include "comm/state/phase.h"

#include <assert.h>

static const bool may[COMM_PHASES][COMM_PHASES] = {
    [COMM_FORMING] = {[COMM_OPEN] = true},
    [COMM_OPEN] = {[COMM_CLOSING] = true, [COMM_LEAVING] = true},
    [COMM_CLOSING] = {[COMM_CLOSED] = true},
    [COMM_LEAVING] = {[COMM_LEFT] = true},
    [COMM_CLOSED] = {false},
    [COMM_LEFT] = {false},
};

bool phase_may(enum comm_phase from, enum comm_phase to)
{
    return may[from][to];
}

static int word_of(enum comm_phase phase, int code)
{
    assert(code <= 0);
    return (int)phase | -code << COMM_PHASE_BITS;
}

void phase_init(struct comm_life *life)
{
    atomic_store(&life->word, word_of(COMM_FORMING, 0));
}

/* Returns false if the communicator is not in that phase any more. */
static bool step(struct comm_life *life, enum comm_phase from, int from_code, enum comm_phase to,
                 int to_code)
{
    int word = word_of(from, from_code);
    assert(may[from][to]);
    return atomic_compare_exchange_strong(&life->word, &word, word_of(to, to_code));
}

void phase_open(struct comm_life *life)
{
    bool opened = step(life, COMM_FORMING, 0, COMM_OPEN, 0);
    assert(opened);
}

bool phase_close(struct comm_life *life, enum comm_phase to, int code)
{
    assert(code < 0 && phase_of(life) != COMM_FORMING);
    return step(life, COMM_OPEN, 0, to, code);
}

void phase_quiesce(struct comm_life *life)
{
    enum comm_phase phase = phase_of(life);
    int code = phase_code(life);
    bool quiesced = step(life, phase, code, phase == COMM_LEAVING ? COMM_LEFT : COMM_CLOSED, code);
    assert(quiesced);
}
