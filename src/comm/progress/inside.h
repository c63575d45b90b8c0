/* The calls that this thread is inside of, if they can call back into the library: while a call
 * asks the user whether to go on, the user may abort, and the abort must not wait for the call
 * that asks.
 *
 * Layer: comm. Memory: a place is on the stack of the call, and stays until inside_leave. Thread:
 * any; each sees its own.
 */
#pragma once

#include <stdbool.h>

struct muster_comm;

enum inside_kind {
    INSIDE_CALL, /* a call that this thread runs itself, and that now asks the user: COMM_IN_CALL */
    INSIDE_SEVERAL, /* a call that consists of several: COMM_IN_SEVERAL */
};

struct inside {
    const struct muster_comm *comm;
    enum inside_kind kind;
    struct inside *outer;
};

void inside_enter(struct inside *place, const struct muster_comm *comm, enum inside_kind kind);
/* place: the one that was entered last. */
void inside_leave(const struct inside *place);
bool inside_is(const struct muster_comm *comm, enum inside_kind kind);
